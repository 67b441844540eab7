#include "executor/collective/group/operation.h"

#include <algorithm>
#include <cstring>

#include "framework/base/hash.h"

namespace penstock::collective {
namespace {

constexpr std::string_view kKindNames[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                           "reduce",     "barrier",        "message"};

Signature SignatureWithLabel(const Operation& op) {
  Signature signature;
  signature.number = op.number;
  signature.kind = op.kind;
  signature.type = op.type;
  signature.reduction = op.reduction;
  signature.label_size = static_cast<std::uint8_t>(std::min(op.label.size(), kLabelBytes));
  std::memcpy(signature.label, op.label.data(), signature.label_size);
  return signature;
}

bool IsReduction(OperationKind kind) {
  return kind == OperationKind::kAllReduce || kind == OperationKind::kReduceScatter ||
         kind == OperationKind::kReduce;
}

bool IsReadable(const Signature& signature) {
  return signature.kind <= OperationKind::kMessage && signature.type <= ElementType::kInt8 &&
         signature.reduction <= Reduction::kMin && signature.label_size <= kLabelBytes &&
         signature.count >= 0;
}

std::string DescribeElements(const Signature& signature) {
  std::string text = IsReduction(signature.kind) ? StrCat(ReductionName(signature.reduction), " of ") : "";
  const auto bytes = static_cast<std::uint64_t>(signature.count) * SizeOf(signature.type);
  AppendTo(text, StrCat(signature.count, " ", ElementTypeName(signature.type), ", ", bytes, " bytes"));
  return text;
}

}  // namespace

std::string_view NameOf(OperationKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Signature SignatureOf(const Operation& op) {
  Signature signature = SignatureWithLabel(op);
  signature.count = op.kind == OperationKind::kAllGather ? op.out.count : op.in.count;
  signature.root = op.root;
  signature.tag = op.tag;
  if (!op.counts.empty()) {
    signature.parts =
        Fnv1a64({reinterpret_cast<const char*>(op.counts.data()), op.counts.size() * sizeof(std::int64_t)});
  }
  return signature;
}

Signature SignatureOfSent(const Operation& op, int rank) {
  Signature signature = SignatureWithLabel(op);
  signature.type = op.in.type;
  signature.count = op.in.count;
  signature.root = rank;
  signature.to = op.to;
  return signature;
}

Signature SignatureOfReceived(const Operation& op, int rank) {
  Signature signature = SignatureWithLabel(op);
  signature.type = op.out.type;
  signature.count = op.out.count;
  signature.root = op.from;
  signature.to = rank;
  return signature;
}

bool SameOperation(const Signature& a, const Signature& b) {
  return a.number == b.number && a.count == b.count && a.parts == b.parts && a.tag == b.tag &&
         a.root == b.root && a.to == b.to && a.kind == b.kind && a.type == b.type &&
         a.reduction == b.reduction;
}

std::string Describe(const Signature& signature, const RankNames& names) {
  if (!IsReadable(signature)) return "an operation that this version does not know";
  const std::string_view name = NameOf(signature.kind);
  std::string text(name);
  if (signature.kind == OperationKind::kMessage) {
    AppendTo(text, StrCat(" from rank ", names(signature.root), " to rank ", names(signature.to)));
  } else {
    AppendTo(text, StrCat(" ", signature.number));
  }
  std::string facts = signature.kind == OperationKind::kBarrier ? "" : DescribeElements(signature);
  if (signature.kind == OperationKind::kBroadcast)
    AppendTo(facts, StrCat(" from rank ", names(signature.root)));
  if (signature.kind == OperationKind::kReduce) AppendTo(facts, StrCat(" to rank ", names(signature.root)));
  if (signature.label_size > 0) {
    AppendTo(facts, facts.empty() ? "" : "; ");
    AppendTo(facts, std::string_view(signature.label, signature.label_size));
  }
  return facts.empty() ? text : StrCat(text, " (", facts, ")");
}

Status MismatchError(std::span<const Signature> signatures, const RankNames& names) {
  std::size_t other = 1;
  while (other + 1 < signatures.size() && SameOperation(signatures[0], signatures[other])) ++other;
  const auto text = [&](std::size_t rank) { return Describe(signatures[rank], names); };
  const auto name = [&](std::size_t rank) { return names(static_cast<int>(rank)); };
  const bool in_counts = signatures[0].parts != signatures[other].parts;
  Status error = InvalidArgument("E-collective-mismatch", "ranks ", name(0), " and ", name(other),
                                 " started different operations: rank ", name(0), " ", text(0), ", rank ",
                                 name(other), " ", text(other),
                                 text(0) != text(other) ? ""
                                 : in_counts            ? " with other counts of the ranks"
                                                        : " of something else");
  constexpr std::size_t kListed = 16;
  for (std::size_t rank = 0; rank < std::min(signatures.size(), kListed); ++rank)
    error.With(StrCat("rank ", name(rank), ": ", text(rank)));
  return error;
}

}  // namespace penstock::collective
