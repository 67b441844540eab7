// Operations in which all processes (ranks) of a job take part: sums of gradients, copies of parameters. A
// group corresponds to one of Fluid's rings; a process may have several.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, collective::MakeSharedMemoryGroup({.rank = 0, .size = 4, ...}));
//   Elements gradient{tensor.raw(), tensor.count(), ElementType::kFp32};
//   Completion summed = group->AllReduce(gradient, Reduction::kMean, {.label = "w@GRAD, train.py:12"});
//   ... compute other gradients ...
//   PENSTOCK_RETURN_IF_ERROR(summed.Wait());        // each rank now has the mean
//
// Order: all ranks start the operations of a group in the same order, from one thread at a time per process.
// The group runs them one after the other on a thread of its own (`blocking` ones on the caller's thread if
// the group is idle). Operations of different groups run concurrently.
//
// Memory belongs to the caller, who must not read or write an operation's elements until its Completion is
// done. Inputs may be read until then, so an input must not overlap an output unless the operation allows it.
//
// Values: reductions add in a fixed order, so the bytes never depend on timing and are the same on all ranks.
// If adds_in_rank_order(), the order is ((x0 + x1) + x2) + ..., so the bytes equal those of one process that
// adds the ranks' values in rank order; fp16 and bf16 are added as floats and rounded once at the end, and
// kMean divides the sum by size() before that rounding. Otherwise the backend and the number of ranks fix the
// order, and each partial sum of fp16 and bf16 is rounded. All other types are added in their own type;
// integers wrap around. kMax and kMin return NaN if any rank has a NaN (over NCCL the NaN may be lost).
//
// An error ends the group: the first one is the result of every operation in progress or started later.
//   kUnavailable      E-collective-peer-lost: a process is gone; E-collective-peer-left: a rank closed
//                     or aborted its group (with its reason). Both name the rank and the operation in which
//                     it was missed: number, kind and bytes.
//   kInvalidArgument  E-collective-mismatch: the n-th operations of two ranks differ in kind, type, count,
//                     root, reduction or tag. Names both, with their labels, on all ranks.
//   the status given to Abort, on this rank
// An error found before an operation starts ends only that operation: kInvalidArgument E-collective-argument.
// Waits have no time limit: after 10 s, 20 s, 40 s they log the operation and the rank that is missing.
//
// Costs are per rank, for P ranks and S bytes of data. "host" stands for the shared-memory backends, with
// blocks of L bytes (collective/README.md); their costs are bytes written to and read from shared memory, and
// meetings of all ranks. "net" stands for the network backends; their costs are messages and bytes sent. Over
// the network, every operation except Send, Recv and SendRecv begins with an agreement of all ranks on the
// operation: log2 P messages, about 200 (P-1) bytes. Data of at most 128 KB / P (of a gather: the result)
// travels with the agreement: no further messages, and P-1 times a rank's bytes.
//
// Thread-safe: Abort, running and Completion. The other calls come from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/completion.h"
#include "framework/tensor/dtype.h"

namespace penstock {

// The element types of collectives. DType cannot be used: it has Fluid 1.8's types, without bfloat16.
enum class ElementType : std::uint8_t { kFp16, kBf16, kFp32, kFp64, kInt32, kInt64, kUInt8, kInt8 };

std::size_t SizeOf(ElementType type);                  // bytes per element
std::string_view ElementTypeName(ElementType type);    // "f32", as DTypeName
std::optional<ElementType> ElementTypeOf(DType type);  // bool is kUInt8; nullopt: int16 and size_t

enum class Reduction : std::uint8_t { kSum, kMean, kProduct, kMax, kMin };  // kMean: of floats only

std::string_view ReductionName(Reduction reduction);  // "sum"

// Elements in the caller's memory, aligned to their size. Owns nothing.
struct Elements {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::kFp32;
  std::size_t bytes() const { return static_cast<std::size_t>(count) * SizeOf(type); }
};
struct ConstElements {
  const std::byte* data = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::kFp32;

  ConstElements() = default;
  ConstElements(const std::byte* from, std::int64_t n, ElementType t) : data(from), count(n), type(t) {}
  ConstElements(const Elements& other)  // NOLINT(google-explicit-constructor): as a pointer to const
      : data(other.data), count(other.count), type(other.type) {}
  std::size_t bytes() const { return static_cast<std::size_t>(count) * SizeOf(type); }
};

struct CollectiveOptions {
  // For errors and reports: the variable, the user's line. Copied, up to 160 bytes.
  std::string_view label = {};
  // Identifies what is exchanged (a hash of its name, say). All ranks must give the same number: different
  // ones are a mismatch. Ignored for messages.
  std::uint64_t tag = 0;
  // The caller waits at once: the operation may run on its thread, and the returned Completion is done. Saves
  // two thread switches, which matters for small operations. Changes speed only.
  bool blocking = false;
};

class CollectiveGroup {
 public:
  // Waits for the operations that were started. Ranks that start more get E-collective-peer-left.
  virtual ~CollectiveGroup() = default;

