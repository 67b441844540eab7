// Each role program is valid: ops satisfy their schemas, and shapes and element types are consistent.
#include <algorithm>
#include <set>

#include "framework/ir/block_uses.h"
#include "framework/verify/verifier.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// Fluid's trainers keep the blocks of a schedule that moved to the pservers. No op enters them.
Program WithoutUnreached(const Program& program) {
  const std::set<int> reached = ReachedBlocks(program);
  Program out = program;
  for (int b = 1; b < program.block_count(); ++b) {
    if (!reached.contains(b)) out.MutableBlock(b).SetOps({});
  }
  return out;
}

// A trainer never uses an initializer of a variable that it then receives or joins from received slices;
// Fluid may leave the shape of a slice in it.
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

// Fluid's local training leaves the element type of parameters unset, which is read as bool; the startup
// program has it.
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

constexpr auto kHalf = static_cast<std::int32_t>(DType::kFp16);
constexpr auto kSingle = static_cast<std::int32_t>(DType::kFp32);

// Mixed precision: an op of the program casts values to f16. Variables after it are declared f16 instead of
// f32; the runner provides the kernels.
bool MakesHalf(const Program& program) {
  const auto& ops = program.main().ops();
  return std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
    return entry.op->GetOr<std::int32_t>("out_dtype", -1) == kHalf;
  });
}

Program InSinglePrecision(const Program& program) {
  Program out = program;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const VarRef& var : program.block(b).vars()) {
      if (!var->type || var->type->dtype != DType::kFp16) continue;
      Var single = *var;
      single.type->dtype = DType::kFp32;
      single.wire_bytes.clear();
      out.MutableBlock(b).SetVar(std::move(single));
    }
    for (const OpEntry& entry : program.block(b).ops()) {
      for (const char* attr : {"dtype", "in_dtype", "out_dtype"}) {
        if (entry.op->GetOr<std::int32_t>(attr, -1) != kHalf) continue;
        Op single = *out.block(b).FindOp(entry.id);
        out.MutableBlock(b).Replace(entry.id, std::move(single.Set(attr, kSingle)));
      }
    }
  }
  return out;
}

// Ops that distribution adds, or that leave the trainer.
bool IsDistributed(const Op& op) {
  return Has(op.role(), OpRole::kRpc) || Has(op.role(), OpRole::kDist) || Has(op.role(), OpRole::kOptimize) ||
         roles::NamesServers(op);
}

// Rules for every op, known to the registry or not.
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

}  // namespace

void CheckPrograms(const RoleFiles& roles, const OpRegistry& ops, Findings& findings) {
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    Program program = WithoutUnreached(roles.trainers[i].program);
    const bool local = roles.pservers.empty() && i < roles.trainer_startups.size();
    if (local) program = WithStartTypes(program, roles.trainer_startups[i].program);
    if (MakesHalf(program)) {
      program = InSinglePrecision(program);
      findings.Note("N-check-half", roles.trainers[i],
                    "computes in half precision: whoever runs it needs kernels for f16");
    }
    CheckProgram(roles.trainers[i], program, ops, findings);
  }
  for (const RoleProgram& file : roles.trainer_startups) {
    CheckProgram(file, WithoutOverwritten(file.program), ops, findings);
  }
  for (const auto* files : {&roles.pservers, &roles.pserver_startups}) {
    for (const RoleProgram& file : *files) CheckProgram(file, file.program, ops, findings);
  }
}

}  // namespace penstock::check
