// Compilation, level 2: specialises a block for given shapes. Infers every op's shapes, prepares its kernel,
// and gives every temporary its place in the arena.
//
// An op whose input shapes depend on values is marked late: the scheduler prepares it with the actual shapes
// when it runs.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/graph/infer.h"

namespace penstock::exec {

// The type of an input that a prepared kernel relies on.
struct InputOperand {
  int slot = -1;
  VarInfo info;  // a tensor of known extents; for other kinds only the kind counts
};

// A tensor that a step will write.
struct OutputTensor {
  int slot = -1;
  VarInfo info;
  int place = -1;            // index into places; -1: not placed by the frame
  int view = -1;             // index into views, -1: none
  bool in_place = false;     // the op reads the same variable: its content must be kept
  bool sent_before = false;  // an earlier step gave the variable to a receiver that may still read its memory
};

// One prepared op.
struct Step {
  const Instruction* instruction = nullptr;
  std::unique_ptr<Kernel> kernel;       // null: late
  std::vector<std::size_t> workspaces;  // offset of each in the shared workspace
  // Checked before each run of the kernel: the last writer of a variable may have left another size, type or
  // kind than inferred. An input that differs makes the step late for this run; an output is reallocated. Ops
  // that run blocks have no outputs here: the blocks make their outputs themselves.
  std::vector<InputOperand> inputs;
  std::vector<OutputTensor> outputs;  // dense ones of known shape
  bool may_lack_inputs = false;       // the kernel decides which inputs it reads
  std::vector<LodShare> lod_shares;
  bool starts_blocks = false;
  // Inputs that a block may or may not have written: checked before the step runs.
  std::vector<int> uncertain;
};

// The memory of a temporary.
struct Place {
  int slot = -1;
  DType dtype = DType::kFp32;  // as first written
  Shape shape;
  std::size_t bytes = 0;    // the most that any of its writers needs
  std::size_t offset = 0;   // in the arena
  bool own_buffer = false;  // not in the arena
  bool sent = false;        // an op with side effects reads it, or rows of it
};

// A temporary that is rows [begin, end) of another variable if that variable holds `whole` when the temporary
// is first written; otherwise it gets its own memory.
struct RowView {
  int slot = -1;
  int of = -1;  // slot
  VarInfo whole;
  Dim begin = 0;
  Dim end = 0;
};

struct Specialisation {
  std::shared_ptr<const CompiledBlock> block;
  std::vector<VarInfo> key;  // types of the slots block->key
  std::vector<Step> steps;
  std::vector<Place> places;
  std::vector<RowView> views;
  std::size_t arena_bytes = 0;
  std::size_t workspace_bytes = 0;
  int late_steps = 0;
};

// `known`: the state of each slot before the run; for slots not in block->key, their declaration.
Result<std::unique_ptr<Specialisation>> Specialise(std::shared_ptr<const CompiledBlock> block,
                                                   std::vector<VarInfo> known, const Services& services);

}  // namespace penstock::exec
