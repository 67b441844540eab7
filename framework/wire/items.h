// The parts that wire.cc combines into the binary form: one op, one variable, the extension.
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

// Appends the fields of ProgramExtra. Returns false if all facts are defaults: then omit the extension.
bool AppendExtra(const Program& program, std::string& out);
// kDataLoss.
Status ReadExtra(std::string_view bytes, proto::ProgramExtra& extra);
// The facts of one block: facts of variables by name (`extra` must outlive the map), facts of ops by
// position. Facts of variables or ops that another tool has removed are skipped.
using VarFactsByName = ViewMap<const proto::VarExtra*>;
VarFactsByName VarFactsOf(const proto::BlockExtra& extra);
void ApplyVarFacts(const proto::VarExtra& facts, Var& var);
void ApplyOpFacts(const proto::BlockExtra& facts, const std::vector<std::shared_ptr<Op>>& ops);
void ApplyMeta(const proto::ProgramExtra& extra, ProgramMeta& meta);

}  // namespace penstock
