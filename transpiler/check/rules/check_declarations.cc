// All programs that declare a variable declare it alike: the same kind and element type everywhere, on
// trainers also the same shape. If the source is given, as in the source.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class DeclarationRules {
 public:
  DeclarationRules(const RoleFacts& facts, const SourcePrograms* source, Findings& findings)
      : facts_(facts), source_(source), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (source_ != nullptr) CompareTrainer(*trainer.file, source_->main, "the source");
      if (&trainer == &facts_.trainers.front()) continue;
      const RoleProgram& first = *facts_.trainers.front().file;
      CompareTrainer(*trainer.file, first.program, first.file);
    }
    for (const PserverFacts& pserver : facts_.pservers) ComparePserver(pserver);
  }

 private:
  void CompareTrainer(const RoleProgram& file, const Program& other, std::string_view name) {
    const std::vector<VarRef>& vars = file.program.main().vars();
    std::vector<std::string_view> names;
    names.reserve(vars.size());
    for (const VarRef& var : vars) names.push_back(var->name);
    std::vector<const Var*> found(names.size());
    other.FindVars(0, names, found);
    for (std::size_t i = 0; i < vars.size(); ++i) {
      const Var* var = vars[i].get();
      const Var* there = found[i];
      // Fluid's local training leaves the element type unset, which is read as bool.
      const bool untyped = facts_.pservers.empty() && var->type && var->type->dtype == DType::kBool;
      if (there == nullptr || there == var || untyped) continue;
      const bool alike = SameKind(*var, *there) && (!var->type || Compatible(var->shape(), there->shape()));
      if (!alike) Differs(file, *var, *there, name);
    }
  }

  // Variables that a pserver computes for all its parameters, such as the learning rate, have their names
  // from the source. All other variables are slices, rows of a table, or checked with the messages that carry
  // them.
  void ComparePserver(const PserverFacts& pserver) {
    const Program& program = pserver.file->program;
    if (pserver.lr_block < 1 || pserver.lr_block >= program.block_count()) return;
    for (const OpEntry& entry : program.block(pserver.lr_block).ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) ComparePserverVar(pserver, name);
      }
    }
  }

  void ComparePserverVar(const PserverFacts& pserver, const std::string& name) {
    const Var* var = pserver.file->program.FindVar(pserver.lr_block, name);
    if (var == nullptr) return;
    const Var* there = source_ == nullptr ? nullptr : source_->main.main().FindVar(name);
    if (there != nullptr && !SameKind(*var, *there)) Differs(*pserver.file, *var, *there, "the source");
    const auto [known, fresh] = rates_.emplace(name, std::pair(pserver.file, var));
    if (fresh || SameKind(*var, *known->second.second)) return;
    Differs(*pserver.file, *var, *known->second.second, known->second.first->file);
  }

  static bool SameKind(const Var& a, const Var& b) {
    return a.kind == b.kind && a.type.has_value() == b.type.has_value() &&
           (!a.type || a.type->dtype == b.type->dtype);
  }

  void Differs(const RoleProgram& file, const Var& var, const Var& there, std::string_view name) {
    findings_.Error(
        "E-check-declared", file,
        StrCat("declares ", var.name, " as ", PrintVarType(var), ", ", name, " as ", PrintVarType(there)));
  }

  const RoleFacts& facts_;
  const SourcePrograms* source_;
  Findings& findings_;
  ViewMap<std::pair<const RoleProgram*, const Var*>> rates_;  // by name, the first program that declares it
};

}  // namespace

void CheckDeclarations(const RoleFacts& facts, const SourcePrograms* source, Findings& findings) {
  DeclarationRules(facts, source, findings).Run();
}

}  // namespace penstock::check
