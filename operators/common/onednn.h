// The interface to oneDNN for all kernels that use it: the engine, errors as Status, and a sequence of
// primitives bound to the op's arguments.
//
//   OnednnSequence steps;                                                   // a member of the kernel
//   // Prepare:
//   return OnednnTry(k, [&] {
//     dnnl::matmul::primitive_desc pd({a_desc, b_desc, c_desc}, OnednnAttr(), OnednnEngine());
//     steps.Add(k, dnnl::matmul(pd), pd.scratchpad_desc(),
//               {{DNNL_ARG_SRC, steps.Tensor(a, a_desc)}, {DNNL_ARG_WEIGHTS, steps.Tensor(b, b_desc)},
//                {DNNL_ARG_DST, steps.Tensor(c, c_desc)}});
//   });
//   // Run:
//   return steps.Run(k);
//
// A primitive is run by a team of OpenMP, or, if the work consists of independent images or rows, in shares:
// each share has primitives of its own for one thread, and the threads of the run take the shares
// (framework/runtime/compute_pool.h). Shares are preferred: the end of a team waits for its last thread, even
// if the system has not started it.
//
//   EachShare(k, steps, DivideIntoShares(images, image_ns, 1, k.threads(), 2), images,
//             [&](Dim first, Dim count) { ... as above, for the images of the share ... });
#pragma once

#include <algorithm>
#include <cstddef>
#include <dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/kernel.h"

namespace penstock {

// Returns the CPU engine of this process. oneDNN requires that primitives and their memory use the same
// engine.
const dnnl::engine& OnednnEngine();

// Returns attributes with a user-managed scratchpad: the kernel asks the executor for its memory, once.
dnnl::primitive_attr OnednnAttr();

// Describe f32 memory in row-major order, or with the given strides.
dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims);
dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);
// Describes f32 memory whose layout the primitive chooses.
dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims);

// Sets the size of oneDNN's OpenMP team for the lifetime of this object. A primitive must be created and run
// by a team of the same size, because it divides its work when it is created. So OpenMP must start as many
// threads as it says: no more than OMP_THREAD_LIMIT allows are asked for, and OMP_DYNAMIC is off meanwhile.
class OnednnTeam {
 public:
  explicit OnednnTeam(int threads);
  ~OnednnTeam();
  OnednnTeam(const OnednnTeam&) = delete;
  OnednnTeam& operator=(const OnednnTeam&) = delete;

 private:
  const int before_;
  const bool varies_;  // OMP_DYNAMIC
};

Status OnednnFailed(const KernelSetup& k, const dnnl::error& error);

// Calls `make`, which creates primitives through oneDNN's C++ interface, and returns its exceptions as a
// Status.
template <typename Make>
Status OnednnTry(KernelSetup& k, Make&& make) {
  const OnednnTeam team(k.threads());
  try {
    std::forward<Make>(make)();
  } catch (const dnnl::error& error) {
    return OnednnFailed(k, error);
  }
  return OkStatus();
}

// Divides `count` images or rows of about `item_ns` nanoseconds each into shares of `items`, in multiples of
// `granule`, with at most `per_thread` shares for each of `threads`. One share: the work is too small, or
// cannot be divided. Depends only on the arguments.
struct Shares {
  int count = 1;
  Dim items = 0;
  bool small = false;  // one thread does the work sooner than several
};
Shares DivideIntoShares(Dim count, double item_ns, Dim granule, int threads, int per_thread);
// The time of floating-point operations of products and convolutions on one thread.
constexpr double FlopsNs(double flops) { return flops / 100; }

// Primitives in the order in which they run, with the memory that each reads and writes. A kernel's Prepare
// fills it, inside OnednnTry. Each primitive is run by a team of the size for which it was created.
class OnednnSequence {
 public:
  using MemoryId = int;

  // Returns whether an argument has no elements, such as an empty batch. If so, no primitive may be added
  // (oneDNN would divide by the extent), and Run sets the op's outputs to 0.
  bool NothingToDo(const KernelSetup& k);

