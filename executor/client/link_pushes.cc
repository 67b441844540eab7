// What a link sends. Before the welcome, all work waits in one queue. After it, a push without credit waits
// in its variable's queue, which is visited when the variable gets credit.
#include <algorithm>
#include <utility>

#include "executor/client/link.h"
#include "executor/client/piece_checks.h"
#include "executor/protocol/message_text.h"
#include "executor/protocol/native_codec.h"
#include "executor/protocol/payload_bytes.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

// The checksum of a smaller gradient takes less time than a second locking, and needs no memory.
constexpr std::size_t kLargeGradient = std::size_t{64} << 10;

Bytes BytesOf(const Tensor& tensor) { return {tensor.buffer(), tensor.raw(), tensor.bytes()}; }

bool IsUnsorted(const VariableCut& cut, const PushBytes& value) {
  return cut.rows && cut.shards > 1 && value.chunk_begins.empty();
}

}  // namespace

void Link::SendMessage(const protocol::Event& event, std::uint64_t contract) {
  notes_.Sent(protocol::PayloadBytes(event));
  if (protocol::ShowsMessage(event))
    Log(LogSeverity::kInfo, StrCat("to pserver ", address_, ": ", protocol::TextOf(event)));
  if (held_ > 0 && contract == sender_.contract && protocol::BatchWriter::Takes(event)) {
    batch_.Add(event);
    if (batch_.full()) SendBatch();
    return;
  }
  SendBatch();
  protocol::Sender sender = sender_;
  sender.contract = contract;
  connection_->Send(protocol::Encode(sender, event, protocol::ChecksumOver(*connection_)));
}

void Link::SendBatch() {
  if (!batch_.empty()) connection_->Send(batch_.Take(sender_, protocol::ChecksumOver(*connection_)));
}

void Link::Hold() {
  const std::lock_guard lock(mutex_);
  ++held_;
}

void Link::Release() {
  const std::lock_guard lock(mutex_);
  if (--held_ == 0) SendBatch();
}

template <typename E>
bool Link::SendKept(E event) {
  const auto [sent, replaced] =
      log_.Keep(std::move(event), sender_.contract, environment_.options.clock->Now());
  if (!closed_ && MaySend(sent.event)) SendMessage(sent.event, sent.contract);
  return !replaced;
}
template bool Link::SendKept(protocol::Hello);
template bool Link::SendKept(protocol::PullRows);
template bool Link::SendKept(protocol::DeclareKey);
template bool Link::SendKept(protocol::SetOptimizer);
template bool Link::SendKept(protocol::Barrier);
template bool Link::SendKept(protocol::CutKeys);
template bool Link::SendKept(protocol::CountGone);

void Link::BeginPush(const Variable& variable, std::uint64_t step) {
  if (variable.key != nullptr) {
    KeyState& key = *variable.key;
    if (key.open.empty()) key.done_below = step;
    if (step - key.done_below >= key.open.size()) key.open.resize(step - key.done_below + 1, 0);
    ++key.open[step - key.done_below];
  } else if (variable.is_gradient) {
    environment_.steps.BeginPush(step);
  } else {
    environment_.steps.Begin(Work::kFirstValues);
  }
}

void Link::EndPush(const Variable& variable, std::uint64_t step) {
  if (variable.key != nullptr) return EndKeyPush(*variable.key, step);
  if (variable.is_gradient ? environment_.steps.EndPush(step) : environment_.steps.End(Work::kFirstValues))
    changed_ = true;
}

// Sends a value that the caller has set. Like other initial values, it is a push of the parameter or table
// itself in step 0.
Status Link::PushInitial(const InitialPiece& given) {
  std::unique_lock lock(mutex_);
  const int param = contract_.FindParam(given.name);
  const int position = param >= 0 ? param : contract_.FindTable(given.name);
  if (position < 0) {
    return InvalidArgument("E-contract-unknown", "no op of the programs attached receives ", given.name,
                           " from pserver ", address_);
  }
  const Slot slot = slot_of_[static_cast<std::size_t>(position)];
  Variable& variable = variables_[slot];
  PENSTOCK_RETURN_IF_ERROR(RequireInitial(PieceOf(variable), given.value));
  const std::uint64_t step = environment_.steps.step();
  if (step > 0 || !pushed_.empty() || std::exchange(variable.has_initial, true)) {
    return FailedPrecondition(
        "E-load-late", given.name, " cannot be set on pserver ", address_,
        " any more: initial values are taken once, before this trainer's first step (it is at ", step, ")");
  }
  return Push(lock, PendingPush{.slot = slot, .value = {BytesOf(given.value.Clone())}});
}

