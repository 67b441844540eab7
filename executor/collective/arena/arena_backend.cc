#include "executor/collective/arena/arena_backend.h"

#include <algorithm>
#include <vector>

#include "executor/collective/group/plain_data.h"
#include "executor/collective/group/reduce.h"

namespace penstock::collective {
namespace {

// Up to this size, one meeting suffices: after it, each rank reduces all elements itself.
constexpr std::size_t kSmallBytes = std::size_t{16} << 10;
constexpr std::size_t kLine = 64;  // bytes of a cache line; no two ranks write the same line

std::size_t BlocksOf(std::size_t all, std::size_t of_block) { return (all + of_block - 1) / of_block; }

}  // namespace

ArenaBackend::ArenaBackend(const ArenaOptions& options)
    : name_(options.name),
      rank_(options.rank),
      arena_(options.memory, options.ranks),
      owner_(options.owner),
      names_(options.names),
      peers_(arena_, options.rank, options.gone, options.report_after, options.names) {}

Status ArenaBackend::Run(const Operation& op, Agreement& agreement) {
  switch (op.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kReduce:
      return op.in.bytes() <= std::min(kSmallBytes, arena_.block_bytes()) ? ReduceSmall(op, agreement)
                                                                          : ReduceToAll(op, agreement);
    case OperationKind::kReduceScatter:
      return ReduceScatter(op, agreement);
    case OperationKind::kAllGather:
      return AllGather(op, agreement);
    case OperationKind::kBroadcast:
      return Broadcast(op, agreement);
    case OperationKind::kBarrier:
      return agreement.Reach();
    case OperationKind::kMessage:
      return Exchange(op, agreement);
  }
  return InternalError("E-collective-kind", "no such operation");
}

Result<std::span<const Signature>> ArenaBackend::ExchangeSignatures(const Signature& mine) {
  arena_.signatures(turn_)[static_cast<std::size_t>(rank_)] = mine;
  PENSTOCK_RETURN_IF_ERROR(peers_.Meet(turn_, mine));
  return std::span<const Signature>(arena_.signatures(turn_++));
}

template <typename Give, typename Work, typename Take>
Status ArenaBackend::InTurns(Agreement& agreement, std::size_t blocks, const Give& give, const Work& work,
                             const Take* take) {
  const std::size_t meetings = std::max<std::size_t>(1, take != nullptr && blocks > 0 ? blocks + 1 : blocks);
  for (std::size_t turn = 0;; ++turn) {
    if (turn < blocks) give(turn);
    if (turn >= 1 && turn - 1 < blocks) work(turn - 1);
    if (take != nullptr && turn >= 2 && turn - 2 < blocks) (*take)(turn - 2);
    if (turn == meetings) return OkStatus();
    if (turn == 0) {
      PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
    } else {
      PENSTOCK_RETURN_IF_ERROR(peers_.Meet(turn_, agreement.what()));
      ++turn_;
    }
  }
}

// Equal slices of whole cache lines; the last ones may be shorter, or empty.
ArenaBackend::Slice ArenaBackend::SliceOf(int rank, std::size_t elements, ElementType type) const {
  const std::size_t of_line = kLine / SizeOf(type);
  const auto ranks = static_cast<std::size_t>(size());
  const std::size_t each = (elements + ranks * of_line - 1) / (ranks * of_line) * of_line;
  const std::size_t begin = std::min(elements, each * static_cast<std::size_t>(rank));
  return {begin, std::min(elements, begin + each)};
}

// Reduces what the ranks contributed in the previous turn, at `offset_bytes` of their blocks. This rank's own
// elements are read from `mine`.
void ArenaBackend::ReduceInto(std::byte* to, const Operation& op, std::size_t elements, const std::byte* mine,
                              std::size_t offset_bytes, std::byte* copy) const {
  const std::byte* sources[kMaxRanks];
  for (int rank = 0; rank < size(); ++rank)
    sources[rank] = rank == rank_ ? mine : arena_.In(turn_ - 1, rank) + offset_bytes;
  ReduceInOrder(op.type, op.reduction, {sources, static_cast<std::size_t>(size())}, elements, to,
                /*divisor=*/0, copy);
}

Status ArenaBackend::ReduceSmall(const Operation& op, Agreement& agreement) {
  CopyBytes(arena_.In(turn_, rank_), op.in.data, op.in.bytes());
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  if (op.kind == OperationKind::kReduce && op.root != rank_) return OkStatus();
  ReduceInto(op.out.data, op, static_cast<std::size_t>(op.in.count), op.in.data, 0);
  return OkStatus();
}

Status ArenaBackend::ReduceToAll(const Operation& op, Agreement& agreement) {
  const std::size_t width = SizeOf(op.type);
  const std::size_t of_block = arena_.block_bytes() / width;
  const auto count = static_cast<std::size_t>(op.in.count);
  const bool wants = op.kind == OperationKind::kAllReduce || op.root == rank_;
  const auto elements_of = [&](std::size_t block) { return std::min(of_block, count - block * of_block); };
  const auto offset_of = [&](std::size_t block) { return block * of_block * width; };
  // Copies a block without this rank's slice.
  const auto copy_others = [&](std::byte* to, const std::byte* from, std::size_t elements) {
    const Slice mine = SliceOf(rank_, elements, op.type);
    CopyBytes(to, from, mine.begin * width);
    CopyBytes(to + mine.end * width, from + mine.end * width, (elements - mine.end) * width);
  };
  const auto give = [&](std::size_t block) {
    copy_others(arena_.In(turn_, rank_), op.in.data + offset_of(block), elements_of(block));
  };
  const auto work = [&](std::size_t block) {
    const Slice mine = SliceOf(rank_, elements_of(block), op.type);
    const std::size_t begin = mine.begin * width, at = offset_of(block) + begin;
    std::byte* const made = arena_.Made(turn_) + begin;
    std::byte* const to = wants ? op.out.data + at : made;
    ReduceInto(to, op, mine.end - mine.begin, op.in.data + at, begin,
               to == made || size() == 1 ? nullptr : made);
  };
  const auto take = [&](std::size_t block) {
    if (wants) copy_others(op.out.data + offset_of(block), arena_.Made(turn_ - 1), elements_of(block));
  };
  return InTurns(agreement, BlocksOf(count, of_block), give, work, &take);
}

Status ArenaBackend::ReduceScatter(const Operation& op, Agreement& agreement) {
  const std::size_t width = SizeOf(op.type);
  const auto ranks = static_cast<std::size_t>(size());
  const auto part = static_cast<std::size_t>(op.out.count);  // elements that each rank gets
  const std::size_t of_block = std::max<std::size_t>(1, arena_.block_bytes() / ranks / kLine * kLine / width);
  const auto elements_of = [&](std::size_t block) { return std::min(of_block, part - block * of_block); };
  const auto mine_of = [&](std::size_t rank, std::size_t block) {
    return op.in.data + (rank * part + block * of_block) * width;
  };
  const auto give = [&](std::size_t block) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (rank == static_cast<std::size_t>(rank_)) continue;
      CopyBytes(arena_.In(turn_, rank_) + rank * of_block * width, mine_of(rank, block),
                elements_of(block) * width);
    }
  };
  const auto work = [&](std::size_t block) {
    const auto rank = static_cast<std::size_t>(rank_);
    ReduceInto(op.out.data + block * of_block * width, op, elements_of(block), mine_of(rank, block),
               rank * of_block * width);
  };
  return InTurns(agreement, BlocksOf(part, of_block), give, work);
}

