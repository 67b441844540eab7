#include "executor/collective/ring_backend.h"

#include <algorithm>
#include <utility>

#include "executor/collective/plain_data.h"

namespace penstock::collective {
namespace {

std::span<std::byte> BytesOf(Signature& signature) {
  return {reinterpret_cast<std::byte*>(&signature), sizeof(signature)};
}

}  // namespace

RingBackend::RingBackend(std::string_view name, std::unique_ptr<Links> links, const RingOptions& options)
    : name_(name), links_(std::move(links)), end_(*links_) {
  if (options.report_after > Nanoseconds(0)) reporter_.emplace(rank(), options.report_after);
}

Status RingBackend::Run(const Operation& op) {
  PENSTOCK_RETURN_IF_ERROR(end_.Failure());
  if (op.kind == OperationKind::kMessage) return Exchange(op);
  what_ = SignatureOf(op);
  PENSTOCK_RETURN_IF_ERROR(Agree());
  switch (op.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kReduce:
      return Reduce(op);
    case OperationKind::kReduceScatter:
      return ReduceScatter(op);
    case OperationKind::kAllGather:
      return AllGather(op);
    case OperationKind::kBroadcast:
      return Broadcast(op);
    case OperationKind::kBarrier:
    case OperationKind::kMessage:
      return OkStatus();  // they have met
  }
  return InternalError("E-collective-kind", "no such operation");
}

// All know all signatures after log2 P rounds: in each a rank passes on what it knows, to twice as many.
Status RingBackend::Agree() {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<Signature> known(ranks);  // known[i]: of the rank i places to the right
  known[0] = what_;
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const std::size_t passed = std::min(have, ranks - have);
    const int distance = static_cast<int>(have);
    const int to = Neighbour(-distance), from = Neighbour(distance);
    auto came = links_->Receive(from, Channel::kOperations,
                                std::as_writable_bytes(std::span(known).subspan(have, passed)));
    auto sent = links_->Send(to, Channel::kOperations, std::as_bytes(std::span(known).first(passed)));
    PENSTOCK_RETURN_IF_ERROR(Await(came, from));
    PENSTOCK_RETURN_IF_ERROR(Await(sent, to));
  }
  const auto same = [this](const Signature& other) { return SameOperation(what_, other); };
  if (std::all_of(known.begin(), known.end(), same)) return OkStatus();
  std::rotate(known.begin(), known.begin() + (size() - rank()) % size(), known.end());
  return end_.Fail(MismatchError(known));
}

Status RingBackend::Reduce(const Operation& op) {
  const std::vector<Range> parts = EqualParts(op.in.count, op.type);
  if (op.kind == OperationKind::kAllReduce || op.root == rank()) {
    PENSTOCK_RETURN_IF_ERROR(ReduceParts(op, op.out.data, parts));
    return GatherParts(op.out.data, parts);
  }
  // This rank's data stays as it is.
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(op.in.bytes());
  CopyBytes(copy.get(), op.in.data, op.in.bytes());
  PENSTOCK_RETURN_IF_ERROR(ReduceParts(op, copy.get(), parts));
  return GatherParts(copy.get(), parts);
}

Status RingBackend::ReduceScatter(const Operation& op) {
  const std::vector<Range> parts = EqualParts(op.in.count, op.type);
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(op.in.bytes());
  CopyBytes(copy.get(), op.in.data, op.in.bytes());
  PENSTOCK_RETURN_IF_ERROR(ReduceParts(op, copy.get(), parts));
  CopyBytes(op.out.data, copy.get() + parts[static_cast<std::size_t>(rank())].begin, op.out.bytes());
  return OkStatus();
}

Status RingBackend::AllGather(const Operation& op) {
  std::vector<Range> parts;
  std::size_t begin = 0;
  for (const std::int64_t count : op.counts) {
    parts.push_back({begin, static_cast<std::size_t>(count) * SizeOf(op.type)});
    begin += parts.back().bytes;
  }
  const Range mine = parts[static_cast<std::size_t>(rank())];
  CopyBytes(op.out.data + mine.begin, op.in.data, mine.bytes);
  return GatherParts(op.out.data, parts);
}

// Along a binomial tree: who has the data sends it to ranks at half the distance, then a quarter, and so on.
Status RingBackend::Broadcast(const Operation& op) {
  if (op.in.bytes() == 0) return OkStatus();
  const std::span<std::byte> data(op.out.data, op.out.bytes());
  const int place = (rank() - op.root + size()) % size();
  int distance = 1;
  for (; distance < size(); distance *= 2) {
    if ((place & distance) == 0) continue;
    const int from = Neighbour(-distance);
    auto came = links_->Receive(from, Channel::kOperations, data);
    PENSTOCK_RETURN_IF_ERROR(Await(came, from));
    break;
  }
  std::vector<std::pair<int, std::unique_ptr<Transit>>> sent;
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance >= size()) continue;
    const int to = Neighbour(distance);
    sent.emplace_back(to, links_->Send(to, Channel::kOperations, data));
  }
  for (auto& [to, transit] : sent) PENSTOCK_RETURN_IF_ERROR(Await(transit, to));
  return OkStatus();
}

// A message is its signature, then its data, which the receiver asks for when the signature fits.
Status RingBackend::Exchange(const Operation& op) {
  Signature sent = SignatureOfSent(op, rank());
  const Signature wanted = SignatureOfReceived(op, rank());
  std::unique_ptr<Transit> told, gone;
  if (op.to >= 0) {
    told = links_->Send(op.to, Channel::kMessages, BytesOf(sent));
    if (op.in.bytes() > 0) gone = links_->Send(op.to, Channel::kMessages, {op.in.data, op.in.bytes()});
  }
  if (op.from >= 0) {
    what_ = wanted;
    PENSTOCK_RETURN_IF_ERROR(ReceiveMessage(op, wanted));
  }
  what_ = sent;
  PENSTOCK_RETURN_IF_ERROR(Await(told, op.to));
  return Await(gone, op.to);
}

Status RingBackend::ReceiveMessage(const Operation& op, const Signature& wanted) {
  Signature theirs;
  auto told = links_->Receive(op.from, Channel::kMessages, BytesOf(theirs));
  PENSTOCK_RETURN_IF_ERROR(Await(told, op.from));
  if (!SameOperation(theirs, wanted)) {
    return end_.Fail(InvalidArgument("E-collective-mismatch", "rank ", op.from, " sends ", Describe(theirs),
                                     ", rank ", rank(), " receives ", Describe(wanted)));
  }
  if (op.out.bytes() == 0) return OkStatus();
  auto came = links_->Receive(op.from, Channel::kMessages, {op.out.data, op.out.bytes()});
  return Await(came, op.from);
}

Status RingBackend::Await(std::unique_ptr<Transit>& transit, int rank) {
  if (transit == nullptr) return OkStatus();
  if (reporter_) reporter_->Begin(rank, what_);
  const LinkEnd end = transit->Wait();
  if (reporter_) reporter_->End();
  transit.reset();
  return end == LinkEnd::kDone ? OkStatus() : end_.Of(rank, end, what_);
}

}  // namespace penstock::collective
