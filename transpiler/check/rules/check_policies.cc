// Policies are the settings that Fluid does not have (framework/text/policies.h). All programs state the same
// policies of the job, and the programs suit them: staleness needs trainers without barriers; backup trainers
// need steps with barriers and a merge that can leave gradients out; compression needs dense gradients that
// are pushed, the same compression on both sides, and a residual that starts at 0.
#include <algorithm>
#include <map>

#include "framework/ir/mentions.h"
#include "framework/ir/random_draws.h"
#include "framework/roles/views.h"
#include "framework/text/other_starts.h"
#include "framework/text/policies.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/mean.h"

namespace penstock::check {
namespace {

std::string Said(const ProgramMeta& meta, const std::string& name) {
  const auto found = meta.policies.find(name);
  return found == meta.policies.end() ? "nothing" : Quote(found->second);
}

// A program whose policies can be read.
JobPolicies PoliciesOf(const RoleProgram& file) { return *ReadPolicies(file.program.meta()); }

bool IsDenseFloat(const Var* var) {
  return var != nullptr && var->kind == VarKind::kTensor && var->HasShape() &&
         var->type->dtype == DType::kFp32;
}

class PolicyRules {
 public:
  PolicyRules(const RoleFiles& roles, const RoleFacts& facts, Findings& findings)
      : roles_(roles), facts_(facts), findings_(findings) {}

  void Run() {
    if (!CheckRead()) return;
    CheckSame();
    // If programs differ, compares with the first.
    const JobPolicies job = PoliciesOf(*roles_.All().front());
    if (job.staleness) CheckStaleness(*job.staleness);
    if (job.backup_trainers > 0) CheckBackups(job.backup_trainers);
    for (const PserverFacts& pserver : facts_.pservers)
      by_pserver_.emplace(&pserver, PoliciesOf(*pserver.file).compression);
    for (const PserverFacts& pserver : facts_.pservers) CheckReceived(pserver);
    for (const TrainerFacts& trainer : facts_.trainers) CheckPushed(trainer);
  }

 private:
  bool CheckRead() {
    bool all = true;
    for (const RoleProgram* file : roles_.All()) {
      const Result<JobPolicies> policies = ReadPolicies(file->program.meta());
      if (policies.ok()) continue;
      findings_.Error("E-check-policy", *file, policies.status().message());
      all = false;
    }
    return all;
  }

  // All programs state the same policies, except compression: each main program states its own, and its
  // startup program the same.
  void CheckSame() {
    const std::vector<const RoleProgram*> all = roles_.All();
    for (const RoleProgram* file : all) CompareWith(*all.front(), *file);
    for (const TrainerFacts& trainer : facts_.trainers) CompareCompression(trainer.file, trainer.startup);
    for (const PserverFacts& pserver : facts_.pservers) CompareCompression(pserver.file, pserver.startup);
  }

  void CompareWith(const RoleProgram& first, const RoleProgram& file) {
    std::set<std::string> names;
    for (const RoleProgram* one : {&first, &file}) {
      for (const auto& [name, value] : one->program.meta().policies) names.insert(name);
    }
    for (const std::string& name : names) {
      const std::string here = Said(file.program.meta(), name), there = Said(first.program.meta(), name);
      if (here == there || name == kCompressionPolicy || RecordsADraw(name) || RecordsAStart(name)) continue;
      findings_.Error("E-check-policy-differs", file,
                      StrCat("says ", here, " of policy ", name, ", ", first.file, " says ", there));
    }
  }

  void CompareCompression(const RoleProgram* main, const RoleProgram* startup) {
    if (startup == nullptr) return;
    if (Said(main->program.meta(), kCompressionPolicy) == Said(startup->program.meta(), kCompressionPolicy))
      return;
    findings_.Error("E-check-policy-differs", *startup,
                    StrCat("says another policy of compression than ", main->file));
  }

