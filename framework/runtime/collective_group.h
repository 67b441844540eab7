// Operations that all processes (ranks) of a job take part in: sums of gradients, copies of parameters. One
// group is one ring of Fluid's; a process has as many as it needs.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, collective::MakeSharedMemoryGroup({.rank = 0, .size = 4, ...}));
//   Elements gradient{tensor.raw(), tensor.count(), ElementType::kFp32};
//   Completion summed = group->AllReduce(gradient, Reduction::kMean, {.label = "w@GRAD, train.py:12"});
//   ... compute other gradients ...
//   PENSTOCK_RETURN_IF_ERROR(summed.Wait());        // each rank now has the mean
//
// Order: all ranks start the operations of one group in the same order, one thread at a time in each process.
// The group runs them one after the other in that order on a thread of its own (`blocking` ones on the
// caller's where that thread is idle). Operations of different groups run beside each other.
//
// Memory belongs to the caller: nobody reads or writes an operation's elements until its Completion is done.
// Inputs may be read until then, so an input must not overlap an output unless an operation says so.
//
// Values: reductions add in a fixed order, so bytes never depend on timing, and all ranks end with the same
// bytes. Where adds_in_rank_order() holds, that order is ((x0 + x1) + x2) + ...: the bytes of one process
// that adds the ranks' values in rank order; fp16 and bf16 are added as floats and rounded once, at the end,
// and kMean is the sum divided by size(), before that rounding. Elsewhere the order is another one, fixed by
// the backend and the ranks, and each partial sum of fp16 and bf16 is rounded. All other types are added in
// their own type; integers wrap around. kMax and kMin: a NaN of any rank wins (over NCCL, it may be lost).
//
// Errors end the group: the first one is the result of every operation that is under way or started later.
//   kUnavailable      E-collective-peer-lost: a process is gone; E-collective-peer-left: a rank closed
//                     or aborted its group (with its reason). Both name the rank, and the operation in which
//                     it was missed: number, kind and bytes.
//   kInvalidArgument  E-collective-mismatch: the n-th operations of two ranks differ, in kind, type, count,
//                     root, reduction or tag. Names both, with their labels, on all ranks.
//   what Abort gave   on this rank
// One that is found before the operation starts ends only that one: kInvalidArgument E-collective-argument.
// A wait never gives up for time: after 10 s, 20 s, 40 s it logs the operation and the rank it waits for.
//
// Costs, for each rank, of P ranks: "host" is the backends on shared memory (bytes written to + read from
// memory that ranks share, and meetings of all ranks), with L bytes a block (collective/README.md); "net"
// those over a network (messages and bytes sent), to which all but messages add the agreement on what is
// done: log2 P messages, about 200 (P-1) bytes. Where the data of all ranks together has at most 128 KB, it
// travels with the agreement: no more messages, and P-1 times what a rank gives. A message is one of 200
// bytes and one of its data.
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

// What collectives move and reduce. DType has no bfloat16, which Fluid 1.8 does not know.
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
  // For people, in errors and reports: the variable, the user's line. Copied, of at most 160 bytes.
  std::string_view label = {};
  // What is exchanged, as a number that all ranks give alike (a hash of its name, say): different ones are a
  // mismatch. Of messages nobody looks at it.
  std::uint64_t tag = 0;
  // The caller waits at once: the operation may run on its thread, and the Completion is done. Saves two
  // changes of threads, which small operations feel. Changes speed only.
  bool blocking = false;
};

class CollectiveGroup {
 public:
  // Waits for the operations that were started. Ranks that still start others are told that this one left.
  virtual ~CollectiveGroup() = default;

  virtual int rank() const = 0;  // 0 .. size()-1
  virtual int size() const = 0;
  virtual std::string_view backend()
      const = 0;  // "threads", "shared_memory", "gloo", "hierarchical", "nccl", "mpi"
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

  // `out` becomes the ranks' `in`, in rank order. counts[r] is the number of elements of rank r, the same
  // list on all ranks; out.count is their sum. `in` may be its own place in `out`.
  // host: own bytes written, S - own read, (longest part)/L meetings. net: P-1 messages, S (P-1)/P bytes.
  // S: of `out`.
  virtual Completion AllGather(ConstElements in, std::span<const std::int64_t> counts, Elements out,
                               const CollectiveOptions& options = {}) = 0;
  // The same count on all ranks: out.count = size() * in.count.
  Completion AllGatherEqual(ConstElements in, Elements out, const CollectiveOptions& options = {}) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), in.count);
    return AllGather(in, counts, out, options);
  }

  // `data` becomes that of rank `root`. Same count on all ranks.
  // host: root S written, others S read, S/L meetings. net (tree): up to log2 P messages of S bytes.
  virtual Completion Broadcast(Elements data, int root, const CollectiveOptions& options = {}) = 0;

  // On rank `root` `data` becomes the reduction over all ranks; elsewhere it stays as it is. Same count.
  // host: S (P-1)/P + S/P written, S (P-1)/P read (root twice), S/L + 1 meetings.
  // net: as AllReduce.
  virtual Completion Reduce(Elements data, Reduction reduction, int root,
                            const CollectiveOptions& options = {}) = 0;

  // Done once all ranks have started it. host: 1 meeting. net: the agreement alone.
  virtual Completion Barrier(const CollectiveOptions& options = {}) = 0;

  // Sends `out` to rank `to` and receives `in` from rank `from` at the same time, so that a ring of ranks
  // does not wait in a circle. Not a collective: only the two ends of a message start it; messages between
  // two ranks arrive in the order in which they were sent, with the same count and type at both ends. A
  // message to oneself is none (kInvalidArgument). A send is done when its memory is free, which may be
  // before or after the other side has received.
  // host: S written, S read, no meeting. net: 1 message, S bytes.
  virtual Completion SendRecv(ConstElements out, int to, Elements in, int from,
                              const CollectiveOptions& options = {}) = 0;
  virtual Completion Send(ConstElements out, int to, const CollectiveOptions& options = {}) = 0;
  virtual Completion Recv(Elements in, int from, const CollectiveOptions& options = {}) = 0;

  // The operation that runs now, for reports: of a message the number is 0. From any thread.
  struct Running {
    std::uint64_t number = 0;
    bool blocks_caller = false;  // a thread waits in a call of this group
    std::string text;            // "all_reduce 17 (sum of 1024 f32, 4096 bytes; w@GRAD, train.py:12)"
  };
  virtual std::optional<Running> running() const = 0;

  // Ends the group: all operations of this rank, also the one that waits now, end within a second with `why`
  // (not ok), and later ones do; other ranks get E-collective-peer-left with its text. A group that has
  // failed keeps its first error. From any thread, also from a Completion's callback.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace penstock
