// What a link sends. Before the welcome, all work waits in one queue. After it, a push without credit waits
// in its variable's queue, which is visited when the variable gets credit.
#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/client/link.h"
#include "executor/client/piece_checks.h"
#include "executor/protocol/compressed.h"
#include "executor/protocol/native_codec.h"
#include "executor/protocol/payload_bytes.h"

namespace penstock::client {
namespace {

// The ids of a request fit into one message; its answer may come in any number of parts.
constexpr std::size_t kIdsOfRequest = std::size_t{1} << 16;
static_assert(kIdsOfRequest * sizeof(std::int64_t) <= kMaxBodyBytes);

Bytes BytesOf(const Tensor& tensor) { return {tensor.buffer(), tensor.raw(), tensor.bytes()}; }

// All ids, then all values.
Bytes BytesOf(const SelectedRows& value) {
  const std::size_t ids = value.rows.size() * sizeof(std::int64_t);
  if (ids == 0) return {};
  auto bytes = std::make_shared<std::vector<std::byte>>(ids + value.value.bytes());
  std::memcpy(bytes->data(), value.rows.data(), ids);
  std::memcpy(bytes->data() + ids, value.value.raw(), value.value.bytes());
  return {bytes, bytes->data(), bytes->size()};
}

}  // namespace

void Link::SendMessage(const protocol::Event& event, std::uint64_t contract) {
  protocol::Sender sender = sender_;
  sender.contract = contract;
  notes_.Sent(protocol::PayloadBytes(event));
  connection_->Send(protocol::Encode(sender, event, protocol::ChecksumOver(*connection_)));
}

template <typename E>
bool Link::SendKept(E event) {
  const auto [sent, replaced] =
      log_.Keep(std::move(event), sender_.contract, environment_.options.clock->Now());
  if (!closed_) SendMessage(sent.event, sent.contract);
  return !replaced;
}
template bool Link::SendKept(protocol::Hello);

void Link::BeginPush(const Variable& variable, std::uint64_t step) {
  if (variable.is_gradient) {
    environment_.steps.BeginPush(step);
  } else {
    environment_.steps.Begin(Work::kFirstValues);
  }
}

void Link::EndPush(const Variable& variable, std::uint64_t step) {
  if (variable.is_gradient ? environment_.steps.EndPush(step) : environment_.steps.End(Work::kFirstValues))
    changed_ = true;
}

// Sends a value that the caller has set. Like other initial values, it is a push of the parameter or table
// itself in step 0.
Status Link::PushInitial(const InitialPiece& given) {
  const std::lock_guard lock(mutex_);
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
  HandOver(PendingPush{.slot = slot, .bytes = BytesOf(given.value.Clone())});
  return OkStatus();
}

Status Link::Push(Slot slot, const Tensor& value, const Tensor& residual) {
  const std::lock_guard lock(mutex_);
  Variable& variable = variables_[slot];
  PENSTOCK_RETURN_IF_ERROR(RequireTensor(PieceOf(variable), value));
  PENSTOCK_RETURN_IF_ERROR(RequireResidual(PieceOf(variable), value, residual));
  if (variable.is_gradient) {
    PENSTOCK_RETURN_IF_ERROR(OpenPush(slot));
    HandOver(PendingPush{.slot = slot,
                         .step = environment_.steps.step(),
                         .bytes = BytesOf(value),
                         .residual = Target::Of(residual)});
    return OkStatus();
  }
  // An initial value is sent as a push of the parameter itself in step 0. It is copied, because the pull
  // that follows overwrites it. If the startup program runs again, the server keeps its value.
  if (!std::exchange(variable.has_start, true))
    HandOver(PendingPush{.slot = slot, .bytes = BytesOf(value.Clone())});
  return OkStatus();
}

Status Link::PushRows(Slot slot, const SelectedRows& value) {
  const std::lock_guard lock(mutex_);
  const Variable& variable = variables_[slot];
  const protocol::ContractPiece& piece = PieceOf(variable);
  if (!variable.is_gradient) {
    return InvalidArgument("E-send-shape", "send: ", piece.name,
                           " is an initial value, which must be a tensor, not selected rows");
  }
  PENSTOCK_RETURN_IF_ERROR(RequireRows(piece, value, tables_by_id_));
  PENSTOCK_RETURN_IF_ERROR(OpenPush(slot));
  HandOver(PendingPush{
      .slot = slot, .step = environment_.steps.step(), .bytes = BytesOf(value), .rows = value.rows.size()});
  return OkStatus();
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
    return FailedPrecondition("E-recv-twice", "recv: ", piece.name, " is on its way already");
  }
  out.Refit(piece.dtype, piece.shape);
  BeginPull(arriving, landing, version);
  arriving.to = Target::Of(out);
  HandOver(PendingPull{slot});
  return OkStatus();
}