Status Link::Push(Slot slot, const Tensor& value, const Tensor& residual) {
  std::unique_lock lock(mutex_);
  Variable& variable = variables_[slot];
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(PieceOf(variable), value));
  PENSTOCK_RETURN_IF_ERROR(RequireResidual(PieceOf(variable), value, residual));
  if (variable.is_gradient) {
    PENSTOCK_RETURN_IF_ERROR(OpenPush(slot));
    return Push(lock, PendingPush{.slot = slot,
                                  .step = environment_.steps.step(),
                                  .value = {BytesOf(value)},
                                  .residual = Target::Of(residual)});
  }
  // An initial value is sent as a push of the parameter itself in step 0. It is copied, because the pull
  // that follows overwrites it. If the startup program runs again, the server keeps its value.
  if (std::exchange(variable.has_start, true)) return OkStatus();
  return Push(lock, PendingPush{.slot = slot, .value = {BytesOf(value.Clone())}});
}

Status Link::PushRows(Slot slot, const SelectedRows& value) {
  std::unique_lock lock(mutex_);
  const Variable& variable = variables_[slot];
  const protocol::ContractPiece& piece = PieceOf(variable);
  if (!variable.is_gradient) {
    return InvalidArgument("E-send-shape", "send: ", piece.name,
                           " is an initial value, which must be a tensor, not selected rows");
  }
  PENSTOCK_RETURN_IF_ERROR(RequireRows(piece, value, tables_by_id_));
  PENSTOCK_RETURN_IF_ERROR(OpenPush(slot));
  const std::uint64_t step = environment_.steps.step();
  const std::uint32_t shards = variable.cut.shards;
  lock.unlock();  // to copy
  PendingPush push{.slot = slot, .step = step, .value = CopyOfRows(value, shards)};
  lock.lock();
  return Push(lock, std::move(push));
}

// Hands over a push that has been checked. Compression and checksums read the whole gradient, so the lock is
// released for them: meanwhile replies are handled. Before the welcome it is not known how the gradient is
// cut; then Send makes the bytes, and sorts rows by shard.
Status Link::Push(std::unique_lock<std::mutex>& lock, PendingPush push) {
  const Variable& variable = variables_[push.slot];
  BeginPush(variable, push.step);
  if (welcome_) {
    const VariableCut cut = CutOf(variable, push);
    const bool checksums = push.value.bytes.size >= kLargeGradient && NeedsChecksums();
    const bool compresses = !cut.compression.none() && push.threshold == 0;
    if (checksums || compresses || IsUnsorted(cut, push.value)) {
      lock.unlock();
      Make(cut, checksums, push);
      lock.lock();
    } else {
      push.made = true;
    }
  }
  HandOver(std::move(push));
  return OkStatus();
}

VariableCut Link::CutOf(const Variable& variable, const PendingPush& push) {
  VariableCut cut = variable.cut;
  if (push.threshold > 0) cut.compression = {.kind = Compression::Kind::kTwoBit, .threshold = push.threshold};
  return cut;
}

bool Link::NeedsChecksums() const {
  return protocol::ChecksumOver(*connection_) == protocol::BodyChecksum::kIncluded;
}

void Link::Make(const VariableCut& cut, bool checksums, PendingPush& push) const {
  if (IsUnsorted(cut, push.value)) push.value = SortRows(cut, push.value);
  if (!cut.rows && push.threshold == 0) {
    push.value = MakePushBytes(cut, std::move(push.value.bytes), reinterpret_cast<float*>(push.residual.data),
                               checksums);
  } else if (checksums) {
    AddChecksums(cut, push.value);
  }
  push.made = true;
  push.residual = {};
  if (push.value.plain_bytes > 0) notes_.Compressed(push.value.bytes.size, push.value.plain_bytes);
}

// A gradient may be pushed once per step.
Status Link::OpenPush(Slot slot) {
  Variable& variable = variables_[slot];
  if (variable.pushed) {
    return FailedPrecondition("E-send-twice", "send: ", PieceOf(variable).name, " was sent before in step ",
                              environment_.steps.step());
  }
  variable.pushed = true;
  pushed_.push_back(slot);
  return OkStatus();
}

