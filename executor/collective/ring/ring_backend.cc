#include "executor/collective/ring/ring_backend.h"

#include <algorithm>
#include <utility>

#include "executor/collective/group/plain_data.h"

namespace penstock::collective {
namespace {

std::span<std::byte> BytesOf(Signature& signature) {
  return {reinterpret_cast<std::byte*>(&signature), sizeof(signature)};
}

}  // namespace

RingBackend::RingBackend(std::string_view name, std::unique_ptr<Links> links, const RingOptions& options)
    : name_(name),
      piece_bytes_(options.piece_bytes),
      links_(std::move(links)),
      names_(options.names),
      end_(*links_, names_, options.state_of),
      blocks_(links_->size(), options.small_bytes / static_cast<std::size_t>(links_->size())) {
  if (options.report_after > Nanoseconds(0)) reporter_.emplace(rank(), options.report_after, options.names);
  MakeRounds();
}

RingBackend::~RingBackend() {
  told_.reset();
  for (Round& round : rounds_) round.came.reset();  // for an operation that this rank does not start
  end_.Leave();
}

Status RingBackend::Run(const Operation& op, Agreement& agreement) {
  if (op.kind == OperationKind::kMessage) return Exchange(op, agreement);
  what_ = agreement.what();
  StartExchange(op);
  if (Travels(op)) return RunSmall(op, agreement);
  switch (op.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kReduce:
      return Reduce(op, agreement);
    case OperationKind::kReduceScatter:
      return ReduceScatter(op, agreement);
    case OperationKind::kAllGather:
      return AllGather(op, agreement);
    case OperationKind::kBroadcast:
      return Broadcast(op, agreement);
    case OperationKind::kBarrier:
      return agreement.Reach();
    case OperationKind::kMessage:
      break;
  }
  return InternalError("E-collective-kind", "no such operation");
}

Status RingBackend::Reduce(const Operation& op, Agreement& agreement) {
  const bool wants = op.kind == OperationKind::kAllReduce || op.root == rank();
  std::unique_ptr<std::byte[]> copy;  // on ranks whose data must not change
  if (!wants) {
    copy = std::make_unique_for_overwrite<std::byte[]>(op.in.bytes());
    CopyBytes(copy.get(), op.in.data, op.in.bytes());
  }
  std::byte* const data = wants ? op.out.data : copy.get();
  const std::vector<Range> parts = EqualParts(op.in.count, op.type);
  PENSTOCK_RETURN_IF_ERROR(ReduceOwnPart(data, parts, op, agreement));
  return GoAround(data, parts);
}

Status RingBackend::ReduceScatter(const Operation& op, Agreement& agreement) {
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(op.in.bytes());
  CopyBytes(copy.get(), op.in.data, op.in.bytes());
  const std::vector<Range> parts = EqualParts(op.in.count, op.type);
  PENSTOCK_RETURN_IF_ERROR(ReduceOwnPart(copy.get(), parts, op, agreement));
  CopyBytes(op.out.data, copy.get() + parts[static_cast<std::size_t>(rank())].begin, op.out.bytes());
  return OkStatus();
}

Status RingBackend::AllGather(const Operation& op, Agreement& agreement) {
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  std::vector<Range> parts;
  std::size_t begin = 0;
  for (const std::int64_t count : op.counts) {
    parts.push_back({begin, static_cast<std::size_t>(count) * SizeOf(op.type)});
    begin += parts.back().bytes;
  }
  const Range mine = parts[static_cast<std::size_t>(rank())];
  CopyBytes(op.out.data + mine.begin, op.in.data, mine.bytes);
  return GoAround(op.out.data, parts);
}

// Follows a binomial tree: a rank that receives the data from some distance sends it to ranks at half that
// distance, then a quarter, and so on.
Status RingBackend::Broadcast(const Operation& op, Agreement& agreement) {
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
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

// A message is its signature followed by its data. The receiver accepts the data only if the signature fits.
Status RingBackend::Exchange(const Operation& op, Agreement& agreement) {
  Signature sent = SignatureOfSent(op, rank());
  const Signature wanted = SignatureOfReceived(op, rank());
  std::unique_ptr<Transit> told, gone;
  if (op.to >= 0) {
    told = links_->Send(op.to, Channel::kMessages, BytesOf(sent));
    if (op.in.bytes() > 0) gone = links_->Send(op.to, Channel::kMessages, {op.in.data, op.in.bytes()});
  }
  if (op.from >= 0) {
    what_ = wanted;
    PENSTOCK_RETURN_IF_ERROR(ReceiveMessage(op, wanted, agreement));
  }
  what_ = sent;
  PENSTOCK_RETURN_IF_ERROR(Await(told, op.to));
  return Await(gone, op.to);
}

Status RingBackend::ReceiveMessage(const Operation& op, const Signature& wanted, Agreement& agreement) {
  Signature theirs;
  auto told = links_->Receive(op.from, Channel::kMessages, BytesOf(theirs));
  PENSTOCK_RETURN_IF_ERROR(Await(told, op.from));
  PENSTOCK_RETURN_IF_ERROR(agreement.Accept(theirs, wanted));
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
