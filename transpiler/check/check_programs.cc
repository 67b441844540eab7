// Each role program is one: ops fit their schemas, and shapes and element types follow from each other.
#include <algorithm>
#include <set>

#include "framework/verify/verifier.h"
#include "transpiler/check/facts.h"

namespace penstock {
namespace {

void Reach(const Program& program, int block, std::set<int>& reached) {
  if (block < 0 || block >= program.block_count() || !reached.insert(block).second) return;
  for (const OpEntry& entry : program.block(block).ops()) {
    for (const NamedAttr& attr : entry.op->attrs()) {
      if (const auto* one = std::get_if<BlockRef>(&attr.value)) Reach(program, one->index, reached);
      if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr.value)) {
        for (const BlockRef ref : *many) Reach(program, ref.index, reached);
      }
    }
  }
}

// Trainers of Fluid keep the blocks of a schedule that has gone to the pservers. Nobody enters them.
Program WithoutUnreached(const Program& program) {
  std::set<int> reached;
  Reach(program, 0, reached);
  Program out = program;
  for (int b = 1; b < program.block_count(); ++b) {
    if (!reached.contains(b)) out.MutableBlock(b).SetOps({});
  }
  return out;
}

// A start value of a trainer that is received, or joined of what is received, afterwards is never used; Fluid
// may leave it the shape of a slice.
Program WithoutOverwritten(const Program& startup) {
  std::set<std::string> received;
  for (const OpEntry& entry : startup.main().ops()) {
    if (entry.op->type() != "recv" && entry.op->type() != "concat") continue;
    for (const std::string& name : entry.op->OutputNames()) received.insert(name);
  }
  Program out = startup;
  for (const OpEntry& entry : startup.main().ops()) {
    if (entry.op->type() == "recv" || entry.op->type() == "concat") continue;
    const auto outputs = entry.op->OutputNames();
    if (outputs.size() == 1 && received.contains(outputs.front())) out.MutableBlock(0).Remove(entry.id);
  }
  return out;
}

// Fluid's local training leaves the element type of parameters unset, which reads as bool; the start-up
// program knows it.
Program WithStartTypes(const Program& program, const Program& startup) {
  Program out = program;
  for (const VarRef& var : program.main().vars()) {
    if (!var->persistable || !var->type || var->type->dtype != DType::kBool) continue;
    const Var* start = startup.main().FindVar(var->name);
    if (start == nullptr || !start->type || start->type->dtype == DType::kBool) continue;
    Var typed = *var;
    typed.type->dtype = start->type->dtype;
    typed.wire_bytes.clear();
    out.MutableBlock(0).SetVar(std::move(typed));
  }
  return out;
}

// Ops that distribution adds, or that leave the trainer.
bool IsDistributed(const Op& op) {
  return Has(op.role(), Role::kRpc) || Has(op.role(), Role::kDist) || Has(op.role(), Role::kOptimize) ||
         op.FindAttr("epmap") != nullptr || op.FindAttr("endpoints") != nullptr;
}

// What holds of every op, whether the registry knows it or not.
void CheckOps(const RoleProgram& file, Findings& findings) {
  for (int b = 0; b < file.program.block_count(); ++b) {
    for (const OpEntry& entry : file.program.block(b).ops()) {
      const Op& op = *entry.op;
      if (StringsOf(op, kRoleVarAttr).size() % 2 != 0) {
        findings.Error("E-check-pair", file, StrCat(op.type(), " has an odd list of (param, grad) names"),
                       &op);
      }
      if (!IsDistributed(op)) continue;
      for (const Slot& slot : op.outputs()) {
        std::set<std::string_view> seen;
        for (const std::string& name : slot.args) {
          if (name == kEmptyVarName || seen.insert(name).second) continue;
          findings.Error("E-check-written-twice", file, StrCat(op.type(), " writes ", name, " twice"), &op);
        }
      }
    }
  }
}

void CheckProgram(const RoleProgram& file, const Program& program, const OpRegistry& ops,
                  Findings& findings) {
  CheckOps(file, findings);
  for (const Status& violation : FindViolations(program, {.ops = &ops})) {
    findings.Add({Severity::kError, violation.id(), file.file, violation.message(), violation.details()});
  }
}

// Where programs carry the plan that they were made by, it is one.
void CheckPlans(const RoleFiles& roles, Findings& findings) {
  const RoleProgram* first = nullptr;
  for (const RoleProgram* file : roles.All()) {
    if (file->program.meta().plan.empty()) continue;
    if (first == nullptr) first = file;
    if (file->program.meta().plan == first->program.meta().plan) continue;
    findings.Error("E-check-plan", *file, StrCat("was made by another plan than ", first->file));
    const std::vector<std::string> own = Split(file->program.meta().plan, '\n');
    const std::vector<std::string> other = Split(first->program.meta().plan, '\n');
    const auto [here, there] = std::mismatch(own.begin(), own.end(), other.begin(), other.end());
    findings.Detail(StrCat(first->file, ":  ", there == other.end() ? "(ends)" : *there));
    findings.Detail(StrCat(file->file, ":  ", here == own.end() ? "(ends)" : *here));
  }
}

}  // namespace

void CheckPrograms(const RoleFiles& roles, const OpRegistry& ops, Findings& findings) {
  CheckPlans(roles, findings);
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    Program program = WithoutUnreached(roles.trainers[i].program);
    const bool local = roles.pservers.empty() && i < roles.trainer_startups.size();
    if (local) program = WithStartTypes(program, roles.trainer_startups[i].program);
    CheckProgram(roles.trainers[i], program, ops, findings);
  }
  for (const RoleProgram& file : roles.trainer_startups) {
    CheckProgram(file, WithoutOverwritten(file.program), ops, findings);
  }
  for (const auto* files : {&roles.pservers, &roles.pserver_startups}) {
    for (const RoleProgram& file : *files) CheckProgram(file, file.program, ops, findings);
  }
}

}  // namespace penstock
