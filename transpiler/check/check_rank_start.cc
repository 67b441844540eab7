// How ranks start: the ids of their rings are enough and alike, what rank 0 gives to the others has its value
// by then and has come before it is read, and copies of parameters that a step begins from are made anew by
// each.
#include <algorithm>

#include "transpiler/check/facts.h"

namespace penstock {
namespace {

// Its slots name what its block's ops read and write.
bool EntersBlock(const Op& op) {
  return std::any_of(op.attrs().begin(), op.attrs().end(),
                     [](const NamedAttr& attr) { return std::holds_alternative<BlockRef>(attr.value); });
}

class RankStartRules {
 public:
  RankStartRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (trainer.startup == nullptr) continue;
      CheckIds(*trainer.startup);
      CheckRings(*trainer.startup);
      CheckBroadcasts(*trainer.startup);
      CheckCopies(trainer);
    }
  }

 private:
  // One exchange of ids for all rings.
  void CheckIds(const RoleProgram& startup) {
    for (const OpEntry& entry : startup.program.main().ops()) {
      const Op& op = *entry.op;
      if (op.type() != "gen_nccl_id") continue;
      const auto ranks = static_cast<int>(StringsOf(op, "trainers").size());
      const auto rings = op.GetOr<std::int32_t>("nccl_comm_num", 1);
      const bool levels = op.GetOr<bool>("use_hierarchical_allreduce", false);
      const auto node = op.GetOr<std::int32_t>("hierarchical_allreduce_inter_nranks", 0);
      if (levels && node > 1 && (node >= ranks || ranks % node != 0)) {
        findings_.Error(
            "E-check-ring", startup,
            StrCat(ranks, " ranks do not make nodes of ", node, ", of which there is more than one"), &op);
      }
      CheckDeclared(startup, op, rings * (levels ? 3 : 1));
      if (reference_ == nullptr) {
        reference_ = &op;
        first_ = &startup;
        continue;
      }
      for (const char* attr : {"nccl_comm_num", "hierarchical_allreduce_inter_nranks"}) {
        CompareAttr(startup, op, attr, op.GetOr<std::int32_t>(attr, 0),
                    reference_->GetOr<std::int32_t>(attr, 0));
      }
      constexpr char kLevels[] = "use_hierarchical_allreduce";
      CompareAttr(startup, op, kLevels, levels, reference_->GetOr<bool>(kLevels, false));
    }
  }

  template <typename T>
  void CompareAttr(const RoleProgram& startup, const Op& op, const char* attr, const T& own, const T& other) {
    if (own == other) return;
    findings_.Error(
        "E-check-ring", startup,
        StrCat(attr, " is ", own, ", in ", first_->file, " ", other, ": ranks would wait for ids"), &op);
  }

  // The op says how many ids it makes; where there is no variable for one, its ring is never joined.
  void CheckDeclared(const RoleProgram& startup, const Op& op, int needed) {
    const auto& vars = startup.program.main().vars();
    const auto ids = std::count_if(vars.begin(), vars.end(), [](const VarRef& var) {
      return var->kind == VarKind::kRaw && var->persistable;
    });
    if (ids == needed) return;
    findings_.Error("E-check-ring", startup,
                    StrCat("declares ", ids, " variables for ids of rings; the op makes ", needed), &op);
  }

  // An exchange of an id for each ring: each ring has its own.
  void CheckRings(const RoleProgram& startup) {
    std::map<std::string, const Op*> made;  // ids that no ring has taken
    for (const OpEntry& entry : startup.program.main().ops()) {
      const Op& op = *entry.op;
      if (op.type() == "c_gen_nccl_id") made.emplace(op.OutputName("Out"), &op);
      if (op.type() != "c_comm_init" || made.erase(op.InputName("X")) > 0) continue;
      findings_.Error("E-check-ring", startup,
                      StrCat("joins ring ", op.GetOr<std::int32_t>("ring_id", 0), " by ", op.InputName("X"),
                             ", which is no id of its own that was made before"),
                      &op);
    }
    for (const auto& [id, op] : made) {
      findings_.Error("E-check-ring", startup, StrCat("makes the id ", id, ", by which no ring is joined"),
                      op);
    }
  }

  void CheckBroadcasts(const RoleProgram& startup) {
    const auto& ops = startup.program.main().ops();
    std::unordered_map<std::string, std::size_t> started;  // where a variable gets its value last
    std::map<int, std::size_t> waited;                     // where a ring is waited for last
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Op& op = *ops[at].op;
      if (op.type() == "c_sync_comm_stream") {
        waited[op.GetOr<std::int32_t>("ring_id", 0)] = at;
      } else if (op.type() != "c_broadcast") {
        for (const std::string& name : op.OutputNames()) started[name] = at;
      }
    }
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Op& op = *ops[at].op;
      if (op.type() != "c_broadcast") continue;
      const std::string& name = op.InputName("X");
      const auto ring = op.GetOr<std::int32_t>("ring_id", 0);
      const auto start = started.find(name);
      if (start != started.end() && start->second > at) {
        findings_.Error(
            "E-check-broadcast", startup,
            StrCat("gives ", name, " to the others before ", ops[start->second].op->type(), " starts it"),
            &op);
      }
      const auto wait = waited.find(ring);
      if (op.GetOr<bool>("use_calc_stream", false) || (wait != waited.end() && wait->second > at)) continue;
      findings_.Error("E-check-streams", startup,
                      StrCat("ends without waiting for ring ", ring, ", which brings ", name), &op);
    }
  }

  // Local training: a step's update is the distance from a copy that the start-up program makes first.
  void CheckCopies(const TrainerFacts& trainer) {
    std::map<std::string, const Op*> copies;  // and the op that reads it in a step
    for (const OpEntry& entry : trainer.startup->program.main().ops()) {
      if (entry.op->type() == "assign" && trainer.updated_here.contains(entry.op->InputName("X")))
        copies.emplace(entry.op->OutputName("Out"), nullptr);
    }
    const Program& main = trainer.file->program;
    for (int b = 0; !copies.empty() && b < main.block_count(); ++b) {
      for (const OpEntry& entry : main.block(b).ops()) {
        if (EntersBlock(*entry.op)) continue;
        for (const std::string& name : entry.op->InputNames()) {
          const auto copy = copies.find(name);
          if (copy != copies.end()) copy->second = entry.op.get();
        }
        for (const std::string& name : entry.op->OutputNames()) copies.erase(name);
      }
    }
    for (const auto& [copy, reader] : copies) {
      if (reader == nullptr) continue;
      findings_.Error("E-check-snapshot", *trainer.file,
                      StrCat("no step renews ", copy, ", from which updates are measured"), reader);
    }
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const Op* reference_ = nullptr;  // of the first rank: what makes ids
  const RoleProgram* first_ = nullptr;
};

}  // namespace

void CheckRankStart(const RoleFacts& facts, Findings& findings) {
  if (facts.pservers.empty()) RankStartRules(facts, findings).Run();
}

}  // namespace penstock