  void CheckStaleness(int staleness) {
    const auto error = [&](const RoleProgram& file, std::string_view does, const Op* op) {
      findings_.Error("E-check-staleness", file,
                      StrCat("staleness ", staleness, " is for trainers whose own ops push at once; ", does),
                      op);
    };
    for (const PserverFacts& pserver : facts_.pservers) {
      if (pserver.mode != ServeMode::kHalfAsync) {
        error(*pserver.file, StrCat("it serves in distributed_mode ", static_cast<int>(pserver.mode)),
              pserver.serve);
      } else if (pserver.serve->GetOr<bool>("dc_asgd", false)) {
        error(*pserver.file, "it corrects gradients for their age", pserver.serve);
      }
    }
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (facts_.pservers.empty()) error(*trainer.file, "there is no pserver", nullptr);
      if (trainer.by_communicator) error(*trainer.file, "a communicator pushes for it", nullptr);
    }
  }

  void CheckBackups(int backups) {
    if (!facts_.sync()) {
      findings_.Error("E-check-backup-trainers", *roles_.All().front(),
                      StrCat("backup_trainers ", backups,
                             " is for steps that trainers' own barriers end; this set has none"));
      return;
    }
    for (const PserverFacts& pserver : facts_.pservers) {
      if (backups >= pserver.trainers) {
        findings_.Error(
            "E-check-backup-trainers", *pserver.file,
            StrCat("backup_trainers must be fewer than the ", pserver.trainers, " trainers, not ", backups),
            pserver.serve);
      }
      for (const UpdateBlock& update : pserver.updates) {
        if (update.optimizer == nullptr || IsMean(update, pserver)) continue;
        findings_.Error("E-check-backup-merge", *pserver.file,
                        StrCat("with backup_trainers ", backups, " block ", update.block,
                               " must merge by a sum of ", pserver.trainers, " gradients and one scale by 1/",
                               pserver.trainers, ", which can be of fewer"),
                        update.anchor(pserver.serve));
      }
      if (pserver.exchange == nullptr) continue;
      findings_.Error("E-check-backup-merge", *pserver.file,
                      StrCat("with backup_trainers ", backups,
                             " a step does not have all gradients, whose measures pservers exchange"),
                      pserver.exchange);
    }
  }

  static bool IsMean(const UpdateBlock& update, const PserverFacts& pserver) {
    return update.merge != nullptr && static_cast<int>(update.merge_inputs.size()) == pserver.trainers &&
           update.scales.size() == 1 &&
           TakesMeanOf(update.scales.front()->GetOr<float>("scale", 1.0f), pserver.trainers) &&
           update.scales.front()->GetOr<float>("bias", 0.0f) == 0.0f;
  }

  void CheckCompressible(const RoleProgram& file, const std::string& name, const Compression& how,
                         const Var* var, const Op* op) {
    if (IsDenseFloat(var)) return;
    findings_.Error("E-check-compression", file,
                    StrCat("compresses ", name, " by ", how, ", which needs a dense gradient of f32, not ",
                           var == nullptr ? "what is not declared" : PrintVarType(*var)),
                    op);
  }

  void CheckReceived(const PserverFacts& pserver) {
    const std::set<std::string_view> received(pserver.received.begin(), pserver.received.end());
    for (const auto& [name, how] : by_pserver_.at(&pserver).by_name) {
      if (!received.contains(name) || pserver.ConsumerOf(name) == nullptr) {
        findings_.Error("E-check-compression", *pserver.file,
                        StrCat("compresses ", name, " by ", how, ", and receives no gradient of that name"),
                        pserver.serve);
        continue;
      }
      CheckCompressible(*pserver.file, name, how, pserver.file->program.main().FindVar(name), pserver.serve);
    }
  }

  void CheckPushed(const TrainerFacts& trainer) {
    const CompressionRules rules = PoliciesOf(*trainer.file).compression;
    std::set<std::string_view> pushed;
    for (const Transfer& send : trainer.sends) {
      if (send.counts_steps) continue;
      bool keeps = false;
      for (const Piece& piece : send.pieces) {
        pushed.insert(piece.remote);
        const Compression how = rules.Of(piece.remote, 0);
        if (!how.none())
          CheckCompressible(*trainer.file, std::string(piece.remote), how, piece.here, send.op);
        CheckAlike(trainer, send, piece, how);
        keeps = keeps || how.HasResidual();
      }
      CheckKept(trainer, send, keeps);
      if (keeps) CheckResidual(trainer, send);
    }
    for (const auto& [name, how] : rules.by_name) {
      if (pushed.contains(name)) continue;
      findings_.Error("E-check-compression", *trainer.file,
                      StrCat("compresses ", name, " by ", how, ", and pushes no gradient of that name"));
    }
  }

