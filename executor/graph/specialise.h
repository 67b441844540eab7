// Compilation, level 2: specialises a block for given shapes. Infers every op's shapes, prepares its kernel,
// and gives every temporary its place in the arena.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Specialised made, Specialise(block, known, services));
//   Frame first(made.plan, std::move(made.kernels));
//   PENSTOCK_ASSIGN_OR_RETURN(Kernels more, PrepareKernels(*made.plan, services));
//   Frame second(made.plan, std::move(more));  // may run at the same time
//
// An op whose input shapes depend on values has no kernel in the plan: it is prepared for the actual shapes
// when it runs (step_variant.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/graph/awaits.h"
#include "executor/graph/infer.h"
#include "executor/graph/kernels.h"

namespace penstock::exec {

// An input that a prepared kernel relies on.
struct InputSlot {
  int slot = -1;
  int type = -1;  // into types: a tensor of known extents; for other kinds only the kind counts
};

// A tensor that a step will write.
struct OutputSlot {
  int slot = -1;
  int type = -1;             // into types
  int place = -1;            // index into places; -1: not placed by the frame
  int view = -1;             // index into views, -1: none
  bool in_place = false;     // the op reads the same variable: its content must be kept
  bool sent_before = false;  // an earlier step gave the variable to a receiver that may still read its memory
};

// What a run reads of one prepared op. Its lists are parts of the specialisation's lists, which begin where
// those of the step before end.
struct Step {
  std::uint32_t inputs_end = 0;
  std::uint32_t outputs_end = 0;
  std::uint32_t workspaces_end = 0;
  std::uint32_t lod_copies_end = 0;
  bool has_kernel = false;       // false: the types of its inputs are not known before it runs
  bool may_lack_inputs = false;  // the kernel decides which inputs it reads
  bool starts_blocks = false;
  bool has_uncertain = false;   // some of its inputs are in Specialisation::uncertain
  bool awaits = false;          // Specialisation::awaits names it
  bool of_first_place = false;  // Instruction::of_first_place
};
static_assert(sizeof(Step) == 24, "with the pointer to its kernel, two steps in a cache line");

// An input that a block may or may not have written: checked before the step runs.
struct UncertainInput {
  int step = 0;
  int slot = -1;
};

// The memory of a temporary.
struct Place {
  int slot = -1;
  int type = -1;            // into types: as first written
  std::size_t bytes = 0;    // the most that any of its writers needs
  std::size_t offset = 0;   // in the arena
  bool own_buffer = false;  // not in the arena
  bool sent = false;        // an op that may hold it reads it, or rows of it
};

// A temporary that is rows [begin, end) of another variable if that variable holds `whole` when the temporary
// is first written; otherwise it gets its own memory.
struct RowView {
  int slot = -1;
  int of = -1;     // slot
  int whole = -1;  // into types
  Dim begin = 0;
  Dim end = 0;
};

// What all runs of a block with the same shapes share. Immutable once it is made: frames of several threads
// use it at once. What a kernel keeps between its runs belongs to a frame (kernels.h).
struct Specialisation {
  std::shared_ptr<const CompiledBlock> block;
  std::vector<TensorDesc> key;  // types of the slots block->key
  // Types of the outputs of the instructions block->peeks, one after the other; of unknown extents if the
  // plan does not depend on them.
  std::vector<TensorDesc> peeked;
  std::vector<TensorDesc> types;  // each type once: most values of a program share a few
  // Indices into types: those of all arguments, inputs before outputs, of each step with a kernel.
  std::vector<int> arguments;
  std::vector<DType> kernel_types;  // by step: chooses the kernel
  std::vector<Step> steps;          // one for each of block->instructions
  // The lists of all steps, in their order. The inputs and outputs are checked before each run of the kernel:
  // the last writer of a variable may have left another size, type or kind than inferred. If an input
  // differs, the run uses a variant of the step; an output is reallocated. Ops that run blocks have no
  // outputs here: the blocks make their outputs themselves.
  std::vector<InputSlot> inputs;
  std::vector<OutputSlot> outputs;      // dense ones of known shape
  std::vector<std::size_t> workspaces;  // offset of each in the shared workspace
  std::vector<LodCopy> lod_copies;
  std::vector<UncertainInput> uncertain;  // in the order of the steps
  std::vector<Await> awaits;              // in the order of the steps
  std::vector<Place> places;
  std::vector<RowView> views;
  std::size_t arena_bytes = 0;
  std::size_t workspace_bytes = 0;
  int steps_without_kernel = 0;
  // The run awaits what an earlier one left in flight, and may leave pulls itself.
  bool leaves_pulls = false;

  std::span<const InputSlot> InputsOf(std::size_t step) const {
    return Part(inputs, step, &Step::inputs_end);
  }
  std::span<const OutputSlot> OutputsOf(std::size_t step) const {
    return Part(outputs, step, &Step::outputs_end);
  }
  std::span<const LodCopy> LodCopiesOf(std::size_t step) const {
    return Part(lod_copies, step, &Step::lod_copies_end);
  }
  std::size_t FirstWorkspace(std::size_t step) const {
    return step == 0 ? 0 : steps[step - 1].workspaces_end;
  }
  const TensorDesc& type(int index) const { return types[static_cast<std::size_t>(index)]; }

 private:
  template <typename T>
  std::span<const T> Part(const std::vector<T>& list, std::size_t step, std::uint32_t Step::*end) const {
    const std::size_t begin = step == 0 ? 0 : steps[step - 1].*end;
    return {list.data() + begin, steps[step].*end - begin};
  }
};

// Whether the instruction reads the slot.
bool Reads(const Instruction& instruction, int slot);
// Lays out a kernel's workspaces one after the other: appends the offset of each to `offsets`, and returns
// their end.
std::size_t LayOutWorkspaces(std::span<const std::size_t> bytes, std::vector<std::size_t>& offsets);

struct Specialised {
  std::shared_ptr<const Specialisation> plan;
  Kernels kernels;  // of its first frame
};

// `known`: the state of each slot before the run; for slots not in block->key, their declaration. `in_place`:
// outputs take over the memory of inputs (in_place.h).
Result<Specialised> Specialise(std::shared_ptr<const CompiledBlock> block, std::vector<TensorDesc> known,
                               const Services& services, bool in_place = true);

}  // namespace penstock::exec
