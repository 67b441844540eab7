// The parts of the binary form that wire.cc puts together: one op, one variable, the extension.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"

namespace penstock {

namespace proto {
class BlockExtra;
class ProgramExtra;
}  // namespace proto

Result<Op> ParseOp(std::string_view bytes);
Result<Var> ParseVar(std::string_view bytes);

// The bytes of ProgramExtra; empty if all facts are defaults.
std::string MakeExtra(const Program& program);
// kDataLoss, and kInvalidArgument for facts of a block that is not there.
Status ReadExtra(std::string_view bytes, int block_count, proto::ProgramExtra& extra);
// What it says of one block's variables, and of its ops before they are placed.
Status ApplyVarFacts(const proto::BlockExtra& extra, Block& block);
Status ApplyOpFacts(const proto::BlockExtra& extra, int block, std::vector<Op>& ops);
void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta);

}  // namespace penstock
