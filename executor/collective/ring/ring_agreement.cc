// The exchange of signatures before each operation, and the small operations whose data travels with it.
#include <algorithm>
#include <utility>

#include "executor/collective/group/plain_data.h"
#include "executor/collective/group/reduce.h"
#include "executor/collective/ring/ring_backend.h"

namespace penstock::collective {

// In each round a rank passes on all blocks it has, so the number of its blocks doubles: after log2 P rounds
// all ranks have all blocks.
void RingBackend::MakeRounds() {
  const auto ranks = static_cast<std::size_t>(size());
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const int distance = static_cast<int>(have);
    const std::size_t blocks = std::min(have, ranks - have);
    rounds_.push_back({.to = Neighbour(-distance),
                       .from = Neighbour(distance),
                       .blocks = blocks,
                       .memory = std::make_unique<std::byte[]>(blocks * blocks_.most_bytes()),
                       .came = nullptr});
  }
  for (Round& round : rounds_) Expect(round);
}

// Starts the receive in advance, so the sender need not wait for this rank.
void RingBackend::Expect(Round& round) {
  const std::size_t most = round.blocks * blocks_.most_bytes();
  round.came = links_->Receive(round.from, Channel::kAgreement, {round.memory.get(), most});
}

std::unique_ptr<Transit> RingBackend::PassOn(const Round& round) {
  return links_->Send(round.to, Channel::kAgreement, blocks_.First(round.blocks));
}

void RingBackend::StartExchange(const Operation& op) {
  const bool gives = Travels(op) && (op.kind != OperationKind::kBroadcast || op.root == rank());
  blocks_.Clear();
  blocks_.Add(what_, gives ? std::span(op.in.data, op.in.bytes()) : std::span<const std::byte>());
  if (!rounds_.empty()) told_ = PassOn(rounds_.front());
}

Result<std::span<const Signature>> RingBackend::ExchangeSignatures(const Signature&) {
  std::vector<std::unique_ptr<Transit>> told;
  for (Round& round : rounds_) {
    told.push_back(told_ != nullptr ? std::move(told_) : PassOn(round));
    PENSTOCK_RETURN_IF_ERROR(Await(round.came, round.from));
    const std::size_t bytes = round.blocks * blocks_.most_bytes();
    if (!blocks_.AddFrom({round.memory.get(), bytes}, round.blocks)) {
      return end_.Fail(InvalidArgument(
          "E-collective-mismatch", "rank ", names_(round.from), " does not say what it starts, while rank ",
          names_(rank()), " starts ", Describe(what_, names_), ": do both run the same version?"));
    }
    Expect(round);
  }
  for (std::size_t round = 0; round < rounds_.size(); ++round)
    PENSTOCK_RETURN_IF_ERROR(Await(told[round], rounds_[round].to));
  signatures_.clear();
  for (int other = 0; other < size(); ++other)
    signatures_.push_back(blocks_.signature(static_cast<std::size_t>((other - rank() + size()) % size())));
  return std::span<const Signature>(signatures_);
}

// All ranks that start the same operation get the same answer.
bool RingBackend::Travels(const Operation& op) const {
  const std::size_t most = blocks_.most_data();
  switch (op.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kReduce:
    case OperationKind::kReduceScatter:
    case OperationKind::kBroadcast:
      return op.in.bytes() <= most;
    case OperationKind::kAllGather:
      return op.out.bytes() <= most;
    case OperationKind::kBarrier:
    case OperationKind::kMessage:
      return false;
  }
  return false;
}

std::span<const std::byte> RingBackend::DataOf(int rank) const {
  return blocks_.data(static_cast<std::size_t>((rank - this->rank() + size()) % size()));
}

Status RingBackend::RunSmall(const Operation& op, Agreement& agreement) {
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  const std::size_t width = SizeOf(op.type);
  const auto gives = [&](int rank) -> std::size_t {
    if (op.kind == OperationKind::kAllGather)
      return static_cast<std::size_t>(op.counts[static_cast<std::size_t>(rank)]) * width;
    return op.kind == OperationKind::kBroadcast && rank != op.root ? 0 : op.in.bytes();
  };
  std::vector<const std::byte*> sources;
  sources.reserve(static_cast<std::size_t>(size()));
  for (int rank = 0; rank < size(); ++rank) {
    if (DataOf(rank).size() != gives(rank)) {
      return end_.Fail(InvalidArgument("E-collective-mismatch", "rank ", names_(rank), " gives ",
                                       DataOf(rank).size(), " bytes to ", Describe(what_, names_), ", not ",
                                       gives(rank), ": does it run the same version?"));
    }
    sources.push_back(DataOf(rank).data());
  }
  if (op.kind == OperationKind::kBroadcast) {
    if (op.root != rank()) CopyBytes(op.out.data, DataOf(op.root).data(), op.out.bytes());
  } else if (op.kind == OperationKind::kAllGather) {
    std::byte* to = op.out.data;
    for (int rank = 0; rank < size(); to += gives(rank++)) CopyBytes(to, DataOf(rank).data(), gives(rank));
  } else if (op.kind != OperationKind::kReduce || op.root == rank()) {
    const std::size_t begin =
        op.kind == OperationKind::kReduceScatter ? static_cast<std::size_t>(rank()) * op.out.bytes() : 0;
    for (const std::byte*& source : sources) source += begin;
    ReduceInOrder(op.type, op.reduction, sources, static_cast<std::size_t>(op.out.count), op.out.data);
  }
  return OkStatus();
}

}  // namespace penstock::collective
