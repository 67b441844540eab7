// Trainers and pservers agree on how many there are and on when a step ends.
#include <algorithm>

#include "transpiler/check/facts.h"

namespace penstock {
namespace {

class BarrierRules {
 public:
  BarrierRules(const RoleFacts& facts, std::vector<Finding>& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    CheckPservers();
    CheckTrainerIds();
    if (facts_.pservers.empty() || !facts_.sync()) return;
    for (const TrainerFacts& trainer : facts_.trainers) CheckTrainer(trainer);
  }

 private:
  void Add(Severity severity, std::string id, const RoleProgram& file, std::string message,
           const Op* op = nullptr) {
    findings_.push_back(MakeFinding(severity, std::move(id), file, std::move(message), op));
  }

  void CheckPservers() {
    std::map<std::string, const PserverFacts*> by_address;
    for (const PserverFacts& pserver : facts_.pservers) {
      const auto [it, first] = by_address.emplace(pserver.address, &pserver);
      if (!first) {
        Add(Severity::kError, "E-check-address-twice", *pserver.file,
            StrCat("listens at ", pserver.address, ", as does ", it->second->file->file), pserver.serve);
      }
      const PserverFacts& reference = facts_.pservers.front();
      if (pserver.trainers != reference.trainers) {
        Add(Severity::kError, "E-check-trainers", *pserver.file,
            StrCat("waits for ", pserver.trainers, " trainers, ", reference.file->file, " for ",
                   reference.trainers),
            pserver.serve);
      }
      if (pserver.mode != reference.mode) {
        Add(Severity::kError, "E-check-mode", *pserver.file,
            StrCat("has distributed_mode ", pserver.mode, ", ", reference.file->file, " has ",
                   reference.mode),
            pserver.serve);
      }
    }
  }

  void CheckTrainerIds() {
    std::map<int, const TrainerFacts*> by_id;
    for (const TrainerFacts& trainer : facts_.trainers) {
      const auto [it, first] = by_id.emplace(trainer.trainer_id, &trainer);
      if (!first) {
        Add(Severity::kError, "E-check-trainer-id", *trainer.file,
            StrCat("is trainer ", trainer.trainer_id, ", as is ", it->second->file->file));
      }
    }
    if (facts_.pservers.empty()) return;
    const int expected = facts_.pservers.front().trainers;
    for (const auto& [id, trainer] : by_id) {
      if (id >= 0 && id < expected) continue;
      Add(Severity::kError, "E-check-trainer-id", *trainer->file,
          StrCat("is trainer ", id, "; the pservers wait for ", expected, " trainers, 0 to ", expected - 1));
    }
    if (!by_id.empty() && static_cast<int>(by_id.size()) < expected) {
      Add(Severity::kNote, "N-check-trainers", *facts_.trainers.front().file,
          StrCat("the set has ", by_id.size(), " of ", expected,
                 " trainers; the others are taken to be like these"));
    }
  }

  // The one barrier of its kind, or null with a finding.
  const Barrier* Only(const TrainerFacts& trainer, const std::vector<Barrier>& barriers,
                      std::string_view type, std::string_view consequence) {
    if (barriers.empty()) {
      Add(Severity::kError, "E-check-barrier-missing", *trainer.file,
          StrCat("has no ", type, ": ", consequence));
      return nullptr;
    }
    if (barriers.size() > 1) {
      Add(Severity::kError, "E-check-barrier-twice", *trainer.file,
          StrCat("has ", barriers.size(), " ", type, " ops; a step ends once"), barriers.back().op);
    }
    return &barriers.front();
  }

  void CheckCovers(const TrainerFacts& trainer, const Barrier& barrier) {
    for (const PserverFacts& pserver : facts_.pservers) {
      if (std::find(barrier.pservers.begin(), barrier.pservers.end(), pserver.address) !=
          barrier.pservers.end())
        continue;
      Add(Severity::kError, "E-check-barrier-endpoints", *trainer.file,
          StrCat(barrier.op->type(), " does not reach ", pserver.address, ", which waits for it"),
          barrier.op);
    }
    for (const std::string& address : barrier.pservers) {
      if (facts_.FindPserver(address) != nullptr) continue;
      Add(Severity::kError, "E-check-barrier-endpoints", *trainer.file,
          StrCat(barrier.op->type(), " names ", address, ", but no pserver of the set has that address"),
          barrier.op);
    }
  }

  void CheckTrainer(const TrainerFacts& trainer) {
    const Barrier* sent = Only(trainer, trainer.send_barriers, "send_barrier",
                               "the pservers run in sync mode and would wait for ever");
    const Barrier* fetched = Only(trainer, trainer.fetch_barriers, "fetch_barrier",
                                  "later ops may read parameters that have not arrived");
    if (sent != nullptr) CheckCovers(trainer, *sent);
    if (fetched != nullptr) CheckCovers(trainer, *fetched);
    for (const Message& message : trainer.sends) {
      if (sent == nullptr || message.position < sent->position) continue;
      Add(Severity::kError, "E-check-barrier-order", *trainer.file,
          StrCat("sends ", message.local, " after the send_barrier that ends its step"), message.op);
    }
    for (const Message& message : trainer.recvs) {
      if (sent != nullptr && message.position < sent->position) {
        Add(Severity::kError, "E-check-barrier-order", *trainer.file,
            StrCat("receives ", message.local, " before the send_barrier: the step it asks for is not over"),
            message.op);
      } else if (fetched != nullptr && message.position > fetched->position) {
        Add(Severity::kError, "E-check-barrier-order", *trainer.file,
            StrCat("receives ", message.local, " after the fetch_barrier that completes its step"),
            message.op);
      }
    }
    for (const auto& entry : trainer.joined) {  // no structured binding: clang 14 cannot capture one
      const std::string& param = entry.first;
      const TrainerFacts::Pieces& pieces = entry.second;
      const bool received = std::any_of(trainer.recvs.begin(), trainer.recvs.end(),
                                        [&](const Message& m) { return m.param == param; });
      if (!received || fetched == nullptr || pieces.position > fetched->position) continue;
      Add(Severity::kError, "E-check-barrier-order", *trainer.file,
          StrCat("joins the slices of ", param, " before the fetch_barrier that completes them"), pieces.op);
    }
  }

  const RoleFacts& facts_;
  std::vector<Finding>& findings_;
};

}  // namespace

void CheckBarriers(const RoleFacts& facts, std::vector<Finding>& findings) {
  BarrierRules(facts, findings).Run();
}

}  // namespace penstock
