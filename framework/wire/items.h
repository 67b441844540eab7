// The parts of the binary form that wire.cc puts together: one op, one variable, the extension.
#pragma once

#include <memory>
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

Result<std::shared_ptr<Op>> ParseOp(std::string_view bytes);
Result<std::shared_ptr<Var>> ParseVar(std::string_view bytes);

// The fields of ProgramExtra. False if all facts are defaults: what was appended says nothing then.
bool AppendExtra(const Program& program, std::string& out);
// kDataLoss.
Status ReadExtra(std::string_view bytes, proto::ProgramExtra& extra);
// What it says of one block: of variables by name, which they outlive, of ops by position. Facts of what a
// tool that does not know them has since removed are passed over.
using VarFactsByName = ViewMap<const proto::VarExtra*>;
VarFactsByName VarFactsOf(const proto::BlockExtra& extra);
void ApplyVarFacts(const proto::VarExtra& facts, Var& var);
void ApplyOpFacts(const proto::BlockExtra& facts, const std::vector<std::shared_ptr<Op>>& ops);
void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta);

}  // namespace penstock
