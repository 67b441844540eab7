// Ranks, in jobs with or without pservers: all have the same rings and run the same operations in the same
// order; every gradient is summed once, and every parameter starts alike.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/mean.h"
#include "transpiler/check/facts/rank_facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

class CollectiveRules {
 public:
  CollectiveRules(const RoleFacts& facts, Findings& findings)
      : ranks_(ReadRanks(facts)), alone_(facts.pservers.empty()), findings_(findings) {}

  void Run() {
    CheckJoined();
    for (const RankFacts& rank : ranks_) {
      if (rank.trainer->startup != nullptr) CheckMembers(rank);
      CheckRings(rank);
      if (alone_) CheckReduced(rank);  // with pservers: check_exchanges.cc
      // The devices of one process start from the process's own scope.
      const bool processes = rank.ranks > 0 && !rank.rings.empty();
      if (processes || !rank.startup.empty()) CheckBroadcasts(rank);
    }
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      Compare(ranks_[i].startup, ranks_.front().startup, ranks_[i].trainer->startup,
              ranks_.front().trainer->startup);
      Compare(ranks_[i].main, ranks_.front().main, ranks_[i].trainer->file, ranks_.front().trainer->file);
    }
  }

 private:
  static const RoleProgram& StartOf(const RankFacts& rank) {
    return rank.trainer->startup != nullptr ? *rank.trainer->startup : *rank.trainer->file;
  }

  // All ranks list the same addresses, and each a different one as its own.
  void CheckJoined() {
    std::map<int, const RankFacts*> by_rank;
    std::map<std::string, const RankFacts*> by_endpoint;
    const RankFacts& first = ranks_.front();
    for (const RankFacts& rank : ranks_) {
      if (rank.trainer->startup == nullptr) continue;
      if (rank.joins == nullptr) {
        findings_.Error("E-check-ranks", StartOf(rank),
                        alone_ ? "no pserver is in the set, and nothing connects ranks"
                               : "adds up gradients, and nothing connects ranks");
        continue;
      }
      const auto [same, fresh] = by_rank.emplace(rank.rank, &rank);
      if (rank.ranks > 0 && (!fresh || rank.rank < 0 || rank.rank >= rank.ranks)) {
        findings_.Error("E-check-ranks", StartOf(rank),
                        fresh ? StrCat("is rank ", rank.rank, " of ", rank.ranks)
                              : StrCat("is rank ", rank.rank, ", as is ", StartOf(*same->second).file),
                        rank.joins);
      }
      if (!rank.endpoint.empty() && !by_endpoint.emplace(rank.endpoint, &rank).second) {
        findings_.Error(
            "E-check-ranks", StartOf(rank),
            StrCat("listens at ", rank.endpoint, ", as does ", StartOf(*by_endpoint[rank.endpoint]).file),
            rank.joins);
      }
      if (rank.endpoints != first.endpoints) {
        findings_.Error("E-check-ranks", StartOf(rank),
                        StrCat("names the ranks ", Join(rank.endpoints, ", "), ", ", StartOf(first).file, " ",
                               Join(first.endpoints, ", ")),
                        rank.joins);
      }
      const std::set<std::string> distinct(rank.endpoints.begin(), rank.endpoints.end());
      if (distinct.size() != rank.endpoints.size()) {
        findings_.Error("E-check-ranks", StartOf(rank), "names one rank twice", rank.joins);
      }
    }
    if (alone_ && first.ranks > static_cast<int>(ranks_.size())) {  // with pservers, another rule reports it
      findings_.Note("N-check-trainers", *first.trainer->file,
                     StrCat("the set has ", ranks_.size(), " of ", first.ranks,
                            " trainers; the others are taken to be like these"));
    }
  }

  // All ops of a startup program that join a ring state the same rank.
  void CheckMembers(const RankFacts& rank) {
    for (const OpEntry& entry : rank.trainer->startup->program.main().ops()) {
      const Op& op = *entry.op;
      if (op.type() != "c_gen_nccl_id" && op.type() != "c_comm_init") continue;
      const auto id = op.GetOr<std::int32_t>("rank", 0);
      const auto count = op.GetOr<std::int32_t>("nranks", rank.ranks);
      if (op.type() == "c_gen_nccl_id") CheckEndpoints(rank, op);
      if (id == rank.rank && count == rank.ranks) continue;
      findings_.Error("E-check-ranks", StartOf(rank),
                      StrCat(op.type(), " is for rank ", id, " of ", count, ", but the program is rank ",
                             rank.rank, " of ", rank.ranks),
                      &op);
    }
  }

  void CheckEndpoints(const RankFacts& rank, const Op& op) {
    const auto own = op.GetOr<std::string>("endpoint", "");
    const std::vector<std::string>& others = StringsOf(op, "other_endpoints");
    if (own == rank.endpoint && others == StringsOf(*rank.joins, "other_endpoints")) return;
    findings_.Error("E-check-ranks", StartOf(rank),
                    StrCat("joins as ", own, " beside ", Join(others, ", "), ", and another ring as ",
                           rank.endpoint, " beside ", Join(StringsOf(*rank.joins, "other_endpoints"), ", ")),
                    &op);
  }

  void CheckRings(const RankFacts& rank) {
    if (rank.trainer->startup == nullptr) return;
    for (const auto* program : {&rank.trainer->startup->program, &rank.trainer->file->program}) {
      for (const OpEntry& entry : program->main().ops()) {
        const auto* ring = entry.op->Get<std::int32_t>("ring_id");
        if (ring == nullptr || rank.rings.contains(*ring)) continue;
        findings_.Error("E-check-ring", *rank.trainer->file,
                        StrCat(entry.op->type(), " uses ring ", *ring, ", which no rank joins"),
                        entry.op.get());
      }
    }
  }

  // The i-th operation of a ring is the same on all ranks, because it runs on all of them at once.
  void Compare(const std::vector<Collective>& own, const std::vector<Collective>& reference,
               const RoleProgram* file, const RoleProgram* other) {
    if (file == nullptr || other == nullptr) return;
    for (std::size_t i = 0; i < std::max(own.size(), reference.size()); ++i) {
      if (i >= own.size() || i >= reference.size()) {
        findings_.Error("E-check-collective-order", *file,
                        StrCat("has ", own.size(), " operations of all ranks, ", other->file, " has ",
                               reference.size(), ": one waits for the other forever"),
                        i < own.size() ? own[i].op : reference[i].op);
        return;
      }
      const Op& here = *own[i].op;
      const Op& there = *reference[i].op;
      const auto same = [&](const char* attr) {
        return here.GetOr<std::int32_t>(attr, 0) == there.GetOr<std::int32_t>(attr, 0);
      };
      if (here.type() == there.type() && same("ring_id") && same("root") &&
          TypeOf(*file, here) == TypeOf(*other, there) && here.InputName("X") == there.InputName("X"))
        continue;
      findings_.Error("E-check-collective-order", *file,
                      StrCat("does as its operation ", i, " of all ranks what ", other->file, " does not"),
                      &here);
      findings_.Detail(StrCat(other->file, ":  ", PrintOp(there)));
      return;
    }
  }

  static std::string TypeOf(const RoleProgram& file, const Op& op) {
    const Var* var = file.program.main().FindVar(op.InputName("X"));
    return var == nullptr ? "" : PrintVarType(*var);
  }

  // Either each gradient is summed once and is a mean, or parameters are.
  void CheckReduced(const RankFacts& rank) {
    if (rank.main.empty() && rank.rings.empty()) return CheckTold(rank);
    std::map<std::string, int> times;
    bool gradients = false;
    for (const Collective& one : rank.main) {
      if (!AddsUp(*one.op)) continue;
      ++times[one.op->InputName("X")];
      gradients |= Has(one.op->role(), OpRole::kBackward);
    }
    if (!gradients) {
      for (const auto& [param, op] : rank.trainer->gradients)
        RequireOnce(rank, times, std::string(param), *op);
      return;
    }
    for (const OpEntry& entry : rank.trainer->file->program.main().ops()) {
      if (!Has(entry.op->role(), OpRole::kBackward)) continue;
      for (const auto& [param, grad] : entry.op->RolePairs()) RequireOnce(rank, times, grad, *entry.op);
    }
    CheckLossScale(rank);
  }

  void RequireOnce(const RankFacts& rank, std::map<std::string, int>& times, const std::string& reduced,
                   const Op& made) {
    if (times[reduced] == 1) return;
    findings_.Error(
        "E-check-reduced", *rank.trainer->file,
        StrCat(reduced, " is added up over the ranks ", times[reduced], " times; it must be once"), &made);
  }

  // The runner of the program sums the gradients that role pairs of backward ops name.
  void CheckTold(const RankFacts& rank) {
    for (const std::string_view param : rank.trainer->updated_here) {
      if (rank.trainer->gradients.contains(param)) continue;
      findings_.Error("E-check-reduced", *rank.trainer->file,
                      StrCat("no backward op says that it makes the gradient of ", param,
                             ": nobody would add it up over the ranks"),
                      rank.joins);
    }
  }

  void CheckLossScale(const RankFacts& rank) {
    // For the devices of a process the number may be unknown; else it is that of the listed ranks.
    const auto listed = rank.joins == nullptr ? 0 : static_cast<int>(LongsOf(*rank.joins, "devices").size());
    const int ranks = rank.ranks < 1 ? listed : rank.ranks;
    const bool devices = ranks < 1;
    for (const auto& [scale, loss] : LossScales(rank.trainer->file->program, ranks)) {
      if (devices ? DevicesOf(scale).has_value() : TakesMeanOf(scale, ranks)) continue;
      findings_.Error("E-check-merge-scale", *rank.trainer->file,
                      devices ? StrCat("scales the gradient of the loss by ", scale,
                                       ", which is the mean of no number of devices")
                              : StrCat("scales the gradient of the loss by ", scale, "; the mean of ", ranks,
                                       listed > 0 ? " devices needs " : " ranks needs ",
                                       1.0f / static_cast<float>(ranks)),
                      loss);
    }
  }

  // Every parameter starts with rank 0's value.
  void CheckBroadcasts(const RankFacts& rank) {
    std::map<std::string_view, int> times;
    for (const Collective& one : rank.startup) {
      if (!GivesToOthers(*one.op)) continue;
      ++times[one.op->InputName("X")];
      const auto root = one.op->GetOr<std::int32_t>("root", 0);
      if (root == 0) continue;
      findings_.Error(
          "E-check-broadcast", *rank.trainer->startup,
          StrCat("starts ", one.op->InputName("X"), " from rank ", root, "; all start from rank 0"), one.op);
    }
    for (const std::string_view param : rank.trainer->updated_here) {
      if (times[param] == 1) continue;
      findings_.Error(
          "E-check-broadcast", *rank.trainer->startup,
          StrCat("gives ", param, " of rank 0 to the others ", times[param], " times; it must be once"),
          rank.joins);
    }
  }

  const std::vector<RankFacts> ranks_;
  const bool alone_;  // without pservers
  Findings& findings_;
};

}  // namespace

void CheckCollective(const RoleFacts& facts, Findings& findings) {
  if (facts.ranks() && !facts.trainers.empty()) CollectiveRules(facts, findings).Run();
}

}  // namespace penstock::check
