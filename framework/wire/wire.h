// Reads and writes programs in Fluid's binary form.
//
// Reading keeps the original bytes of ops and variables that would be written differently; writing restores
// the bytes of unchanged ops and variables, so reading and writing an unchanged program gives equal bytes.
// Extension 1000 (proto/extra.proto) holds the facts for which Fluid has no field; it is omitted if all are
// defaults.
//
// kDataLoss: the bytes are truncated or not in this form; the message gives the place. kInvalidArgument: the
// bytes are well-formed, but not a program (a block index differs from the block's position, a required
// field is missing, an element type does not exist).
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
