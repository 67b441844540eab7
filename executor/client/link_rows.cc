// Requests for rows of a table by id, and their answers. Each request is for ids of one shard.
#include <algorithm>
#include <utility>

#include "executor/client/link.h"

namespace penstock::client {
namespace {

// The ids of a request fit into one message; its answer may come in any number of parts.
constexpr std::size_t kIdsOfRequest = std::size_t{1} << 16;
static_assert(kIdsOfRequest * sizeof(std::int64_t) <= kMaxBodyBytes);

std::span<const std::int64_t> IdsOf(const Bytes& bytes) {
  return {reinterpret_cast<const std::int64_t*>(bytes.data), bytes.size / sizeof(std::int64_t)};
}

// In the given order, if that is not null.
Bytes CopyOf(std::span<const std::int64_t> ids, const RowOrder* order) {
  auto copy = std::make_shared_for_overwrite<std::int64_t[]>(ids.size());
  if (order == nullptr) {
    std::ranges::copy(ids, copy.get());
  } else {
    std::ranges::transform(order->places(), copy.get(), [&](std::size_t place) { return ids[place]; });
  }
  const auto* const data = reinterpret_cast<const std::byte*>(copy.get());
  return {std::move(copy), data, ids.size_bytes()};
}

}  // namespace

// Sorts the ids by shard, without the lock. Before the welcome the shards are not known; then Send does it.
void Link::PullRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out, Arrival arrived) {
  std::unique_lock lock(mutex_);
  const Variable& variable = variables_[slot];
  const protocol::ContractPiece& piece = PieceOf(variable);
  out.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(ids.size())));
  if (ids.empty()) return;
  environment_.steps.Begin(Work::kRows);
  PendingRows rows{.slot = slot, .version = environment_.steps.step(), .to = Target::Of(out)};
  rows.arrived = std::move(arrived);
  const std::uint32_t shards = variable.cut.shards;
  lock.unlock();
  if (shards > 1) rows.order = std::make_shared<const RowOrder>(ids, shards);
  rows.ids = CopyOf(ids, rows.order.get());
  lock.lock();
  HandOver(std::move(rows));
}

// Of a key. It is declared, so the server has welcomed this trainer and said its shards; what is requested
// while the connection is lost is sent with the rest of the log.
void Link::RequestRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out, std::uint64_t version) {
  const protocol::ContractPiece& piece = PieceOf(variables_[slot]);
  out.Reset(piece.dtype, piece.shape.WithRows(static_cast<Dim>(ids.size())));
  if (ids.empty()) return;
  environment_.steps.Begin(Work::kRows);
  PendingRows rows{.slot = slot, .version = version, .to = Target::Of(out), .ids = CopyOf(ids, nullptr)};
  Send(rows);
}

void Link::Send(PendingRows& rows) {
  const std::uint32_t shards = std::max<std::uint32_t>(variables_[rows.slot].cut.shards, 1);
  if (shards > 1 && rows.order == nullptr) {
    rows.order = std::make_shared<const RowOrder>(IdsOf(rows.ids), shards);
    rows.ids = CopyOf(IdsOf(rows.ids), rows.order.get());
  }
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const std::size_t end = rows.order == nullptr ? IdsOf(rows.ids).size() : rows.order->begin(shard + 1);
    for (std::size_t begin = rows.order == nullptr ? 0 : rows.order->begin(shard); begin < end;
         begin += kIdsOfRequest)
      Request(rows, shard, begin, std::min(kIdsOfRequest, end - begin));
  }
  environment_.steps.End(Work::kRows);  // the requests are counted instead
}

