// The parts of the binary form that wire.cc puts together: one op, one variable, the extension.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/view_map.h"
#include "framework/ir/program.h"

namespace penstock {

namespace proto {
class BlockExtra;
class OpExtra;
class ProgramExtra;
class VarExtra;
}  // namespace proto

Result<Op> ParseOp(std::string_view bytes);
Result<Var> ParseVar(std::string_view bytes);

// The fields of ProgramExtra. False if all facts are defaults: what was appended says nothing then.
bool AppendExtra(const Program& program, std::string& out);
// kDataLoss, and kInvalidArgument for facts of a block that is not there.
Status ReadExtra(std::string_view bytes, int block_count, proto::ProgramExtra& extra);
// What it says of one block: of variables by name, which they outlive, of ops by position.
using VarFactsByName = ViewMap<const proto::VarExtra*>;
VarFactsByName VarFactsOf(const proto::BlockExtra& extra);
void ApplyVarFacts(const proto::VarExtra& facts, Var& var);
Result<std::vector<const proto::OpExtra*>> OpFactsOf(const proto::BlockExtra& extra, int block,
                                                     std::size_t op_count);  // null: none
void ApplyOpFacts(const proto::OpExtra& facts, Op& op);
void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta);

}  // namespace penstock
