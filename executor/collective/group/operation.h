// One operation of a group: what it does to which memory, and its description for other ranks and for users.
//
//   Operation op{.kind = OperationKind::kAllReduce, .type = ElementType::kFp32, .in = data, .out = data};
//   const Signature mine = SignatureOf(op);
//   if (!SameOperation(mine, theirs)) return MismatchError(signatures);   // signatures: of all ranks
//   Describe(mine)      // "all_reduce 17 (sum of 1024 f32, 4096 bytes; w@GRAD, train.py:12)"
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/collective/group/rank_names.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

enum class OperationKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kBarrier,
  kMessage,  // between two ranks
};

struct Operation {
  OperationKind kind = OperationKind::kBarrier;
  ElementType type = ElementType::kUInt8;
  Reduction reduction = Reduction::kSum;
  int root = -1;                          // of a broadcast or reduce
  int to = -1, from = -1;                 // of a message; -1: this rank does not send, or receive
  ConstElements in = {};                  // read
  Elements out = {};                      // written; in place: the same memory
  std::vector<std::int64_t> counts = {};  // of an all-gather: elements of each rank
  std::uint64_t number = 0;               // 1: the group's first; 0: a message
  std::uint64_t tag = 0;                  // identifies what is exchanged
  std::string label = {};
};

std::string_view NameOf(OperationKind kind);  // "all_reduce"

constexpr std::size_t kLabelBytes = 160;

// The properties of an operation that must be equal on all ranks, and a label. Plain data, for shared memory.
struct Signature {
  std::uint64_t number = 0;
  std::int64_t count = 0;   // a reduction's elements per rank; a gather's in total
  std::uint64_t parts = 0;  // hash of an all-gather's counts
  std::uint64_t tag = 0;    // not used by messages
  std::int32_t root = -1;   // of a message: its sender
  std::int32_t to = -1;     // of a message: its receiver
  OperationKind kind = OperationKind::kBarrier;
  ElementType type = ElementType::kUInt8;
  Reduction reduction = Reduction::kSum;
  std::uint8_t label_size = 0;
  char label[kLabelBytes] = {};
};

Signature SignatureOf(const Operation& op);
// The message that `op` sends from `rank`; the message that it receives there.
Signature SignatureOfSent(const Operation& op, int rank);
Signature SignatureOfReceived(const Operation& op, int rank);

// Compares everything but the labels.
bool SameOperation(const Signature& a, const Signature& b);
// `signature` may have invalid values, because another process may have written it.
std::string Describe(const Signature& signature, const RankNames& names = {});

// Returns kInvalidArgument E-collective-mismatch, which names two ranks whose operations differ.
// signatures[r]: of rank r.
Status MismatchError(std::span<const Signature> signatures, const RankNames& names = {});

}  // namespace penstock::collective