Status ArenaBackend::AllGather(const Operation& op, Agreement& agreement) {
  const std::size_t width = SizeOf(op.type);
  std::vector<std::size_t> begins = {0};  // bytes
  std::size_t most = 0;
  for (const std::int64_t count : op.counts) {
    const std::size_t bytes = static_cast<std::size_t>(count) * width;
    begins.push_back(begins.back() + bytes);
    most = std::max(most, bytes);
  }
  const std::size_t of_block = arena_.block_bytes();
  const auto bytes_of = [&](int rank, std::size_t block) {
    const std::size_t all =
        begins[static_cast<std::size_t>(rank) + 1] - begins[static_cast<std::size_t>(rank)];
    return all - std::min(all, block * of_block) < of_block ? all - std::min(all, block * of_block)
                                                            : of_block;
  };
  const auto give = [&](std::size_t block) {
    CopyBytes(arena_.In(turn_, rank_), op.in.data + block * of_block, bytes_of(rank_, block));
  };
  const auto work = [&](std::size_t block) {
    for (int rank = 0; rank < size(); ++rank) {
      std::byte* const to = op.out.data + begins[static_cast<std::size_t>(rank)] + block * of_block;
      const std::byte* const from =
          rank == rank_ ? op.in.data + block * of_block : arena_.In(turn_ - 1, rank);
      CopyBytes(to, from, bytes_of(rank, block));
    }
  };
  return InTurns(agreement, BlocksOf(most, of_block), give, work);
}

Status ArenaBackend::Broadcast(const Operation& op, Agreement& agreement) {
  const std::size_t of_block = arena_.block_bytes(), bytes = op.in.bytes();
  const auto bytes_of = [&](std::size_t block) { return std::min(of_block, bytes - block * of_block); };
  const auto give = [&](std::size_t block) {
    if (rank_ == op.root) CopyBytes(arena_.In(turn_, rank_), op.in.data + block * of_block, bytes_of(block));
  };
  const auto work = [&](std::size_t block) {
    if (rank_ != op.root)
      CopyBytes(op.out.data + block * of_block, arena_.In(turn_ - 1, op.root), bytes_of(block));
  };
  return InTurns(agreement, BlocksOf(bytes, of_block), give, work);
}

}  // namespace penstock::collective
