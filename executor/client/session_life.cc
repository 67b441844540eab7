// What a session does once in a trainer's life: give the servers the values to begin from, go before it has
// completed, hear that another one has.
#include "executor/client/session.h"

namespace penstock::client {

// Travels like a first value, as a push of what is received itself, in step 0.
Status Session::PushInitial(const InitialPiece& given) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(CheckOpen());
  const auto found = peers_.find(given.pserver);
  if (found == peers_.end()) {
    return InvalidArgument("E-contract-unknown", given.name, " is received from pserver ", given.pserver,
                           " by no op of the programs attached");
  }
  Peer& peer = *found->second;
  const int param = peer.contract.FindParam(given.name);
  const int table = peer.contract.FindTable(given.name);
  if (param < 0 && table < 0) {
    return InvalidArgument("E-contract-unknown", "no op of the programs attached receives ", given.name,
                           " from pserver ", given.pserver);
  }
  const auto variable = static_cast<std::uint32_t>(param >= 0 ? param : table);
  const protocol::ContractPiece& piece = PieceOf(peer, variable);
  if (!given.value.initialized() || given.value.dtype() != piece.dtype ||
      given.value.shape() != piece.shape) {
    return InvalidArgument("E-load-shape", piece, " is declared, the value to begin from is ",
                           given.value.initialized()
                               ? StrCat(DTypeName(given.value.dtype()), given.value.shape())
                               : std::string("missing"));
  }
  if (step_ > 0 || !peer.pushed.empty() || !peer.initial.insert(variable).second) {
    return FailedPrecondition(
        "E-load-late", given.name, " cannot be set on pserver ", given.pserver,
        " any more: initial values are taken once, before this trainer's first step (it is at ", step_, ")");
  }
  Enqueue(peer, {.kind = protocol::MessageKind::kPush,
                 .step = 0,
                 .variable = variable,
                 .chunk = 0,
                 .value = given.value.Clone(),
                 .body = {},
                 .first_value = true});
  return OkStatus();
}

void Session::Abandon(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (!CompleteDoneLocked()) Fail(why);
}

// Every server tells it; it is one line.
void Session::OnLeft(const protocol::Envelope& envelope) {
  if (!left_.insert(envelope.credit).second) return;
  options_.report(StrCat("trainer ", envelope.credit, " completed at step ", envelope.step,
                         "; this one goes on at step ", step_, ", and servers count its gradients as zeros"));
}

}  // namespace penstock::client