Status Link::PullChanged(Slot slot, std::shared_ptr<SelectedRows> out, Landing landing) {
  const std::lock_guard lock(mutex_);
  Arriving& arriving = variables_[slot].arriving;
  if (arriving.active) {
    return FailedPrecondition("E-recv-twice", "recv: ", PieceOf(variables_[slot]).name,
                              " is on its way already");
  }
  BeginPull(arriving, landing, environment_.steps.step());
  arriving.changed = std::move(out);
  HandOver(PendingPull{slot});
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

void Link::PullRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out) {
  const std::lock_guard lock(mutex_);
  const protocol::ContractPiece& piece = PieceOf(variables_[slot]);
  const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  out.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(ids.size())));
  for (std::size_t begin = 0; begin < ids.size(); begin += kIdsOfRequest) {
    const auto asked = ids.subspan(begin, std::min(kIdsOfRequest, ids.size() - begin));
    const auto request = first_request_ + static_cast<std::uint32_t>(rows_.size());
    rows_.push_back({.version = environment_.steps.step(),
                     .slot = slot,
                     .to = Target::Of(out),
                     .begin = begin * row_bytes,
                     .bytes = asked.size() * row_bytes,
                     .have = {}});
    environment_.steps.Begin(Work::kRows);
    HandOver(PendingRows{
        request, Payload::Of(std::string(reinterpret_cast<const char*>(asked.data()), asked.size_bytes()))});
  }
}

void Link::Save(const std::string& table, const std::string& file) {
  const std::lock_guard lock(mutex_);
  environment_.steps.Begin(Work::kSaves);
  HandOver(protocol::Save{
      .version = environment_.steps.step(), .request = saves_++, .body = {.table = table, .file = file}});
}

void Link::HandOver(Pending pending) {
  if (const auto* push = std::get_if<PendingPush>(&pending)) BeginPush(variables_[push->slot], push->step);
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
    if (pushes_waiting_ > 0) SendWaiting(variables_[slot]);
  }
  for (; !before_welcome_.empty(); before_welcome_.pop_front()) Dispatch(before_welcome_.front());
  SendCompleteIfLast();
}

// Compresses chunk by chunk, into memory that lives until the server has acknowledged it. Calls must come
// in the order of the steps, because each step's residual builds on that of the step before.
void Link::Compress(const Variable& variable, PendingPush& push) const {
  const Compression& how = PieceOf(variable).compression;
  const Extent last = PushedChunkOf(variable, static_cast<std::uint32_t>(variable.chunks - 1));
  const std::size_t size = last.begin + last.size;
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  const auto* const gradient = reinterpret_cast<const float*>(push.bytes.data);
  auto* const residual = reinterpret_cast<float*>(push.residual.data);
  for (std::uint32_t chunk = 0; chunk < variable.chunks; ++chunk) {
    const Extent from = ChunkOf(variable, chunk);
    const std::size_t begin = from.begin / sizeof(float), count = from.size / sizeof(float);
    const std::span<float> left =
        residual == nullptr ? std::span<float>() : std::span(residual + begin, count);
    protocol::Compress(how, {gradient + begin, count}, left,
                       bytes.get() + PushedChunkOf(variable, chunk).begin);
  }
  notes_.Compressed(size, push.bytes.size);
  const std::byte* const data = bytes.get();
  push.bytes = Bytes{std::move(bytes), data, size};
  push.residual = {};
}

void Link::Send(PendingPush& push) {
  Variable& variable = variables_[push.slot];
  if (!PieceOf(variable).compression.none()) Compress(variable, push);
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
  const bool rows = PieceOf(variable).rows;
  if (variable.welcome_below.size() < variable.chunks) variable.welcome_below.resize(variable.chunks, 0);
  const std::uint64_t window = variable.by_turn ? 0 : cut_.window;
  for (; push.chunk < variable.chunks; ++push.chunk) {
    if (push.step >= std::max(variable.welcome_below[push.chunk], window)) return false;
    SendParts(variable, push, rows ? Extent{0, push.bytes.size} : PushedChunkOf(variable, push.chunk));
  }
  return true;
}

