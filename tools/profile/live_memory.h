// The memory of a run at each of its instructions, by the plan.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/graph/specialise.h"

namespace penstock::profile {

// A temporary in the arena.
struct LiveValue {
  int slot = -1;
  std::size_t bytes = 0;
  int first = 0, last = 0;  // instructions
};

// Bytes.
struct LiveMemory {
  std::size_t persistable = 0;  // variables of the scope whose shapes are declared
  std::size_t fed = 0;
  std::size_t own_buffers = 0;     // of temporaries that others may hold after the run
  std::size_t workspace = 0;       // shared by the kernels
  std::size_t arena = 0;           // of all other temporaries
  std::vector<std::size_t> live;   // by instruction: the part of the arena that is in use
  std::size_t peak = 0;            // the first instruction with the largest part
  std::vector<LiveValue> at_peak;  // the largest first; of values that share memory the last one

  std::size_t Constant() const { return persistable + fed + own_buffers + workspace; }
};

LiveMemory LiveMemoryOf(const exec::Specialisation& plan);

}  // namespace penstock::profile
