#include "executor/client/session_client.h"

namespace penstock::client {

Status SessionClient::Attach(const Program& program) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  // Requests that are made ahead name variables by their numbers in the contract, which may change.
  if (!session_.RowsDone()) PENSTOCK_RETURN_IF_ERROR(CompleteRows());
  PENSTOCK_RETURN_IF_ERROR(session_.Attach(program));
  return session_.Join() ? OkStatus() : Wait([&] { return session_.Join(); });
}

Status SessionClient::Push(PushHandle piece, const Variable& value) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  if (const auto* rows = value.If<SelectedRows>()) return session_.PushRows(piece, *rows);
  const auto* tensor = value.If<Tensor>();
  if (tensor == nullptr)
    return InvalidArgument("E-send-kind", "send: only tensors and rows of them are sent");
  return session_.Push(piece, *tensor);
}

Status SessionClient::PushWithResidual(PushHandle piece, const Tensor& value, const Tensor& residual) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  return session_.Push(piece, value, residual);
}

Status SessionClient::CompleteRows() {
  return Wait([&] { return session_.RowsDone(); });
}

Status SessionClient::CountStep(PeersHandle pservers) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  return session_.CountStep(pservers);
}

Status SessionClient::EndStep(PeersHandle pservers) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  PENSTOCK_RETURN_IF_ERROR(session_.EndStep(pservers));
  // After this, the caller may overwrite the gradients of all steps before the one that just ended.
  return Wait([&] { return session_.EarlierPushesDone(session_.step() - 1); });
}

Status SessionClient::WaitForEarlier(PullHandle piece) {
  return session_.IsPulling(piece) ? Wait([&] { return session_.PullsDone(); }) : OkStatus();
}

Status SessionClient::PullAhead(PullHandle piece, Variable& out) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  PENSTOCK_RETURN_IF_ERROR(WaitForEarlier(piece));
  return session_.PullAhead(piece, out.As<Tensor>());
}

Status SessionClient::PullNext(PullHandle piece, Variable& out) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  return session_.PullNext(piece, out.As<Tensor>());
}

Status SessionClient::Pull(PullHandle piece, Variable& out) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  PENSTOCK_RETURN_IF_ERROR(WaitForEarlier(piece));
  PENSTOCK_RETURN_IF_ERROR(session_.Pull(piece, out.As<Tensor>()));
  if (session_.PullWaitsAtBarrier(piece)) return OkStatus();
  // After this, the caller may overwrite the gradients that were pushed before.
  return Wait([&] { return session_.PullsDone() && session_.EarlierPushesDone(session_.step()); });
}

Status SessionClient::PullChanged(PullHandle piece, std::shared_ptr<SelectedRows> out) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  return session_.PullChanged(piece, std::move(out));
}

Status SessionClient::CompletePulls(PeersHandle) { return CompleteAhead(); }

// Initial values, which need no step of another trainer, are waited for.
Status SessionClient::LeavePulls(PeersHandle pservers) {
  if (session_.step() == 0) return CompletePulls(pservers);
  PENSTOCK_RETURN_IF_ERROR(Wait([&] { return session_.EarlierPushesDone(session_.step()); }));
  left_ = true;
  return OkStatus();
}

Status SessionClient::CompleteLeft() {
  if (!left_) return OkStatus();
  Status status = session_.PullsDone() ? OkStatus() : Wait([&] { return session_.PullsDone(); });
  left_ = false;  // after an error, too: it has been reported
  return status;
}

// Another thread may begin the next step meanwhile: it has waited for all that was left.
bool SessionClient::HasLeftInto(const Variable& variable) const {
  const auto* tensor = variable.If<Tensor>();
  return left_ && tensor != nullptr && session_.IsPullingInto(*tensor);
}

Status SessionClient::CompleteLeftInto(const Variable& variable) {
  if (!HasLeftInto(variable)) return OkStatus();
  session_.SignalEachPull(true);
  Status status = Wait([&] { return !HasLeftInto(variable); });
  session_.SignalEachPull(false);
  if (!status.ok()) left_ = false;  // it has been reported
  return status;
}

Status SessionClient::CompleteAhead() {
  return Wait([&] { return session_.PullsDone() && session_.EarlierPushesDone(session_.step()); });
}

Status SessionClient::SaveTable(PeersHandle pservers, const std::string& table,
                                const std::vector<std::string>& files) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  PENSTOCK_RETURN_IF_ERROR(session_.SaveTable(pservers, table, files));
  PENSTOCK_RETURN_IF_ERROR(Wait([&] { return session_.SavesDone(); }));
  return session_.TakeSaved();
}

Status SessionClient::SetInitial(const std::vector<InitialPiece>& pieces) {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  for (const InitialPiece& piece : pieces) PENSTOCK_RETURN_IF_ERROR(session_.PushInitial(piece));
  // The servers must have them before any message of the first step.
  return Wait([&] { return session_.EarlierPushesDone(0); });
}

Result<std::uint64_t> SessionClient::FirstStep() {
  if (session_.trainer() < 0) return RpcClient::FirstStep();
  PENSTOCK_RETURN_IF_ERROR(Wait([&] { return session_.first_step().has_value(); }));
  return *session_.first_step();
}

Status SessionClient::Leave() {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  return session_.Complete();
}

Status SessionClient::Complete() {
  PENSTOCK_RETURN_IF_ERROR(CompleteLeft());
  PENSTOCK_RETURN_IF_ERROR(session_.Complete());
  return Wait([&] { return session_.CompleteDone(); });
}

}  // namespace penstock::client