// A gradient without rows is sent too, as one empty part: the server waits for every trainer's gradient.
void Link::SendParts(const Variable& variable, const PendingPush& push, Extent chunk) {
  const std::size_t parts = std::max<std::size_t>(PartsOf(chunk.size), 1);
  for (std::uint32_t part = 0; part < parts; ++part) {
    const Extent extent = PartOf(chunk, part);
    const bool is_new = SendKept(protocol::Push{
        .at = {variable.position, push.chunk},
        .step = push.step,
        .part = part,
        .rows = push.rows,
        .bytes = Payload(Bytes{push.bytes.owner, push.bytes.data + extent.begin, extent.size})});
    if (!is_new) continue;
    notes_.Record(observe::EventKind::kPushSent, push.step, variable.name, extent.size);
    BeginPush(variable, push.step);
  }
}

void Link::Send(PendingPull& pull) {
  Variable& variable = variables_[pull.slot];
  Arriving& arriving = variable.arriving;
  notes_.Record(observe::EventKind::kPullAsked, arriving.version, variable.name, variable.bytes);
  if (arriving.changed != nullptr) {  // the answer gives the number of parts
    arriving.chunks_left = 1;
    arriving.parts_left.assign(1, 1);
    arriving.have.clear();
    SendKept(protocol::PullChanged{.variable = variable.position, .version = arriving.version});
    return;
  }
  arriving.chunks_left = variable.chunks;
  arriving.parts_left.assign(variable.chunks, 0);
  arriving.have.assign(variable.chunks * variable.parts, PartIs::kMissing);
  for (std::uint32_t chunk = 0; chunk < variable.chunks; ++chunk) {
    arriving.parts_left[chunk] = static_cast<std::uint32_t>(PartsOf(ChunkOf(variable, chunk).size));
    SendKept(protocol::Pull{.at = {variable.position, chunk}, .version = arriving.version});
  }
}

void Link::Send(PendingRows& rows) {
  ArrivingRows& arriving = *RowsOf(rows.request);
  notes_.Record(observe::EventKind::kPullAsked, arriving.version, variables_[arriving.slot].name,
                arriving.bytes);
  arriving.parts_left = PartsOf(arriving.bytes);
  arriving.have.assign(arriving.parts_left, false);
  SendKept(protocol::PullRows{.variable = variables_[arriving.slot].position,
                              .version = arriving.version,
                              .request = rows.request,
                              .ids = std::move(rows.ids)});
}

void Link::Send(PendingCount& count) { SendKept(protocol::CountStep{.step = count.step}); }

void Link::Send(PendingEndStep& end) {
  std::vector<std::uint32_t> positions;
  positions.reserve(end.pushed.size());
  for (const Slot slot : end.pushed) positions.push_back(variables_[slot].position);
  std::sort(positions.begin(), positions.end());
  SendKept(protocol::EndStep{.step = end.step, .variables = std::move(positions)});
  notes_.Record(observe::EventKind::kStepEnded, end.step);
  if (!pushed_.empty()) return;
  end.pushed.clear();
  pushed_.swap(end.pushed);  // reuses the memory for the next step
}

void Link::Send(protocol::Save& save) { SendKept(std::move(save)); }

// Complete is the last message: the server must have acknowledged everything before it.
void Link::SendCompleteIfLast() {
  if (!completing_ || complete_sent_ || !welcome_ || closed_) return;
  if (!log_.empty() || pushes_waiting_ > 0 || !before_welcome_.empty()) return;
  complete_sent_ = true;
  SendKept(protocol::Complete{});
}

Link::Extent Link::ChunkOf(const Variable& variable, std::uint32_t chunk) const {
  const std::size_t begin = chunk * variable.chunk_bytes;
  return {begin, std::min(variable.chunk_bytes, variable.bytes - begin)};
}

// All chunks but the last have the same number of elements, so their compressed forms have the same size.
Link::Extent Link::PushedChunkOf(const Variable& variable, std::uint32_t chunk) const {
  const Compression& how = PieceOf(variable).compression;
  const Extent own = ChunkOf(variable, chunk);
  if (how.none()) return own;
  const auto bytes_of = [&](std::size_t bytes) {
    return static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(bytes / sizeof(float))));
  };
  return {chunk * bytes_of(std::min(variable.chunk_bytes, variable.bytes)), bytes_of(own.size)};
}

Link::Extent Link::PartOf(Extent whole, std::uint32_t part) const {
  const std::size_t at = std::size_t{part} * cut_.part_bytes;
  return {whole.begin + at, std::min<std::size_t>(cut_.part_bytes, whole.size - at)};
}

std::size_t Link::PartsOf(std::size_t bytes) const { return (bytes + cut_.part_bytes - 1) / cut_.part_bytes; }

}  // namespace penstock::client
