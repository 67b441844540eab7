// Programs in files, the form told by the name:
//
//   .pb  .pdmodel  __model__  model   the binary form          .ir     the textual form
//   .json                             JSON                     .gz behind any of them: packed
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "framework/ir/program.h"

namespace penstock {

// kInvalidArgument E-file-format: a name of another kind. All errors name the file. A long one in binary form
// is read by the pool's threads if there is one.
Result<Program> ReadProgramFile(const std::string& path, ThreadPool* threads = nullptr);
// Text is written with everything (PrintOptions::Everything).
Status WriteProgramFile(const std::string& path, const Program& program);

}  // namespace penstock
