// Reads and writes programs in Fluid's binary form.
//
// Reading keeps the original bytes of ops and variables that would be written differently; writing restores
// them if they are unchanged, so binary to binary is byte-equal. Facts travel in extension 1000
// (proto/extra.proto), which is omitted when all are defaults.
//
// kDataLoss: truncated or foreign bytes, with the place. kInvalidArgument: well-formed but not a program (a
// block index that is not its position, a required field missing, an element type that does not exist).
#pragma once

#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/base/thread_pool.h"
#include "framework/ir/program.h"

namespace penstock {

struct WireOptions {
  bool extra = true;  // write ProgramExtra
};

// Reads a long program in parallel with the pool's threads, if given.
Result<Program> ParseProgram(std::string_view bytes, ThreadPool* threads = nullptr);
std::string SerializeProgram(const Program& program, const WireOptions& options = {});

// One op or variable alone, as OpDesc / VarDesc.
std::string SerializeOp(const Op& op);
std::string SerializeVar(const Var& var);

}  // namespace penstock