bool Link::HasPushed() const {
  const std::lock_guard lock(mutex_);
  return !pushed_.empty();
}

bool Link::HasPushed(Slot slot) const {
  const std::lock_guard lock(mutex_);
  return variables_[slot].pushed;
}

// The step tracker counts this as a push, so waits for the step's pushes include it.
void Link::CountStep() {
  const std::lock_guard lock(mutex_);
  environment_.steps.BeginPush(environment_.steps.step());
  HandOver(PendingCount{environment_.steps.step()});
}

void Link::EndStep() {
  const std::lock_guard lock(mutex_);
  for (const Slot slot : pushed_) variables_[slot].pushed = false;
  HandOver(PendingEndStep{.step = environment_.steps.step(), .pushed = std::exchange(pushed_, {})});
}

Status Link::Pull(Slot slot, Tensor& out, Landing landing, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  Variable& variable = variables_[slot];
  const protocol::ContractPiece& piece = PieceOf(variable);
  Arriving& arriving = variable.arriving;
  if (arriving.active) {
    return FailedPrecondition("E-recv-twice", "recv: ", piece.name, " is being received already");
  }
  out.Refit(piece.dtype, piece.shape);
  BeginPull(arriving, landing, version);
  arriving.to = Target::Of(out);
  targets_.Add(arriving.to.data, out.bytes());
  HandOver(PendingPull{slot, version});
  return OkStatus();
}

Status Link::PullChanged(Slot slot, std::shared_ptr<SelectedRows> out, Landing landing) {
  const std::lock_guard lock(mutex_);
  Arriving& arriving = variables_[slot].arriving;
  if (arriving.active) {
    return FailedPrecondition("E-recv-twice", "recv: ", PieceOf(variables_[slot]).name,
                              " is being received already");
  }
  BeginPull(arriving, landing, environment_.steps.step());
  arriving.changed = std::move(out);
  HandOver(PendingPull{slot, arriving.version});
  return OkStatus();
}

void Link::BeginPull(Arriving& arriving, Landing landing, std::uint64_t version) {
  arriving.active = true;
  arriving.landing = landing;
  arriving.version = version;
  arriving.chunks_left = 0;
  ++pulls_;
  environment_.steps.Begin(Work::kPulls);
}

bool Link::IsPulling(Slot slot) const {
  const std::lock_guard lock(mutex_);
  return variables_[slot].arriving.active;
}

bool Link::IsPullingInto(const std::byte* begin, const std::byte* end) const {
  const std::lock_guard lock(mutex_);
  return targets_.Overlaps(begin, end);
}

void Link::Save(const std::string& table, const std::string& file) {
  const std::lock_guard lock(mutex_);
  environment_.steps.Begin(Work::kSaves);
  HandOver(protocol::Save{
      .version = environment_.steps.step(), .request = saves_++, .body = {.table = table, .file = file}});
}

void Link::HandOver(Pending pending) {
  if (welcome_ && !closed_) {
    Dispatch(pending);
  } else {
    before_welcome_.push_back(std::move(pending));
  }
}

void Link::Dispatch(Pending& pending) {
  ++visited_;
  std::visit([this](auto& what) { Send(what); }, pending);
}

void Link::SendAllThatWaited() {
  for (const Slot slot : slot_of_) {
    if (pushes_waiting_ > 0 && slot != kNoSlot) SendWaiting(variables_[slot]);
  }
  for (; !before_welcome_.empty(); before_welcome_.pop_front()) Dispatch(before_welcome_.front());
  SendCompleteIfLast();
}

void Link::Send(PendingPush& push) {
  Variable& variable = variables_[push.slot];
  if (!push.made) Make(CutOf(variable, push), false, push);
  push.order = ++orders_;
  if (variable.waiting.empty() && SendAllowed(push)) return EndPush(variable, push.step);
  variable.waiting.push_back(std::move(push));
  ++pushes_waiting_;
}

void Link::SendWaiting(Variable& variable) {
  if (!welcome_ || closed_) return;
  auto push = variable.waiting.begin();
  for (; push != variable.waiting.end(); ++push) {
    ++visited_;
    if (!SendAllowed(*push)) break;
    EndPush(variable, push->step);
    --pushes_waiting_;
  }
  variable.waiting.erase(variable.waiting.begin(), push);
}

