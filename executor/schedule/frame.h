// One run of a specialised block: the variable of each slot, the kernels, and where the temporaries lie in
// the memory that the frame is lent. A frame serves one run at a time and is reused for later runs with the
// same shapes. Frames of one plan may run at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/graph/specialise.h"
#include "executor/schedule/step_variants.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"

namespace penstock::exec {

// A tensor that the caller supplies for a variable.
struct Feed {
  std::string name;
  Tensor tensor;
};

// What the caller, and sources that were asked before the run, supply.
struct Supplied {
  std::span<const Feed> feeds;
  // The types of the outputs of the block's `peeks`; of unknown extents if they are not known.
  std::span<const TensorDesc> peeked;
};

// The variables of a block's slots in a scope. Valid while the scope's generation is unchanged.
struct ScopeBinding {
  Scope* scope = nullptr;
  std::uint64_t generation = 0;
  std::vector<Variable*> variables;  // by slot; null for slots outside the scope
  bool IsOf(const Scope& other) const { return scope == &other && generation == other.generation(); }
};

// Finds the block's scope variables, and creates those that the block writes. kFailedPrecondition
// E-run-uninitialized, kInvalidArgument E-feed-missing: an op needs a value that is missing.
Result<ScopeBinding> BindScope(const CompiledBlock& block, Scope& scope);

// Checks that each feed has a value, and its element type and shape against the declaration if the variable
// has need_check_feed. kInvalidArgument E-feed-empty, E-feed-dtype, E-feed-shape.
Status CheckFeeds(const CompiledBlock& block, std::span<const Feed> feeds);

// Explains an error of specialising the block for these feeds. If a feed's element type is not its variable's
// declared one, returns that as the cause: E-feed-dtype, with `refused` as a note. Otherwise returns
// `refused`.
Status ExplainByFeeds(Status refused, const CompiledBlock& block, std::span<const Feed> feeds);

// The arena of the temporaries, and the workspace of the kernels. Frames of other shapes use it too, one
// after the other: between runs it holds no values.
struct FrameMemory {
  std::shared_ptr<Buffer> arena, workspace;
  bool Holds(const Specialisation& plan) const {
    return arena != nullptr && arena->bytes() >= plan.arena_bytes &&
           workspace->bytes() >= plan.workspace_bytes;
  }
};

// What a run does at one step.
struct StepRun {
  Kernel* kernel = nullptr;
  std::span<const OutputSlot> outputs;
  const TensorDesc* types = nullptr;  // by OutputSlot::type
  std::byte* const* workspaces = nullptr;
  std::span<const LodCopy> lod_copies;
};

// Whether what is supplied, and scope variables, have the types that the plan was made for. Allocates
// nothing.
bool Accepts(const Specialisation& plan, const Supplied& supplied, const ScopeBinding& binding);

class Frame {
 public:
  // `kernels`: prepared for `place`.
  Frame(std::shared_ptr<const Specialisation> specialisation, Kernels kernels,
        PlaceKind place = PlaceKind::kFirst);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const CompiledBlock& block() const { return *specialisation_->block; }
  const Specialisation& specialisation() const { return *specialisation_; }
  const ScopeBinding& binding() const { return binding_; }
  bool Accepts(const Supplied& supplied, const ScopeBinding& binding) const {
    return exec::Accepts(*specialisation_, supplied, binding);
  }

  // Puts the temporaries and the workspace into `memory`, which must hold the plan. Does nothing if they are
  // there already. Required before the first run.
  void UseMemory(const FrameMemory& memory);
  // Lets go of the memory, so that it can be freed.
  void ReleaseMemory();
  const FrameMemory& memory() const { return memory_; }

  void Bind(const ScopeBinding& binding);
  void BeginRun(std::span<const Feed> feeds);
  // Releases the views and the caller's tensors, whose memory may belong to another library.
  void EndRun();
  // Returns the value of fetch i. A temporary is returned without a copy: the next run writes elsewhere while
  // the caller holds it. A scope variable, or memory of a feed, is copied.
  Result<Variable> Fetch(int i) const;

  // Whether only another place runs the step.
  bool LeavesOut(const Step& step) const { return step.of_first_place && place_ == PlaceKind::kLater; }
  Variable& variable(int slot) { return *variables_[static_cast<std::size_t>(slot)]; }
  Variable* const* variables() const { return variables_.data(); }
  // Whether the slot's variable lies in the memory of the variable that it may be a view of.
  bool IsInPlace(int slot) const;
  // Whether the step has a kernel, and its inputs match what that was prepared for. Allocates nothing.
  bool IsAsPlanned(std::size_t step) const;
  StepRun Planned(std::size_t step) const;
  // The step for the types that its inputs have now. Errors of StepVariants::For.
  Result<StepRun> Variant(std::size_t step, const Services& services);
  // Gives each output the inferred type and size that the kernel will write. Allocates nothing if they
  // already match.
  void MakeOutputs(const StepRun& step);

  // Adds to an error of an instruction: the op as printed, the current values of its inputs, the user's line.
  Status Explain(Status status, const Instruction& instruction) const;

  // The parent scope for nested blocks: the run's scope, overlaid with the temporaries and feeds they use.
  Scope& ImportScope(Scope& scope) { return imports_ == nullptr ? scope : *imports_; }

 private:
  struct Kept {
    Place place;
    int index = 0;                                 // into places
    std::vector<std::shared_ptr<Buffer>> buffers;  // reused when nothing else holds them
  };

  void BindKept(Kept& kept);
  void PlaceWorkspaces();
  void GrowWorkspace(std::size_t bytes);
  void Remake(const OutputSlot& output, const TensorDesc& type);
  bool BindView(const OutputSlot& output, Tensor& tensor) const;
  void LeaveToSender(const OutputSlot& output, const TensorDesc& type, Tensor& tensor) const;
  bool SharesWithFeed(const Variable& variable) const;

  const std::shared_ptr<const Specialisation> specialisation_;
  const Kernels kernels_;
  const PlaceKind place_;
  std::vector<Variable> own_;         // by slot; unused for slots in the scope
  std::vector<Variable*> variables_;  // by slot
  ScopeBinding binding_;
  std::unique_ptr<Scope> imports_;  // null: no nested block uses a temporary
  std::vector<int> cleared_;        // slots: growing arrays, and variables that a block may leave unwritten
  FrameMemory memory_;
  std::vector<std::byte*> workspace_pointers_;
  StepVariants variants_;
  std::vector<std::byte*> variant_workspaces_;  // of the variant that runs
  std::vector<Kept> kept_;
  std::vector<std::byte*> planned_;  // by place: its address in this run
};

}  // namespace penstock::exec
