// Variables that no pserver updates start with trainer 0's values: trainer 0 sends each once to the pserver
// that holds it, and every trainer receives it from there.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class SharedStartRules {
 public:
  SharedStartRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const PserverFacts& pserver : facts_.pservers) CheckHeld(pserver);
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (trainer.startup == nullptr) continue;
      CheckSent(trainer);
      CheckReceived(trainer);
    }
  }

 private:
  void CheckHeld(const PserverFacts& pserver) {
    if (pserver.serve == nullptr) return;
    for (const std::string& name : pserver.said().start_values()) {
      const Var* var = pserver.file->program.main().FindVar(name);
      if (var == nullptr || !var->type || !var->persistable) {
        findings_.Error(kId, *pserver.file,
                        StrCat("holds the initial value of ", name, ", which it does not declare to last"),
                        pserver.serve);
      } else if (!held_.emplace(Place(pserver.address, name), var).second) {
        findings_.Error(kId, *pserver.file, StrCat("holds the initial value of ", name, " twice"),
                        pserver.serve);
      }
    }
  }

  // Sends of a startup program, except notices to a communicator.
  void CheckSent(const TrainerFacts& trainer) {
    sent_.clear();
    const auto& ops = trainer.startup->program.main().ops();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = *ops[i].op;
      if (roles::CommOf(op) != roles::Comm::kSend || roles::SendView(op).by_communicator()) continue;
      const roles::Names addresses = roles::SendView(op).addresses();
      const roles::Names names = roles::SendView(op).variables();
      for (std::size_t n = 0; n < names.size(); ++n) {
        CheckSend(trainer, op, {n < addresses.size() ? addresses[n] : std::string_view(), names[n]},
                  static_cast<int>(i));
      }
    }
    if (trainer.trainer_id != 0) return;
    for (const auto& [place, var] : held_) {
      if (sent_.contains(place)) continue;
      findings_.Error(
          kId, *trainer.startup,
          StrCat("does not send ", place.second, " to ", place.first, ", which waits for it to start"));
    }
  }

  void CheckSend(const TrainerFacts& trainer, const Op& op, const Place& place, int position) {
    const auto held = held_.find(place);
    if (held == held_.end()) {
      findings_.Error(
          kId, *trainer.startup,
          StrCat("sends ", place.second, " to ", place.first, ", which holds no such initial value"), &op);
      return;
    }
    if (trainer.trainer_id != 0) {
      findings_.Error(kId, *trainer.startup,
                      StrCat("sends the initial value of ", place.second, ", which is trainer 0's to send"),
                      &op);
    } else if (!sent_.emplace(place, position).second) {
      findings_.Error(kId, *trainer.startup, StrCat("sends the initial value of ", place.second, " twice"),
                      &op);
    }
    CheckType(trainer, op, place.second, *held->second);
  }

  void CheckReceived(const TrainerFacts& trainer) {
    std::map<Place, const Transfer*> received;
    for (const Transfer& recv : trainer.startup_recvs) {
      for (const Piece& piece : recv.pieces) received.emplace(Place(piece.pserver, piece.remote), &recv);
    }
    for (const auto& [place, var] : held_) {
      const auto it = received.find(place);
      if (it == received.end()) {
        findings_.Error("E-check-start-recv", *trainer.startup,
                        StrCat("does not receive ", place.second, " from ", place.first,
                               "; it would not start as trainer 0 does"));
        continue;
      }
      CheckType(trainer, *it->second->op, place.second, *var);
      const auto sent = sent_.find(place);
      if (sent == sent_.end() || sent->second < it->second->position) continue;
      findings_.Error(kId, *trainer.startup,
                      StrCat("waits for the initial value of ", place.second, " before it sends it"),
                      it->second->op);
    }
  }

  void CheckType(const TrainerFacts& trainer, const Op& op, std::string_view name, const Var& held) {
    const Var* var = trainer.startup->program.main().FindVar(name);
    if (var == nullptr || !var->type) return;
    if (var->kind == held.kind && var->type->dtype == held.type->dtype && var->shape() == held.shape())
      return;
    findings_.Error(
        kId, *trainer.startup,
        StrCat(name, " starts as ", PrintVarType(*var), ", but the pserver holds ", PrintVarType(held)), &op);
  }

  static constexpr char kId[] = "E-check-start-shared";
  const RoleFacts& facts_;
  Findings& findings_;
  std::map<Place, const Var*> held_;
  std::map<Place, int> sent_;  // positions of the current trainer's sends
};

}  // namespace

void CheckSharedStart(const RoleFacts& facts, Findings& findings) { SharedStartRules(facts, findings).Run(); }

}  // namespace penstock::check
