// What every kernel on oneDNN shares: the engine, errors as values, and a sequence of primitives bound to the
// op's arguments. Include it from .cc files only.
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
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/kernel.h"

namespace penstock {

// The CPU engine of this process. oneDNN wants primitives and memories that meet to come from one engine.
const dnnl::engine& OnednnEngine();

// Attributes that leave the scratchpad to us: the kernel asks the executor for it, once.
dnnl::primitive_attr OnednnAttr();

// f32 memory in row-major order, or with the strides given.
dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims);
dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);
// f32 memory in whatever form the primitive likes best.
dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims);

// oneDNN's OpenMP team has this many threads as long as the object lives. A primitive must be made and run by
// a team of the same size: it divides its work when it is made.
class OnednnTeam {
 public:
  explicit OnednnTeam(int threads);
  ~OnednnTeam();
  OnednnTeam(const OnednnTeam&) = delete;
  OnednnTeam& operator=(const OnednnTeam&) = delete;

 private:
  int before_;
};

Status OnednnFailed(const KernelSetup& k, const dnnl::error& error);

// Calls `make`, which makes primitives through oneDNN's throwing interface, and returns what it threw as a
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

// Primitives in the order in which they run, with the memory each reads and writes. Prepare fills it, inside
// OnednnTry.
class OnednnSequence {
 public:
  using MemoryId = int;

  // An argument without elements, an empty batch say: there is nothing to compute, and oneDNN divides by the
  // extent. True if so; Run then sets the op's outputs to 0, and no primitive may be added.
  bool NothingToDo(const KernelSetup& k);

  // The memory of an argument of the op, from `offset_bytes` on.
  MemoryId Tensor(const Operand& operand, const dnnl::memory::desc& desc, std::size_t offset_bytes = 0);
  // Memory that lives during one run.
  MemoryId Scratch(KernelSetup& k, const dnnl::memory::desc& desc);
  MemoryId InWorkspace(WorkspaceId workspace, const dnnl::memory::desc& desc);
  // `from` in the form `wanted`: itself if it has that form, else a copy that a reorder makes at this point.
  MemoryId Reordered(KernelSetup& k, MemoryId from, const dnnl::memory::desc& wanted);
  // Memory of the form `wanted` for a primitive to write, which ends up in `to`. Call FlushTo after the
  // writer is added.
  MemoryId Staged(KernelSetup& k, MemoryId to, const dnnl::memory::desc& wanted);
  void FlushTo(KernelSetup& k, MemoryId staged, MemoryId to);

  void Add(KernelSetup& k, dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
           const std::vector<std::pair<int, MemoryId>>& arguments);

  bool empty() const { return steps_.empty(); }
  Status Run(KernelRun& k);

 private:
  struct Memory {
    dnnl::memory memory;
    Operand operand;  // absent: in the workspace
    WorkspaceId workspace;
    std::size_t offset_bytes;
    void* bound = nullptr;  // the address it was given last
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  MemoryId AddMemory(const dnnl::memory::desc& desc, const Operand& operand, WorkspaceId workspace,
                     std::size_t offset_bytes);
  void AddReorder(KernelSetup& k, MemoryId from, MemoryId to);
  const dnnl::memory& At(MemoryId id) const { return memories_[static_cast<std::size_t>(id)].memory; }

  int threads_ = 1;
  std::vector<Operand> cleared_;
  dnnl::stream stream_;
  std::vector<Memory> memories_;
  std::vector<Step> steps_;
};

}  // namespace penstock
