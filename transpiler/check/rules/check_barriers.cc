// Trainers and pservers agree on their numbers, on the mode, and on the end of a step.
#include <algorithm>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class BarrierRules {
 public:
  BarrierRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    CheckPservers();
    CheckTrainerIds();
    if (facts_.pservers.empty()) return;
    const bool async = facts_.async_called_sync();
    if (async) {
      findings_.Error(
          "E-check-mode", *facts_.pservers.front().file,
          StrCat("waits in sync mode (distributed_mode 0) for barriers, but no trainer ends a step and ",
                 "no block merges: the set is asynchronous, and waits forever"),
          facts_.pservers.front().serve);
    }
    for (const TrainerFacts& trainer : facts_.trainers) {
      trainer_ = &trainer;
      CheckMode();
      if (facts_.sync() && !async) CheckStep();
      const bool starts = !trainer.startup_recvs.empty() || !trainer.startup_barriers.empty();
      if (trainer.startup != nullptr && starts) CheckStart();
    }
  }

 private:
  void CheckPservers() {
    std::map<std::string, const PserverFacts*> by_address;
    std::map<int, const PserverFacts*> by_id;
    const int count = static_cast<int>(facts_.pservers.size());
    for (const PserverFacts& pserver : facts_.pservers) {
      const auto [it, first] = by_address.emplace(pserver.address, &pserver);
      if (!first) {
        findings_.Error("E-check-address-twice", *pserver.file,
                        StrCat("listens at ", pserver.address, ", as does ", it->second->file->file),
                        pserver.serve);
      }
      const PserverFacts& reference = facts_.pservers.front();
      if (pserver.trainers != reference.trainers) {
        findings_.Error("E-check-trainers", *pserver.file,
                        StrCat("waits for ", pserver.trainers, " trainers, ", reference.file->file, " for ",
                               reference.trainers),
                        pserver.serve);
      }
      if (pserver.mode != reference.mode) {
        findings_.Error("E-check-mode", *pserver.file,
                        StrCat("has distributed_mode ", static_cast<int>(pserver.mode), ", ",
                               reference.file->file, " has ", static_cast<int>(reference.mode)),
                        pserver.serve);
      }
      const int id = pserver.said().number().value_or(-1);
      const bool numbered = id != -1;
      if (numbered != (reference.said().number().value_or(-1) != -1)) {
        findings_.Error("E-check-pserver-id", *pserver.file,
                        StrCat("has number ", id, ", ", reference.file->file, " has ",
                               reference.said().number().value_or(-1), "; all are numbered or none is"),
                        pserver.serve);
      }
      if (!numbered) continue;
      const auto [same, fresh] = by_id.emplace(id, &pserver);
      if (!fresh || id < 0 || id >= count) {
        findings_.Error("E-check-pserver-id", *pserver.file,
                        fresh ? StrCat("is pserver ", id, "; there are ", count, ", 0 to ", count - 1)
                              : StrCat("is pserver ", id, ", as is ", same->second->file->file),
                        pserver.serve);
      }
    }
  }

  void CheckTrainerIds() {
    std::map<int, const TrainerFacts*> by_id;
    for (const TrainerFacts& trainer : facts_.trainers) {
      const auto [it, first] = by_id.emplace(trainer.trainer_id, &trainer);
      if (!first) {
        findings_.Error("E-check-trainer-id", *trainer.file,
                        StrCat("is trainer ", trainer.trainer_id, ", as is ", it->second->file->file));
      }
    }
    if (facts_.pservers.empty()) return;
    const int expected = facts_.pservers.front().trainers;
    for (const auto& [id, trainer] : by_id) {
      if (id >= 0 && id < expected) continue;
      findings_.Error(
          "E-check-trainer-id", *trainer->file,
          StrCat("is trainer ", id, "; the pservers wait for ", expected, " trainers, 0 to ", expected - 1));
    }
    if (!by_id.empty() && static_cast<int>(by_id.size()) < expected) {
      findings_.Note("N-check-trainers", *facts_.trainers.front().file,
                     StrCat("the set has ", by_id.size(), " of ", expected,
                            " trainers; the others are taken to be like these"));
    }
  }

  // The pservers' mode matches the way in which this trainer sends.
  void CheckMode() {
    const PserverFacts& pserver = facts_.pservers.front();
    const bool talks = !trainer_->sends.empty();
    std::string wrong;
    if (trainer_->by_communicator) CheckRound();
    if (!trainer_->tells_ids.empty() && pserver.mode != ServeMode::kGeo) {
      findings_.Error("E-check-mode", *trainer_->file,
                      StrCat("tells a communicator what changed, but ", pserver.file->file,
                             " has distributed_mode ", static_cast<int>(pserver.mode), ", not 3 (geo)"),
                      trainer_->tells_ids.front().op);
    }
    switch (pserver.mode) {
      case ServeMode::kSync:
        return;  // see CheckStep, or the communicator's own barriers
      case ServeMode::kAsync:
        if (talks && !trainer_->by_communicator)
          wrong = "waits for a communicator's messages; this trainer sends by ops";
        break;
      case ServeMode::kHalfAsync:
        if (trainer_->by_communicator)
          wrong = "takes each gradient by itself; this trainer sends by a communicator";
        break;
      case ServeMode::kGeo:
        if (talks) wrong = "takes changes of parameters; this trainer sends gradients";
        break;
      default:
        wrong = "is none of sync (0), async (1), half async (2) and geo (3)";
    }
    if (!wrong.empty()) {
      findings_.Error(
          "E-check-mode", *trainer_->file,
          StrCat("distributed_mode ", static_cast<int>(pserver.mode), " of ", pserver.file->file, " ", wrong),
          pserver.serve);
    }
    for (const Barrier& barrier : trainer_->send_barriers) {
      if (trainer_->by_communicator) continue;
      findings_.Error("E-check-mode", *trainer_->file,
                      StrCat("ends a step, but ", pserver.file->file, " has distributed_mode ",
                             static_cast<int>(pserver.mode), " and waits for none"),
                      barrier.op);
    }
    for (const Barrier& barrier : trainer_->fetch_barriers) {
      findings_.Error("E-check-mode", *trainer_->file,
                      StrCat("ends its receives together, but ", pserver.file->file, " has distributed_mode ",
                             static_cast<int>(pserver.mode), " and waits for none"),
                      barrier.op);
    }
  }

  // A communicator's round ends at all pservers at once, and its barrier names the trainer.
  void CheckRound() {
    if (trainer_->send_barriers.empty()) return;
    const Reached reached = Reach(trainer_->send_barriers, *trainer_->file, "send_barrier",
                                  "the communicator's round would not end there");
    for (const Barrier& barrier : trainer_->send_barriers) {
      if (roles::BarrierView(*barrier.op).half_async() && !barrier.op->OutputName("Out").empty()) continue;
      findings_.Error("E-check-mode", *trainer_->file,
                      "ends a step by itself, but sends by a communicator (half_async is not set)",
                      barrier.op);
    }
  }

  // The position at which this trainer's barrier of one kind reaches each pserver. Adds a finding for each
  // pserver that it misses or reaches twice.
  using Reached = std::map<std::string_view, const Barrier*>;
  Reached Reach(const std::vector<Barrier>& barriers, const RoleProgram& file, std::string_view type,
                std::string_view consequence) {
    Reached reached;
    if (barriers.empty()) {
      findings_.Error("E-check-barrier-missing", file, StrCat("has no ", type, ": ", consequence));
      return reached;
    }
    for (const Barrier& barrier : barriers) {
      for (const std::string& address : barrier.pservers) {
        if (facts_.FindPserver(address) == nullptr) {
          findings_.Error("E-check-barrier-endpoints", file,
                          StrCat(type, " names ", address, ", but no pserver of the set has that address"),
                          barrier.op);
        } else if (!reached.emplace(address, &barrier).second) {
          findings_.Error("E-check-barrier-twice", file,
                          StrCat(type, " reaches ", address, " twice; a step ends once"), barrier.op);
        }
      }
    }
    for (const PserverFacts& pserver : facts_.pservers) {
      if (reached.contains(pserver.address)) continue;
      findings_.Error("E-check-barrier-endpoints", file,
                      StrCat(type, " does not reach ", pserver.address, ": ", consequence),
                      barriers.front().op);
    }
    return reached;
  }

  void CheckStep() {
    const Reached sent = Reach(trainer_->send_barriers, *trainer_->file, "send_barrier",
                               "the pservers run in sync mode and would wait forever");
    const Reached fetched = Reach(trainer_->fetch_barriers, *trainer_->file, "fetch_barrier",
                                  "the pserver would wait forever to take the next step's gradients");
    for (const Barrier& barrier : trainer_->send_barriers) {
      if (!roles::BarrierView(*barrier.op).half_async()) continue;
      findings_.Error("E-check-mode", *trainer_->file,
                      "send_barrier is for a communicator (half_async), which this trainer does not use",
                      barrier.op);
    }
    for (const Transfer& send : trainer_->sends) {
      for (const Piece& piece : send.pieces) {
        const auto end = sent.find(piece.pserver);
        if (end == sent.end() || send.position < end->second->position) continue;
        Order(StrCat("sends ", piece.local, " to ", piece.pserver,
                     " after the send_barrier that ends its step"),
              send.op);
      }
    }
    for (const Transfer& recv : trainer_->recvs) CheckRecvOrder(recv, sent, fetched);
  }

  void Order(std::string message, const Op* op) {
    findings_.Error("E-check-barrier-order", *trainer_->file, std::move(message), op);
  }

  void CheckRecvOrder(const Transfer& recv, const Reached& sent, const Reached& fetched) {
    for (const Piece& piece : recv.pieces) {
      const auto end = sent.find(piece.pserver);
      const auto complete = fetched.find(piece.pserver);
      if (end != sent.end() && recv.position < end->second->position) {
        Order(StrCat("receives ", piece.local, " before the send_barrier: the step it asks for is not over"),
              recv.op);
      } else if (complete != fetched.end() && recv.position > complete->second->position) {
        Order(StrCat("receives ", piece.local, " after the fetch_barrier that completes its step"), recv.op);
      } else if (complete != fetched.end() && recv.cut_op != nullptr &&
                 recv.cut_position < complete->second->position) {
        Order(StrCat("joins the slices of ", recv.whole, " before the fetch_barrier that completes them"),
              recv.cut_op);
      }
    }
  }

  // The startup program requests version 0 and reports when it has it; a sync pserver waits for the report.
  void CheckStart() {
    const Reached complete = Reach(trainer_->startup_barriers, *trainer_->startup, "fetch_barrier",
                                   "the start would not be complete");
    for (const Transfer& recv : trainer_->startup_recvs) {
      for (const Piece& piece : recv.pieces) {
        const auto end = complete.find(piece.pserver);
        if (end == complete.end()) continue;
        const bool late = recv.position > end->second->position;
        const bool early = recv.cut_op != nullptr && recv.cut_position < end->second->position;
        if (!late && !early) continue;
        findings_.Error("E-check-barrier-order", *trainer_->startup,
                        StrCat(late ? "receives " : "joins ", late ? piece.local : recv.whole,
                               late ? " after" : " before", " the fetch_barrier that completes the start"),
                        late ? recv.op : recv.cut_op);
      }
    }
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const TrainerFacts* trainer_ = nullptr;
};

}  // namespace

void CheckBarriers(const RoleFacts& facts, Findings& findings) { BarrierRules(facts, findings).Run(); }

}  // namespace penstock::check
