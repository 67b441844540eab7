// Startup of ranks: there are enough ids of rings, and all ranks have the same ones; values that rank 0
// broadcasts are written before and awaited before they are read; each step renews the snapshots of
// parameters from which the next begins.
#include <algorithm>

#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

// Its slots name the variables that the ops of its block read and write.
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
      CheckCopiesStart(trainer);
    }
  }

 private:
  // One op exchanges the ids of all rings.
  void CheckIds(const RoleProgram& startup) {
    const Op* before = nullptr;
    for (const OpEntry& entry : startup.program.main().ops()) {
      const Op& op = *entry.op;
      if (op.type() != "gen_nccl_id") continue;
      if (before != nullptr) {
        findings_.Error("E-check-ring", startup,
                        "exchanges ids twice: ranks that do so once would be waited for", &op);
      }
      before = &op;
      const auto ranks = static_cast<int>(StringsOf(op, "trainers").size());
      const auto rings = op.GetOr<std::int32_t>("nccl_comm_num", 1);
      const bool levels = op.GetOr<bool>("use_hierarchical_allreduce", false);
      const auto node = op.GetOr<std::int32_t>("hierarchical_allreduce_inter_nranks", 0);
      if (levels && node > 1 && (node >= ranks || ranks % node != 0)) {
        findings_.Error(
            "E-check-ring", startup,
            StrCat(ranks, " ranks do not make nodes of ", node, ", of which there is more than one"), &op);
      }
      CheckDeclared(startup, op, rings, levels);
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

  // The op states how many ids it makes, and finds their variables by the runtime's names. If one is missing,
  // its ring is never joined. Other raw variables are the user's.
  void CheckDeclared(const RoleProgram& startup, const Op& op, int rings, bool levels) {
    constexpr char kFlat[] = "NCCLID";
    if (op.OutputName("NCCLID") != kFlat) {
      findings_.Error(
          "E-check-ring", startup,
          StrCat("makes its first id in ", Quote(op.OutputName("NCCLID")), "; ranks look for it in ", kFlat),
          &op);
    }
    const auto check = [&](const std::string& name, bool needed) {
      const Var* var = startup.program.main().FindVar(name);
      const bool there = var != nullptr && var->kind == VarKind::kRaw && var->persistable;
      if (there == needed) return;
      findings_.Error("E-check-ring", startup,
                      needed
                          ? StrCat("has no raw persistable variable ", name, " for an id that the op makes")
                          : StrCat("has a variable ", name, " for an id, but the op makes ids for ", rings,
                                   rings == 1 ? " ring" : " rings", levels ? " of each level" : "", " only"),
                      &op);
    };
    for (int ring = 0; ring <= rings; ++ring) {
      check(ring == 0 ? std::string(kFlat) : StrCat(kFlat, "_", ring), ring < rings);
      for (const char* level : {"Hierarchical_inter_NCCLID_", "Hierarchical_exter_NCCLID_"}) {
        check(StrCat(level, ring), levels && ring < rings);
      }
    }
  }

  // One op per ring exchanges its id; each ring has its own id.
  void CheckRings(const RoleProgram& startup) {
    std::map<std::string, const Op*> made;  // ids that no ring uses yet
    std::set<std::int32_t> of_devices;      // rings
    for (const OpEntry& entry : startup.program.main().ops()) {
      const Op& op = *entry.op;
      const auto ring = op.GetOr<std::int32_t>("ring_id", 0);
      if (op.type() == "c_comm_init_all" && !of_devices.insert(ring).second) {
        findings_.Error("E-check-ring", startup, StrCat("joins its devices to ring ", ring, " twice"), &op);
      }
      if (op.type() == "c_gen_nccl_id" && !made.emplace(op.OutputName("Out"), &op).second) {
        findings_.Error("E-check-ring", startup,
                        StrCat("makes the id ", op.OutputName("Out"), " again before a ring is joined by it"),
                        &op);
      }
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
    const RankOps uses(startup.program.main());
    std::unordered_map<std::string, std::size_t> started;  // position of the last writer of a variable
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Op& op = *ops[at].op;
      if (!AwaitsRing(op) && !GivesToOthers(op)) {
        for (const std::string& name : op.OutputNames()) started[name] = at;
      }
    }
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Op& op = *ops[at].op;
      if (!GivesToOthers(op)) continue;
      const std::string& name = op.InputName("X");
      const auto ring = RingOf(op);
      const auto start = started.find(name);
      if (start != started.end() && start->second > at) {
        findings_.Error(
            "E-check-broadcast", startup,
            StrCat("gives ", name, " to the others before ", ops[start->second].op->type(), " starts it"),
            &op);
      }
      const auto wait = static_cast<std::size_t>(uses.RingAwaitedAfter(ring, static_cast<int>(at)));
      if (op.GetOr<bool>("use_calc_stream", false)) continue;
      if (wait < ops.size()) {
        CheckReadLater(startup, uses, name, at, wait);
        continue;
      }
      findings_.Error("E-check-streams", startup,
                      StrCat("ends without waiting for ring ", ring, ", which brings ", name), &op);
    }
  }

  // A value that arrives over a ring is not read before a wait for the ring.
  void CheckReadLater(const RoleProgram& startup, const RankOps& ops, const std::string& name,
                      std::size_t given, std::size_t waited) {
    for (const RankOps::Use& use : ops.UsesOf(name)) {
      const auto at = static_cast<std::size_t>(use.at);
      if (at <= given || at >= waited || !use.reads || AwaitsRing(*use.op)) continue;
      findings_.Error(
          "E-check-streams", startup,
          StrCat(use.op->type(), " reads ", name, " before the ring that brings it is waited for"), use.op);
      return;
    }
  }

  // Local training: a step's update, which ranks sum in the parameter's variable, is the difference from a
  // copy that the startup program makes first.
  void CheckCopies(const TrainerFacts& trainer) {
    const ViewSet added = AddedUp(trainer.file->program);
    struct Copy {
      std::string of;
      const Op* reader = nullptr;  // in a step
    };
    std::map<std::string, Copy> copies;
    for (const OpEntry& entry : trainer.startup->program.main().ops()) {
      const std::string& of = entry.op->InputName("X");
      if (entry.op->type() == "assign" && trainer.updated_here.contains(of) && added.contains(of))
        copies.emplace(entry.op->OutputName("Out"), Copy{.of = of});
    }
    const Program& main = trainer.file->program;
    for (int b = 0; !copies.empty() && b < main.block_count(); ++b) {
      for (const OpEntry& entry : main.block(b).ops()) {
        if (EntersBlock(*entry.op)) continue;
        for (const std::string& name : entry.op->InputNames()) {
          const auto copy = copies.find(name);
          if (copy != copies.end()) copy->second.reader = entry.op.get();
        }
        for (const std::string& name : entry.op->OutputNames()) {
          const auto copy = copies.find(name);
          const bool renewed = copy != copies.end() && entry.op->InputNames() == std::vector{copy->second.of};
          if (renewed) copies.erase(copy);
        }
      }
    }
    for (const auto& [name, copy] : copies) {
      if (copy.reader == nullptr) continue;
      findings_.Error("E-check-snapshot", *trainer.file,
                      StrCat("no step renews ", name, ", from which updates are measured"), copy.reader);
    }
  }

  // The copy starts with the parameter's value.
  void CheckCopiesStart(const TrainerFacts& trainer) {
    const Program& main = trainer.file->program;
    std::map<std::string, std::string> copies;               // copy that is renewed -> its parameter
    std::set<std::pair<std::string, std::string>> together;  // read by one op
    for (int b = 0; b < main.block_count(); ++b) {
      for (const OpEntry& entry : main.block(b).ops()) {
        if (EntersBlock(*entry.op)) continue;
        const std::vector<std::string> inputs = entry.op->InputNames();
        if (inputs.size() == 2) together.insert({{inputs[0], inputs[1]}, {inputs[1], inputs[0]}});
        if (entry.op->type() == "assign" && inputs.size() == 1 && trainer.updated_here.contains(inputs[0]))
          copies.emplace(entry.op->OutputName("Out"), inputs[0]);
      }
    }
    for (const OpEntry& entry : trainer.startup->program.main().ops()) {
      const auto copy = copies.find(entry.op->OutputName("Out"));
      if (copy == copies.end() || !together.contains({copy->first, copy->second}) ||
          entry.op->InputNames() == std::vector{copy->second})
        continue;
      findings_.Error("E-check-snapshot", *trainer.startup,
                      StrCat("starts ", copy->first, ", from which updates of ", copy->second,
                             " are measured, as something else"),
                      entry.op.get());
    }
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const Op* reference_ = nullptr;  // the op of the first rank that makes ids
  const RoleProgram* first_ = nullptr;
};

}  // namespace

void CheckRankStart(const RoleFacts& facts, Findings& findings) {
  if (facts.ranks()) RankStartRules(facts, findings).Run();
}

}  // namespace penstock::check
