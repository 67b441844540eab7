// Damages of settings that Fluid does not have: the programs declare one thing and do another.
#include <algorithm>

#include "framework/text/policies.h"
#include "tests/parity/check/damages.h"

namespace penstock::test {
namespace {

JobPolicies PoliciesOf(const Program& program) { return *ReadPolicies(program.meta()); }

// Changes the policies of every program of the set.
void SayInAll(check::RoleFiles& r, const char* name, const char* value) {
  for (check::RoleProgram* file : r.All()) file->program.mutable_meta().policies[name] = value;
}

// Changes the compression policy in the main and the startup program of one trainer or pserver; false if it
// compresses nothing.
bool Recompress(Program& main, Program& startup, const std::function<void(CompressionRules&)>& change) {
  JobPolicies policies = PoliciesOf(main);
  if (policies.compression.empty()) return false;
  change(policies.compression);
  for (Program* program : {&main, &startup}) WritePolicies(policies, program->mutable_meta());
  return true;
}
bool RecompressTrainer(check::RoleFiles& r, const std::function<void(CompressionRules&)>& change) {
  return Recompress(Trainer(r), r.trainer_startups.back().program, change);
}

// The first residual that a program declares.
std::optional<std::string> FindResidual(const Program& program) {
  for (const VarRef& var : program.main().vars()) {
    if (program.main().FindVar(ResidualName(var->name)) != nullptr) return ResidualName(var->name);
  }
  return std::nullopt;
}
bool ChangeResidual(Program& program, const std::function<void(Var&)>& change) {
  const std::optional<std::string> name = FindResidual(program);
  if (name) ChangeVar(program, *name, change);
  return name.has_value();
}
bool ChangeResidualsStart(check::RoleFiles& r, const std::function<void(Program&, OpAt)>& change) {
  Program& startup = r.trainer_startups.back().program;
  const std::optional<std::string> name = FindResidual(startup);
  if (name) change(startup, *FindIf(startup, [&](const Op& op) { return op.OutputName("Out") == *name; }));
  return name.has_value();
}

const std::vector<Damage> kPolicies = {
    {"StalenessThatIsNoNumber",
     [](check::RoleFiles& r) {
       Trainer(r).mutable_meta().policies[kStalenessPolicy] = "soon";
       return true;
     },
     {"E-check-policy"}},
    {"OneTrainerOfAnotherStaleness",
     [](check::RoleFiles& r) {
       if (!PoliciesOf(Trainer(r)).staleness) return false;
       Trainer(r).mutable_meta().policies[kStalenessPolicy] = "7";
       return true;
     },
     {"E-check-policy-differs"}},
    {"AServerThatKnowsNoStaleness",
     [](check::RoleFiles& r) { return Pserver(r).mutable_meta().policies.erase(kStalenessPolicy) > 0; },
     {"E-check-policy-differs"}},
    {"AStartupOfAnotherCompression",
     [](check::RoleFiles& r) {
       return r.trainer_startups.back().program.mutable_meta().policies.erase(kCompressionPolicy) > 0;
     },
     {"E-check-policy-differs"}},
    {"StalenessWhereStepsEnd",
     [](check::RoleFiles& r) {
       if (PoliciesOf(Trainer(r)).staleness) return false;
       SayInAll(r, kStalenessPolicy, "2");
       return true;
     },
     {"E-check-staleness"}},
    {"AsManyBackupsAsTrainers",
     [](check::RoleFiles& r) {
       if (PoliciesOf(Trainer(r)).backup_trainers == 0) return false;
       SayInAll(r, kBackupTrainersPolicy, "2");
       return true;
     },
     {"E-check-backup-trainers"}},
    {"BackupsWhereNoStepEnds",
     [](check::RoleFiles& r) {
       if (PoliciesOf(Trainer(r)).backup_trainers > 0) return false;
       SayInAll(r, kBackupTrainersPolicy, "1");
       return true;
     },
     {"E-check-backup-trainers"}},
    {"BackupsOfAMeanInTwoSteps",
     [](check::RoleFiles& r) {
       if (PoliciesOf(Trainer(r)).backup_trainers == 0) return false;
       const auto at = FindInner(Pserver(r), "scale");
       if (!at) return false;
       Change(Pserver(r), *at, [](Op& op) { op.Set("scale", 2.0f); });
       Repeat(Pserver(r), *at);
       Change(Pserver(r), *at, [](Op& op) { op.Set("scale", 0.25f); });
       return true;
     },
     {"E-check-backup-merge"}},
    {"CompressesWhatIsNotPushed",
     [](check::RoleFiles& r) {
       return RecompressTrainer(r, [](CompressionRules& rules) { rules.by_name["nothing"] = {}; });
     },
     {"E-check-compression"}},
    {"CompressesWhatIsNotReceived",
     [](check::RoleFiles& r) {
       return Recompress(Pserver(r), r.pserver_startups.front().program, [](CompressionRules& rules) {
         rules.by_name["nothing"] = {.kind = Compression::Kind::kFp16};
       });
     },
     {"E-check-compression"}},
    {"CompressesWhatIsNoFloat",
     [](check::RoleFiles& r) {
       const CompressionRules rules = PoliciesOf(Pserver(r)).compression;
       if (rules.empty()) return false;
       ChangeVar(Pserver(r), rules.by_name.begin()->first, [](Var& var) { var.type->dtype = DType::kFp64; });
       return true;
     },
     {"E-check-compression"}},
    {"ATrainerThatCompressesOtherwise",
     [](check::RoleFiles& r) {
       return RecompressTrainer(
           r, [](CompressionRules& rules) { rules.by_name.begin()->second.threshold = 0.25f; });
     },
     {"E-check-compression-differs"}},
    {"ATrainerThatDoesNotCompress",
     [](check::RoleFiles& r) {
       return RecompressTrainer(r, [](CompressionRules& rules) { rules.by_name.clear(); });
     },
     {"E-check-compression-differs"}},
    {"ASendThatKeepsNoResidual",
     [](check::RoleFiles& r) {
       const auto at = FindIf(Trainer(r), [](const Op& op) { return !op.InputName("Residual").empty(); });
       if (!at) return false;
       Change(Trainer(r), *at, [](Op& op) { op.AddOutput("ResidualOut", {}); });
       return true;
     },
     {"E-check-residual"}},
    {"AResidualThatDoesNotLast",
     [](check::RoleFiles& r) {
       return ChangeResidual(Trainer(r), [](Var& var) { var.persistable = false; });
     },
     {"E-check-residual"}},
    {"AResidualOfAnotherShape",
     [](check::RoleFiles& r) {
       return ChangeResidual(Trainer(r), [](Var& var) { var.type->shape = Shape({3}); });
     },
     {"E-check-residual"}},
    {"AResidualThatIsNotDeclared",
     [](check::RoleFiles& r) {
       const std::optional<std::string> name = FindResidual(Trainer(r));
       return name && Trainer(r).MutableBlock(0).RemoveVar(*name);
     },
     {"E-check-residual"}},
    {"AResidualThatIsNotStarted",
     [](check::RoleFiles& r) {
       return ChangeResidualsStart(r, [](Program& startup, OpAt at) { Remove(startup, at); });
     },
     {"E-check-residual"}},
    {"AResidualThatStartsAtOne",
     [](check::RoleFiles& r) {
       return ChangeResidualsStart(
           r, [](Program& startup, OpAt at) { Change(startup, at, [](Op& op) { op.Set("value", 1.0f); }); });
     },
     {"E-check-residual"}},
};

}  // namespace

const std::vector<Damage>& PolicyDamages() { return kPolicies; }

}  // namespace penstock::test