bool Link::SendAllowed(PendingPush& push) {
  Variable& variable = variables_[push.slot];
  const std::size_t chunks = variable.cut.chunks;
  if (variable.welcome_below.size() < chunks) variable.welcome_below.resize(chunks, 0);
  const std::uint64_t window = variable.by_turn ? 0 : window_below_;
  if (!HasRoomFor(push.step) || FollowsPull(push)) return false;
  for (; push.chunk < chunks; ++push.chunk) {
    if (durable_.Next({push.slot, push.chunk}) != nullptr)
      return false;  // earlier steps are sent again first
    if (push.step >= std::max(variable.welcome_below[push.chunk], window)) return false;
    if (variable.key != nullptr && !push.at_once && !TakesTurn(variable, push)) return false;
    SendParts(variable, push);
  }
  if (!turns_.empty()) turns_.erase(TurnOf(push));
  return true;
}

// A gradient without rows is sent too, as one empty part: the server waits for every trainer's gradient.
void Link::SendParts(const Variable& variable, const PendingPush& push) {
  const VariableCut cut = CutOf(variable, push);
  const std::size_t parts = push.value.PartsOf(cut, push.chunk);
  if (trace_.on()) {
    std::size_t bytes = 0;
    for (std::uint32_t part = 0; part < parts; ++part)
      bytes += push.value.PartOf(cut, push.chunk, part).size();
    trace_.Sends(variable.traced, push.chunk, push.step, bytes);
  }
  for (std::uint32_t part = 0; part < parts; ++part) {
    Payload bytes = push.value.PartOf(cut, push.chunk, part);
    const std::size_t size = bytes.size();
    const bool is_new = SendKept(protocol::Push{.at = {variable.position, push.chunk},
                                                .step = push.step,
                                                .part = part,
                                                .rows = push.value.RowsOf(cut, push.chunk),
                                                .bytes = std::move(bytes),
                                                .largest = push.largest,
                                                .threshold = push.threshold});
    if (!is_new) continue;
    notes_.Record(observe::EventKind::kPushSent, push.step, variable.name, size);
    BeginPush(variable, push.step);
  }
}

void Link::Send(PendingPull& pull) {
  Variable& variable = variables_[pull.slot];
  Arriving& arriving = *ArrivingOf(variable, pull.version);
  notes_.Record(observe::EventKind::kPullAsked, arriving.version, variable.name, variable.cut.bytes);
  if (arriving.changed != nullptr) {  // the answer gives the number of parts
    trace_.Asks(trace::FlowKind::kChanged, variable.traced, 0, arriving.version);
    arriving.chunks_left = 1;
    arriving.parts_left.assign(1, 1);
    arriving.have.clear();
    SendKept(protocol::PullChanged{.variable = variable.position, .version = arriving.version});
    return;
  }
  const VariableCut& cut = variable.cut;
  arriving.chunks_left = cut.chunks;
  arriving.parts_left.assign(cut.chunks, 0);
  arriving.have.assign(cut.chunks * cut.parts(), PartIs::kMissing);
  for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
    arriving.parts_left[chunk] = static_cast<std::uint32_t>(PartsOf(cut.ChunkOf(chunk).size));
    trace_.Asks(trace::FlowKind::kPull, variable.traced, chunk, arriving.version);
    SendKept(protocol::Pull{.at = {variable.position, chunk}, .version = arriving.version});
  }
}

void Link::Send(PendingCount& count) { SendKept(protocol::CountStep{.step = count.step}); }

void Link::Send(PendingEndStep& end) {
  std::vector<std::uint32_t> positions;
  positions.reserve(end.pushed.size());
  for (const Slot slot : end.pushed) positions.push_back(variables_[slot].position);
  std::sort(positions.begin(), positions.end());
  SendKept(protocol::EndStep{.step = end.step, .variables = std::move(positions)});
  RequestCut();
  notes_.Record(observe::EventKind::kStepEnded, end.step);
  if (!pushed_.empty()) return;
  end.pushed.clear();
  pushed_.swap(end.pushed);  // reuses the memory for the next step
}

void Link::Send(protocol::Save& save) { SendKept(std::move(save)); }

// Complete is the last message: the server must have acknowledged everything before it.
void Link::SendCompleteIfLast() {
  if (!completing_ || complete_sent_ || !welcome_ || closed_) return;
  if (!log_.empty() || pushes_waiting_ > 0 || !before_welcome_.empty() || durable_.left() > 0) return;
  complete_sent_ = true;
  SendKept(protocol::Complete{});
}

}  // namespace penstock::client