void Link::Request(const PendingRows& rows, std::uint32_t shard, std::size_t begin, std::size_t count) {
  const Variable& variable = variables_[rows.slot];
  const protocol::ContractPiece& piece = PieceOf(variable);
  const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  const auto request = first_request_ + static_cast<std::uint32_t>(rows_.size());
  ArrivingRows& arriving = rows_.emplace_back();
  arriving.version = rows.version;
  arriving.slot = rows.slot;
  arriving.shard = shard;
  arriving.order = rows.order;
  arriving.to = rows.to;
  arriving.arrived = rows.arrived;
  arriving.begin = begin * row_bytes;
  arriving.bytes = count * row_bytes;
  arriving.parts_left = PartsOf(arriving.bytes);
  arriving.have.assign(arriving.parts_left, false);
  environment_.steps.Begin(Work::kRows);
  notes_.Record(observe::EventKind::kPullAsked, arriving.version, variable.name, arriving.bytes);
  trace_.Asks(trace::FlowKind::kRows, variable.traced, request, arriving.version);
  const Bytes ids{rows.ids.owner, rows.ids.data + begin * sizeof(std::int64_t), count * sizeof(std::int64_t)};
  SendKept(protocol::PullRows{.at = {variable.position, shard},
                              .version = arriving.version,
                              .request = request,
                              .ids = Payload(ids)});
}

// Returns null if the request is complete or was never made.
Link::ArrivingRows* Link::RowsOf(std::uint32_t request) {
  const std::uint32_t at = request - first_request_;
  return at < rows_.size() && !rows_[at].whole ? &rows_[at] : nullptr;
}

Status Link::On(const protocol::Rows& rows) {
  ArrivingRows* arriving = RowsOf(rows.request);
  if (arriving == nullptr || arriving->version != rows.version) return OkStatus();
  if (rows.part >= arriving->have.size()) return OkStatus();
  // A resent request may be answered twice, as with PulledNewest. Here `updates` has only the low bits,
  // which wrap around.
  const auto newer = static_cast<std::int32_t>(rows.updates - arriving->updates);
  const bool is_first = arriving->parts_left == arriving->have.size();
  if (newer < 0 && !is_first) return OkStatus();
  if (newer != 0) {
    arriving->updates = rows.updates;
    arriving->have.assign(arriving->have.size(), false);
    arriving->parts_left = arriving->have.size();
  }
  if (arriving->have[rows.part]) return OkStatus();
  const Extent part = PartOf({arriving->begin, arriving->bytes}, rows.part);
  if (rows.bytes.size() != part.size) {
    return DataLoss("E-rpc-part-size", "pserver ", address_, " sent ", rows.bytes.size(), " bytes as part ",
                    rows.part, " of rows of ", PieceOf(variables_[arriving->slot]).name);
  }
  if (arriving->order == nullptr) {
    rows.bytes.CopyTo(arriving->to.data + part.begin);
  } else {
    const protocol::ContractPiece& piece = PieceOf(variables_[arriving->slot]);
    const std::size_t row_bytes = static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
    ScatterRows(rows.bytes, part.begin, row_bytes, arriving->order->places(), arriving->to.data);
  }
  arriving->have[rows.part] = true;
  if (--arriving->parts_left > 0) return OkStatus();
  arriving->whole = true;
  arriving->to = {};
  arriving->order.reset();
  if (arriving->arrived != nullptr) arriving->arrived->store(heard_.count());
  notes_.Record(observe::EventKind::kPullAnswered, rows.version, variables_[arriving->slot].name,
                arriving->bytes);
  trace_.Arrived(trace::FlowKind::kRows, variables_[arriving->slot].traced, rows.request, rows.version,
                 arriving->bytes);
  const Variable& of = variables_[arriving->slot];
  const bool of_key = of.key != nullptr;
  if (of_key) of.key->rows.erase(of.key->rows.find(rows.version));
  for (; !rows_.empty() && rows_.front().whole; ++first_request_) rows_.pop_front();
  if (environment_.steps.End(Work::kRows) || of_key) changed_ = true;
  Acknowledge(KeyOf(protocol::PullRows{.request = rows.request, .ids = {}}));
  if (of_key) SendPushesBehind(of);
  return OkStatus();
}

Status Link::On(const protocol::RowsGone& gone) {
  const ArrivingRows* arriving = RowsOf(gone.request);
  if (arriving == nullptr) return OkStatus();
  const protocol::ContractPiece& table = PieceOf(variables_[arriving->slot]);
  if (auto why = CannotRepeat(gone.version, table)) return *std::move(why);
  return FailedPrecondition(
      "E-lookup-version", "lookup: version ", gone.version, " of ", table.name, " on pserver ", address_,
      " is overwritten by a later one; look rows up before the step's gradients are sent");
}

}  // namespace penstock::client