  virtual int rank() const = 0;  // 0 .. size()-1
  virtual int size() const = 0;
  // "threads", "shared_memory", "gloo", "hierarchical", "nccl" or "mpi".
  virtual std::string_view backend() const = 0;
  virtual bool adds_in_rank_order() const = 0;

  // Replaces `data` by its reduction over all ranks. Same count on all ranks.
  // host: 2 S (P-1)/P + S/P written, 2 S (P-1)/P read, S/L + 1 meetings; up to 16 KB: S, S (P-1), 1.
  // net: 2(P-1) messages, 2 S (P-1)/P bytes; a message is at most 256 KB, so larger data takes more of them.
  virtual Completion AllReduce(Elements data, Reduction reduction, const CollectiveOptions& options = {}) = 0;

  // `out` becomes part rank() of the reduction of `in`, whose size() parts have out.count elements each.
  // `out` may be that part of `in`.
  // host: S (P-1)/P written and read, S/L meetings. net: P-1 messages, S (P-1)/P bytes. S: of `in`.
  virtual Completion ReduceScatter(ConstElements in, Elements out, Reduction reduction,
                                   const CollectiveOptions& options = {}) = 0;

  // `out` becomes the concatenation of all ranks' `in`, in rank order. counts[r] is the number of elements of
  // rank r; the list is the same on all ranks, and out.count is its sum. `in` may be this rank's part of
  // `out`.
  // host: own bytes written, S - own read, (longest part)/L meetings. net: P-1 messages, S (P-1)/P bytes.
  // S: of `out`.
  virtual Completion AllGather(ConstElements in, std::span<const std::int64_t> counts, Elements out,
                               const CollectiveOptions& options = {}) = 0;
  // The same count on all ranks: out.count = size() * in.count.
  Completion AllGatherEqual(ConstElements in, Elements out, const CollectiveOptions& options = {}) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), in.count);
    return AllGather(in, counts, out, options);
  }

  // Replaces `data` by the data of rank `root`. Same count on all ranks.
  // host: root S written, others S read, S/L meetings. net (tree): up to log2 P messages of S bytes.
  virtual Completion Broadcast(Elements data, int root, const CollectiveOptions& options = {}) = 0;

  // On rank `root`, replaces `data` by its reduction over all ranks; other ranks' data does not change. Same
  // count on all ranks.
  // host: S (P-1)/P + S/P written, S (P-1)/P read (root twice), S/L + 1 meetings.
  // net: as AllReduce.
  virtual Completion Reduce(Elements data, Reduction reduction, int root,
                            const CollectiveOptions& options = {}) = 0;

  // Done once all ranks have started it. host: 1 meeting. net: the agreement alone.
  virtual Completion Barrier(const CollectiveOptions& options = {}) = 0;

  // Sends `out` to rank `to` and receives `in` from rank `from` at the same time, so a ring of ranks does
  // not deadlock. Not a collective: only the two ends of a message start it; messages between two ranks
  // arrive in the order in which they were sent, with the same count and type at both ends. A rank cannot
  // send to itself (kInvalidArgument). A send is done when its memory is free, which may be before or after
  // the other side has received.
  // host: S written, S read, no meeting. net: a message of 200 bytes and one of S bytes.
  virtual Completion SendRecv(ConstElements out, int to, Elements in, int from,
                              const CollectiveOptions& options = {}) = 0;
  virtual Completion Send(ConstElements out, int to, const CollectiveOptions& options = {}) = 0;
  virtual Completion Recv(Elements in, int from, const CollectiveOptions& options = {}) = 0;

  // The operation that runs now, for reports; a message has number 0. From any thread.
  struct Running {
    std::uint64_t number = 0;
    bool blocks_caller = false;  // a thread waits in a call of this group
    std::string text;            // "all_reduce 17 (sum of 1024 f32, 4096 bytes; w@GRAD, train.py:12)"
  };
  virtual std::optional<Running> running() const = 0;

  // Ends the group: all operations of this rank, current and later ones, end within a second with `why` (not
  // ok); other ranks get E-collective-peer-left with its text. A group that has failed keeps its first error.
  // Call from any thread, even from a Completion's callback.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace penstock
