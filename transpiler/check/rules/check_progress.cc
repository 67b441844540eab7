// A synchronous job makes progress. The rule simulates startup and two steps: every op in its program's
// order, every pserver in its phases. If all remaining processes wait, the finding follows who waits for whom
// until it reaches a cycle or a process that never arrives.
//
//   pserver  gives initial values until every trainer's startup fetch_barrier; then takes gradients until
//            every send_barrier, updates, gives parameters until every fetch_barrier, and takes gradients
//            again. Before it updates, it may exchange what it has measured with other pservers, and waits
//            until they have taken their gradients too
//   trainer  waits in a send or send_barrier until the pserver takes, in a recv or fetch_barrier until it
//            gives
//
// Trainers without a program in the set behave like the others, so no process waits for them.
#include <algorithm>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

constexpr int kSteps = 2;  // the second one shows whether the first one ended

enum class Deed { kSend, kEndSends, kRecv, kEndRecvs };

struct Event {
  Deed deed = Deed::kSend;
  const Op* op = nullptr;
  const RoleProgram* file = nullptr;
  int step = 0;       // 0 is startup
  std::string place;  // line of the user's program
  std::vector<std::size_t> pservers;
};

struct TrainerState {
  std::vector<Event> events;
  std::size_t at = 0;
  std::set<std::size_t> done;  // pservers for which the current event is complete
  bool finished() const { return at == events.size(); }
};

struct PserverState {
  int step = 0;
  bool takes = false;              // receives gradients; else gives parameters
  std::set<std::size_t> ended;     // trainers whose barrier of this phase has arrived
  std::vector<std::size_t> peers;  // pservers whose measures it awaits before it updates
  int told = 0;                    // the last step whose measures it has sent to its peers
};

bool Gives(Deed deed) { return deed == Deed::kRecv || deed == Deed::kEndRecvs; }
bool Ends(Deed deed) { return deed == Deed::kEndSends || deed == Deed::kEndRecvs; }

