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

namespace penstock {

// A tensor that a step is about to write.
struct OutputTensor {
  int slot = -1;
  VarInfo info;
};

// One op, ready.
struct Step {
  const Instruction* instruction = nullptr;
  std::unique_ptr<Kernel> kernel;       // null: late
  std::vector<std::size_t> workspaces;  // offset of each in the shared workspace
  std::vector<OutputTensor> outputs;    // dense outputs of known shape: compared after each run
  // Of those, the ones that the frame does not place: made right before the op if they are not.
  std::vector<OutputTensor> scope_outputs;
  std::vector<OutputTensor> block_writes;  // what blocks that it starts write of this block
  std::vector<int> rebound;                // of those, temporaries that change type within the block
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
};

struct Specialisation {
  std::shared_ptr<const CompiledBlock> block;
  std::vector<VarInfo> key;  // types of the slots block->key
  std::vector<Step> steps;
  std::vector<Place> places;
  std::size_t arena_bytes = 0;
  std::size_t workspace_bytes = 0;
  int late_steps = 0;
};

// `known`: what each slot holds before the run; for slots not in block->key what is declared.
Result<std::unique_ptr<Specialisation>> Specialise(std::shared_ptr<const CompiledBlock> block,
                                                   std::vector<VarInfo> known, const Services& services);

}  // namespace penstock