  void CheckAlike(const TrainerFacts& trainer, const Transfer& send, const Piece& piece,
                  const Compression& how) {
    if (piece.to == nullptr) return;
    const Compression there = by_pserver_.at(piece.to).Of(piece.remote, 0);
    if (there == how) return;
    findings_.Error("E-check-compression-differs", *trainer.file,
                    StrCat("compresses ", piece.remote, " by ", how, ", and ", piece.to->file->file,
                           " reads it as ", there),
                    send.op);
  }

  // If there is a residual, the send has it as input and output.
  void CheckKept(const TrainerFacts& trainer, const Transfer& send, bool keeps) {
    const roles::SendView view(*send.op);
    const std::string name = keeps ? ResidualName(send.param) : std::string();
    if (view.residual() == name && view.residual_out() == name) return;
    findings_.Error("E-check-residual", *trainer.file,
                    StrCat("the send of the gradient of ", send.param, " keeps what it leaves in ",
                           view.residual().empty() ? "nothing" : view.residual(), " and puts it into ",
                           view.residual_out().empty() ? "nothing" : view.residual_out(),
                           "; by its compression it must be ", name.empty() ? "nothing" : name),
                    send.op);
  }

  void CheckResidual(const TrainerFacts& trainer, const Transfer& send) {
    const std::string name = ResidualName(send.param);
    const Var* param = trainer.file->program.main().FindVar(send.param);
    const Var* residual = trainer.file->program.main().FindVar(name);
    const auto fits = [&](const Var* var) {
      return IsDenseFloat(var) && var->persistable && param != nullptr && param->HasShape() &&
             var->shape() == param->shape();
    };
    const auto error = [&](const RoleProgram& file, std::string_view wrong) {
      findings_.Error(
          "E-check-residual", file,
          StrCat("what compression leaves of the gradient of ", send.param, " is kept in ", name, wrong),
          send.op);
    };
    if (!fits(residual))
      return error(*trainer.file,
                   ", which it does not declare as a persistable f32 variable of that parameter's shape");
    if (trainer.startup == nullptr) return;
    if (!fits(trainer.startup->program.main().FindVar(name)))
      return error(*trainer.startup,
                   ", which it does not declare as a persistable f32 variable of that parameter's shape");
    if (!StartsAtZero(trainer.startup->program, name))
      return error(*trainer.startup, ", which one fill_constant must start at 0");
  }

  static bool StartsAtZero(const Program& startup, const std::string& name) {
    int writers = 0;
    bool zero = false;
    for (const OpEntry& entry : startup.main().ops()) {
      const Op& op = *entry.op;
      if (!Writes(op, name)) continue;
      ++writers;
      const std::string text = op.GetOr<std::string>("str_value", "");
      zero = op.type() == "fill_constant" && op.GetOr<float>("value", 0.0f) == 0.0f &&
             (text.empty() || text == "0") &&
             LongsOf(op, "shape") == startup.main().FindVar(name)->shape().dims();
    }
    return writers == 1 && zero;
  }

  const RoleFiles& roles_;
  const RoleFacts& facts_;
  Findings& findings_;
  std::map<const PserverFacts*, CompressionRules> by_pserver_;
};

}  // namespace

void CheckPolicies(const RoleFiles& roles, const RoleFacts& facts, Findings& findings) {
  const std::vector<const RoleProgram*> all = roles.All();
  const bool any = std::ranges::any_of(
      all, [](const RoleProgram* file) { return !file->program.meta().policies.empty(); });
  if (any) PolicyRules(roles, facts, findings).Run();
}

}  // namespace penstock::check