class Play {
 public:
  Play(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {
    const bool starts = std::all_of(facts.trainers.begin(), facts.trainers.end(),
                                    [](const TrainerFacts& trainer) { return trainer.startup != nullptr; });
    for (const TrainerFacts& trainer : facts.trainers) trainers_.push_back(EventsOf(trainer, starts));
    pservers_.resize(facts.pservers.size());
    for (std::size_t p = 0; p < pservers_.size(); ++p) {
      if (facts.pservers[p].exchange != nullptr) pservers_[p].peers = PeersOf(*facts.pservers[p].exchange);
    }
    for (PserverState& pserver : pservers_) {
      pserver.takes = !starts;
      pserver.step = starts ? 0 : 1;
    }
  }

  void Run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t t = 0; t < trainers_.size(); ++t) moved |= Advance(t);
      for (PserverState& pserver : pservers_) moved |= Advance(pserver);
    }
    for (std::size_t t = 0; t < trainers_.size(); ++t) {
      if (trainers_[t].finished()) continue;
      Tell(t);
      return;  // the others wait for the same thing
    }
  }

 private:
  std::vector<std::size_t> PserversOf(roles::Names addresses) const {
    std::vector<std::size_t> out;
    for (const std::string& address : addresses) {
      const auto it = facts_.by_address.find(address);
      if (it != facts_.by_address.end() && std::find(out.begin(), out.end(), it->second) == out.end())
        out.push_back(it->second);
    }
    return out;
  }

  std::vector<std::size_t> PeersOf(const Op& exchange) const {
    return PserversOf(roles::ExchangeView(exchange).peers());
  }

  // The user wrote no communication op; the line is that of the op that made the gradient.
  static std::string PlaceOf(const TrainerFacts& trainer, const Transfer& transfer) {
    if (!transfer.op->location().empty()) return transfer.op->location();
    const auto made = trainer.gradients.find(transfer.param.empty() ? transfer.whole : transfer.param);
    return made == trainer.gradients.end() ? "" : made->second->location();
  }

  void Add(const TrainerFacts& trainer, const std::vector<Transfer>& transfers, Deed deed,
           std::map<int, Event>& events) const {
    for (const Transfer& transfer : transfers) {
      std::vector<std::string> addresses;
      for (const Piece& piece : transfer.pieces) addresses.emplace_back(piece.pserver);
      events[transfer.position] = {.deed = deed,
                                   .op = transfer.op,
                                   .place = PlaceOf(trainer, transfer),
                                   .pservers = PserversOf(addresses)};
    }
  }
  void Add(const std::vector<Barrier>& barriers, Deed deed, std::map<int, Event>& events) const {
    for (const Barrier& barrier : barriers) {
      events[barrier.position] = {.deed = deed, .op = barrier.op, .pservers = PserversOf(barrier.pservers)};
    }
  }
  static void Append(const std::map<int, Event>& events, const RoleProgram& file, int step,
                     TrainerState& out) {
    for (const auto& [position, event] : events) {
      out.events.push_back(event);
      out.events.back().file = &file;
      out.events.back().step = step;
    }
  }

  TrainerState EventsOf(const TrainerFacts& trainer, bool starts) const {
    TrainerState state;
    std::map<int, Event> events;  // by position in their program
    if (starts) {
      Add(trainer, trainer.startup_recvs, Deed::kRecv, events);
      Add(trainer.startup_barriers, Deed::kEndRecvs, events);
      Append(events, *trainer.startup, 0, state);
    }
    events.clear();
    Add(trainer, trainer.sends, Deed::kSend, events);
    Add(trainer, trainer.recvs, Deed::kRecv, events);
    Add(trainer.send_barriers, Deed::kEndSends, events);
    Add(trainer.fetch_barriers, Deed::kEndRecvs, events);
    for (int step = 1; step <= kSteps; ++step) Append(events, *trainer.file, step, state);
    return state;
  }

  bool Ready(const Event& event, std::size_t pserver) const {
    const PserverState& state = pservers_[pserver];
    return state.takes != Gives(event.deed) && state.step == event.step;
  }

  bool Advance(std::size_t t) {
    TrainerState& trainer = trainers_[t];
    bool moved = false;
    while (!trainer.finished()) {
      const Event& event = trainer.events[trainer.at];
      for (const std::size_t pserver : event.pservers) {
        if (trainer.done.contains(pserver) || !Ready(event, pserver)) continue;
        trainer.done.insert(pserver);
        if (Ends(event.deed)) pservers_[pserver].ended.insert(t);
        moved = true;
      }
      if (trainer.done.size() < event.pservers.size()) break;
      trainer.done.clear();
      ++trainer.at;
      moved = true;
    }
    return moved;
  }

  // The pserver for whose measures this one waits once its own gradients are complete; nullopt if it does not
  // wait.
  std::optional<std::size_t> AwaitedPeer(const PserverState& pserver) const {
    if (!pserver.takes || pserver.ended.size() < trainers_.size()) return std::nullopt;
    for (const std::size_t peer : pserver.peers) {
      if (pservers_[peer].told < pserver.step) return peer;
    }
    return std::nullopt;
  }

  bool Advance(PserverState& pserver) {
    if (pserver.ended.size() < trainers_.size()) return false;
    if (pserver.takes && !pserver.peers.empty() && pserver.told < pserver.step) {
      pserver.told = pserver.step;
      return true;
    }
    if (AwaitedPeer(pserver)) return false;
    pserver.ended.clear();
    if (!pserver.takes) ++pserver.step;
    pserver.takes = !pserver.takes;
    return true;
  }

  // "recv of w.block0 and w.block1"; a barrier has no variables.
  static std::string DoneIn(const Event& event) {
    const ArgList& names = event.op->type() == "recv" ? event.op->Output("Out") : event.op->Input("X");
    const bool transfers = event.op->type() == "recv" || event.op->type() == "send";
    return transfers ? StrCat(event.op->type(), " of ", Join(names, " and ")) : event.op->type();
  }

  static std::string Where(const Event& event) {
    return StrCat("(", event.file->file, event.place.empty() ? "" : ", ", event.place, ")");
  }

  // Whether any of the trainer's remaining events ends this phase of the pserver.
  bool Comes(std::size_t t, std::size_t pserver) const {
    const Deed deed = pservers_[pserver].takes ? Deed::kEndSends : Deed::kEndRecvs;
    const auto& events = trainers_[t].events;
    return std::any_of(
        events.begin() + static_cast<std::ptrdiff_t>(trainers_[t].at), events.end(), [&](const Event& event) {
          return event.deed == deed && event.step == pservers_[pserver].step &&
                 std::find(event.pservers.begin(), event.pservers.end(), pserver) != event.pservers.end();
        });
  }

  std::string PhaseOf(std::size_t pserver) const {
    const PserverState& state = pservers_[pserver];
    if (state.step == 0) return "the start";
    return StrCat(state.takes ? "the gradients of step " : "the receives of step ", state.step);
  }

  // Starts at a waiting trainer and follows what it waits for.
  void Tell(std::size_t t) {
    std::vector<std::string> story;
    std::vector<std::size_t> seen;
    bool circle = false;
    const Event& first = trainers_[t].events[trainers_[t].at];
    for (bool comes = true; comes && !circle;) {
      seen.push_back(t);
      const TrainerState& trainer = trainers_[t];
      const Event& event = trainer.events[trainer.at];
      std::size_t pserver = event.pservers.front();
      for (const std::size_t candidate : event.pservers) {
        if (!trainer.done.contains(candidate)) pserver = candidate;
      }
      story.push_back(StrCat("trainer ", facts_.trainers[t].trainer_id, " waits in ", DoneIn(event), " for ",
                             facts_.pservers[pserver].address, " to ", Gives(event.deed) ? "give" : "take",
                             " in step ", event.step, " ", Where(event)));
      if (const std::optional<std::size_t> peer = AwaitedPeer(pservers_[pserver])) {
        story.push_back(StrCat(facts_.pservers[pserver].address, " waits in exchange_sums for ",
                               facts_.pservers[*peer].address, ", before it updates in step ", event.step));
        pserver = *peer;
        if (pservers_[pserver].peers.empty()) {
          story.push_back(StrCat(facts_.pservers[pserver].address, " takes no part in it"));
          Report(first, "the job waits forever", std::move(story));
          return;
        }
      }
      std::size_t missing = 0;
      while (missing + 1 < trainers_.size() && pservers_[pserver].ended.contains(missing)) ++missing;
      story.push_back(StrCat(facts_.pservers[pserver].address, " waits for ",
                             pservers_[pserver].takes ? "the send_barrier" : "the fetch_barrier",
                             " of trainer ", facts_.trainers[missing].trainer_id, ", to end ",
                             PhaseOf(pserver)));
      t = missing;
      comes = Comes(t, pserver);
      circle = comes && std::find(seen.begin(), seen.end(), t) != seen.end();
    }
    story.push_back(circle ? StrCat("trainer ", facts_.trainers[t].trainer_id,
                                    " reaches that only after the op in which it waits: the circle is closed")
                           : StrCat("trainer ", facts_.trainers[t].trainer_id, " never comes to that"));
    Report(first, circle ? "the job waits in a circle, forever" : "the job waits forever", std::move(story));
  }

  void Report(const Event& first, std::string message, std::vector<std::string> story) {
    findings_.Error("E-check-deadlock", *first.file, std::move(message), first.op);
    for (std::string& line : story) findings_.Detail(std::move(line));
  }

  const RoleFacts& facts_;
  Findings& findings_;
  std::vector<TrainerState> trainers_;
  std::vector<PserverState> pservers_;
};

}  // namespace

void CheckProgress(const RoleFacts& facts, Findings& findings) {
  if (facts.trainers.empty() || facts.pservers.empty() || !facts.sync() || facts.async_called_sync()) return;
  Play(facts, findings).Run();
}

}  // namespace penstock::check
