// Reads and writes programs in files; the name determines the format:
//
//   .pb  .pdmodel  __model__  model   the binary form          .ir     the textual form
//   .json                             JSON                     .gz behind any of them: packed
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "framework/ir/program.h"

namespace penstock {

// Reads a large binary file with the pool's threads, if given. All errors name the file. kInvalidArgument
// E-file-format: an unknown ending.
Result<Program> ReadProgramFile(const std::string& path, ThreadPool* threads = nullptr);
// Writes the textual form in full (PrintOptions::Everything).
Status WriteProgramFile(const std::string& path, const Program& program);

}  // namespace penstock
