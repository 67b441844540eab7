#include "executor/collective/group/check_operation.h"

#include <cstdint>
#include <limits>

namespace penstock::collective {
namespace {

constexpr char kWrong[] = "E-collective-argument";

bool IsFloatElement(ElementType type) {
  return type == ElementType::kFp16 || type == ElementType::kBf16 || type == ElementType::kFp32 ||
         type == ElementType::kFp64;
}

Status CheckElements(const ConstElements& elements, std::string_view name) {
  if (elements.count < 0 || elements.count > std::numeric_limits<std::int64_t>::max() / 8)
    return InvalidArgument(kWrong, name, " has ", elements.count, " elements");
  if (elements.count > 0 && elements.data == nullptr)
    return InvalidArgument(kWrong, name, " has ", elements.count, " elements and no memory");
  if (reinterpret_cast<std::uintptr_t>(elements.data) % SizeOf(elements.type) != 0)
    return InvalidArgument(kWrong, name, " is not aligned to its elements");
  return OkStatus();
}

Status CheckCounts(const Operation& op, int rank, int size) {
  if (op.counts.size() != static_cast<std::size_t>(size))
    return InvalidArgument(kWrong, op.counts.size(), " counts for ", size, " ranks");
  std::int64_t left = op.out.count;
  for (const std::int64_t count : op.counts) {
    if (count < 0 || count > left)
      return InvalidArgument(kWrong, "the counts add up to more than the ", op.out.count, " elements of out");
    left -= count;
  }
  if (left != 0) return InvalidArgument(kWrong, "out has ", left, " elements more than the counts add up to");
  const std::int64_t mine = op.counts[static_cast<std::size_t>(rank)];
  if (mine != op.in.count)
    return InvalidArgument(kWrong, "in has ", op.in.count, " elements, the count of rank ", rank, " is ",
                           mine);
  return OkStatus();
}

Status CheckRank(int other, int size, std::string_view name) {
  if (other >= 0 && other < size) return OkStatus();
  return InvalidArgument(kWrong, name, " rank ", other, " is out of range; there are ", size, " ranks");
}

Status CheckMessage(const Operation& op, int rank, int size) {
  for (const int other : {op.to, op.from}) {
    if (other == -1 && op.to != op.from) continue;
    PENSTOCK_RETURN_IF_ERROR(CheckRank(other, size, "the message's"));
    if (other == rank) return InvalidArgument(kWrong, "rank ", rank, " sends a message to itself");
  }
  return OkStatus();
}

}  // namespace

Status CheckOperation(const Operation& op, int rank, int size) {
  PENSTOCK_RETURN_IF_ERROR(CheckElements(op.in, "in"));
  PENSTOCK_RETURN_IF_ERROR(CheckElements(op.out, "out"));
  if (op.kind == OperationKind::kMessage) return CheckMessage(op, rank, size);
  if (op.in.type != op.out.type) {
    return InvalidArgument(kWrong, "in is of ", ElementTypeName(op.in.type), ", out of ",
                           ElementTypeName(op.out.type));
  }
  if (op.reduction == Reduction::kMean && !IsFloatElement(op.type))
    return InvalidArgument(kWrong, "a mean of ", ElementTypeName(op.type), " is not defined; use sum");
  switch (op.kind) {
    case OperationKind::kReduceScatter:
      if (op.in.count / size == op.out.count && op.in.count % size == 0) return OkStatus();
      return InvalidArgument(kWrong, "in has ", op.in.count, " elements, out ", op.out.count,
                             "; in must have ", size, " times as many");
    case OperationKind::kAllGather:
      return CheckCounts(op, rank, size);
    case OperationKind::kBroadcast:
    case OperationKind::kReduce:
      return CheckRank(op.root, size, "root");
    case OperationKind::kAllReduce:
    case OperationKind::kBarrier:
    case OperationKind::kMessage:
      return OkStatus();
  }
  return OkStatus();
}

}  // namespace penstock::collective
