// The memory of one run of a specialised block: where each slot's variable is, the arena of the temporaries,
// the workspace. A frame serves one run at a time and is used again for the next one with the same shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/graph/specialise.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"

namespace penstock::exec {

// A tensor for a variable that the caller supplies.
struct Feed {
  std::string name;
  Tensor tensor;
};

// Where the slots of a block lie in a scope. Valid while the scope's generation is the one it was made at.
struct ScopeBinding {
  Scope* scope = nullptr;
  std::uint64_t generation = 0;
  std::vector<Variable*> variables;  // by slot; null for those that are not in the scope
  bool IsOf(const Scope& other) const { return scope == &other && generation == other.generation(); }
};

// Finds the block's scope variables, and makes those that the block is about to write. kFailedPrecondition
// E-run-uninitialized, kInvalidArgument E-feed-missing: a value that an op needs is not there.
Result<ScopeBinding> BindScope(const CompiledBlock& block, Scope& scope);

// The element type of each feed against its declaration, and the shape where the variable says
// need_check_feed. kInvalidArgument E-feed-dtype, E-feed-shape.
Status CheckFeeds(const CompiledBlock& block, std::span<const Feed> feeds);

class Frame {
 public:
  explicit Frame(std::unique_ptr<Specialisation> specialisation);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const CompiledBlock& block() const { return *specialisation_->block; }
  Specialisation& specialisation() { return *specialisation_; }
  const ScopeBinding& binding() const { return binding_; }
  // Whether feeds and scope variables have the types this frame was made for. Allocates nothing.
  bool Accepts(std::span<const Feed> feeds, const ScopeBinding& binding) const;

  void Bind(ScopeBinding binding);
  void BeginRun(std::span<const Feed> feeds);
  // Lets go of the caller's tensors, whose memory may belong to a foreign owner, and of views.
  void EndRun();
  // The value of fetch i: the run's own tensor for temporaries (the next run writes elsewhere while somebody
  // holds it), a copy for variables of the scope and for the caller's own memory.
  Result<Variable> Fetch(int i) const;

  Variable& variable(int slot) { return *variables_[static_cast<std::size_t>(slot)]; }
  Variable* const* variables() const { return variables_.data(); }
  std::byte* const* workspaces(int step) const {
    return workspace_pointers_.data() + workspace_begin_[static_cast<std::size_t>(step)];
  }
  // Whether what the kernel was prepared for is there. Allocates nothing.
  bool HasInputs(const Step& step) const;
  // Makes each output what the kernel is about to write: of the inferred type and size. Allocates nothing if
  // they are so.
  void MakeOutputs(const Step& step);

  // Adds to an error of an instruction: the op as printed, what its inputs hold now, the user's line.
  Status Explain(Status status, const Instruction& instruction) const;

  // What blocks that are started from here see: the run's scope, and over it the temporaries they mention.
  Scope& ImportScope(Scope& scope) { return imports_ == nullptr ? scope : *imports_; }

 private:
  struct Kept {
    Place place;
    int index = 0;                                 // into places
    std::vector<std::shared_ptr<Buffer>> buffers;  // those not in use by others serve again
  };

  void BindKept(Kept& kept);
  bool IsAsInferred(const OutputTensor& output) const;
  void Remake(const OutputTensor& output);
  bool BindView(const OutputTensor& output, Tensor& tensor) const;
  void LeaveToSender(const OutputTensor& output, Tensor& tensor) const;
  bool SharesWithFeed(const Variable& variable) const;

  std::unique_ptr<Specialisation> specialisation_;
  std::vector<Variable> own_;         // by slot; unused for those in the scope
  std::vector<Variable*> variables_;  // by slot
  ScopeBinding binding_;
  std::unique_ptr<Scope> imports_;  // null: no block that is started mentions a temporary
  std::vector<int> cleared_;        // slots: arrays that grow, and what a block may or may not write
  std::shared_ptr<Buffer> arena_;
  std::shared_ptr<Buffer> workspace_;
  std::vector<std::byte*> workspace_pointers_;
  std::vector<std::size_t> workspace_begin_;  // by step
  std::vector<int> feed_of_key_;  // by position in block().key: index of the feed, -1 for the scope
  std::vector<Kept> kept_;
  std::vector<std::byte*> planned_;  // by place: where it lies in this run
};

}  // namespace penstock::exec
