// Level 2 of compiling: a block for given shapes. Every op's shapes are inferred, its kernel prepared, and
// every temporary has its place in the arena.
//
// An op whose inputs' shapes cannot be known before it runs (they depend on values) is left late: the
// scheduler prepares it with what it meets.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/graph/infer.h"

namespace penstock::exec {

// What a prepared kernel takes for granted of an input.
struct InputOperand {
  int slot = -1;
  VarInfo info;  // a tensor of known extents; of other kinds the kind alone counts
};

// A tensor that a step is about to write.
struct OutputTensor {
  int slot = -1;
  VarInfo info;
  int place = -1;            // index into places; -1: the frame does not place it
  int view = -1;             // index into views, -1: none
  bool in_place = false;     // the op reads the same variable: what is there must stay
  bool sent_before = false;  // an earlier step handed the variable to somebody who may still read its memory
};

// One op, ready.
struct Step {
  const Instruction* instruction = nullptr;
  std::unique_ptr<Kernel> kernel;       // null: late
  std::vector<std::size_t> workspaces;  // offset of each in the shared workspace
  // Looked at before each run of the kernel: whoever wrote a variable last may have left another size, type
  // or kind than was inferred. An input that is not as prepared makes the step late for this run; an output
  // is made anew. Outputs are none for an op that starts blocks: those make what they write.
  std::vector<InputOperand> inputs;
  std::vector<OutputTensor> outputs;  // dense ones of known shape
  bool may_lack_inputs = false;       // the kernel finds out which inputs it reads
  std::vector<LodShare> lod_shares;
  bool starts_blocks = false;
  // Slots it reads that a block may have written or not: looked at before it runs.
  std::vector<int> uncertain;
};

// Where a temporary lies.
struct Place {
  int slot = -1;
  DType dtype = DType::kFp32;  // as first written
  Shape shape;
  std::size_t bytes = 0;    // the most it ever needs
  std::size_t offset = 0;   // in the arena
  bool own_buffer = false;  // not in the arena
  bool sent = false;        // an op with an effect outside reads it, or rows of it
};

// A temporary that is rows [begin, end) of another variable where that one holds `whole` when the temporary
// is first written; else it gets memory of its own.
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

// `known`: what each slot holds before the run; for slots not in block->key what is declared.
Result<std::unique_ptr<Specialisation>> Specialise(std::shared_ptr<const CompiledBlock> block,
                                                   std::vector<VarInfo> known, const Services& services);

}  // namespace penstock::exec