  // Returns the memory of an argument of the op, starting at `offset_bytes`.
  MemoryId Tensor(const Operand& operand, const dnnl::memory::desc& desc, std::size_t offset_bytes = 0);
  // Returns memory whose contents live during one run.
  MemoryId Scratch(KernelSetup& k, const dnnl::memory::desc& desc);
  MemoryId InWorkspace(WorkspaceId workspace, const dnnl::memory::desc& desc);
  // Returns a part of `whole` with a description of its own.
  MemoryId Part(MemoryId whole, const dnnl::memory::desc& desc, std::size_t offset_bytes);
  // Returns `from` in layout `wanted`: `from` itself if it has that layout, else a copy, for which a reorder
  // is added at this point of the sequence.
  MemoryId Reordered(KernelSetup& k, MemoryId from, const dnnl::memory::desc& wanted);
  // Returns memory of layout `wanted` for a primitive that writes `to`. Call FlushTo after adding the
  // primitive, so that the result reaches `to`.
  MemoryId Staged(KernelSetup& k, MemoryId to, const dnnl::memory::desc& wanted);
  void FlushTo(KernelSetup& k, MemoryId staged, MemoryId to);

  void Add(KernelSetup& k, dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
           const std::vector<std::pair<int, MemoryId>>& arguments);

  // Adds the step parts[0] += parts[1] + parts[2] ..., in this order. All parts have one layout.
  void AddSum(std::vector<MemoryId> parts);

  // Adds the step to[r, c, p] += values[c] for all r and p, where `to` is contiguous memory of `rows` times
  // `points` times as many elements as `values` has.
  void AddValues(MemoryId to, MemoryId values, Dim rows, Dim points);

  bool empty() const { return steps_.empty(); }
  Status Run(KernelRun& k);

 private:
  friend class OnednnShare;
  static constexpr int kWhole = -1;
  struct Memory {
    dnnl::memory memory;
    Operand operand;  // absent: the memory is in the workspace
    WorkspaceId workspace;
    std::size_t offset_bytes;
    void* bound = nullptr;  // the address that was set last
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<MemoryId> summed = {};  // a step without a primitive: of AddSum, or of AddValues
    Dim rows = 0, points = 0;           // of AddValues
    int threads = 1;
    int share = kWhole;  // adjacent steps of shares run at once, those of one share in order
  };
  MemoryId AddMemory(const dnnl::memory::desc& desc, const Operand& operand, WorkspaceId workspace,
                     std::size_t offset_bytes);
  void AddReorder(KernelSetup& k, MemoryId from, MemoryId to);
  void Append(Step step);
  Status Bind(KernelRun& k);
  Status RunShares(std::size_t first, std::size_t end);
  dnnl_status_t Execute(const Step& step, const dnnl::stream& stream) const;
  void Sum(const std::vector<MemoryId>& parts) const;
  void SumValues(const Step& step) const;
  float* FloatsOf(MemoryId id) const;
  const dnnl::memory& At(MemoryId id) const { return memories_[static_cast<std::size_t>(id)].memory; }

  int share_ = kWhole;  // of the steps that are added
  int shares_ = 0;
  std::vector<Operand> cleared_;
  std::vector<dnnl::stream> streams_;  // one for each share, at least one
  std::vector<Memory> memories_;
  std::vector<Step> steps_;
};

// The steps that are added during its lifetime belong to a share, and are created for one thread.
class OnednnShare {
 public:
  OnednnShare(OnednnSequence& steps, int share) : team_(1), steps_(steps) { steps_.share_ = share; }
  ~OnednnShare() { steps_.share_ = OnednnSequence::kWhole; }
  OnednnShare(const OnednnShare&) = delete;
  OnednnShare& operator=(const OnednnShare&) = delete;

 private:
  const OnednnTeam team_;
  OnednnSequence& steps_;
};

// Calls add(first item, number of items) for each share of `count` items. The steps that it adds belong to
// the share. One share has a team of threads, unless the work is small.
template <typename Add>
void EachShare(const KernelSetup& k, OnednnSequence& steps, const Shares& shares, Dim count, const Add& add) {
  if (shares.count == 1) {
    const OnednnTeam team(shares.small ? 1 : k.threads());
    return add(Dim{0}, count);
  }
  for (int i = 0; i < shares.count; ++i) {
    const OnednnShare share(steps, i);
    const Dim first = i * shares.items;
    add(first, std::min(shares.items, count - first));
  }
}

}  // namespace penstock
