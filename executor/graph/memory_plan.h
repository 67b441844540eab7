// Places temporaries in one arena: two may share bytes if no instruction needs both.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock::exec {

// A temporary: alive from the instruction that first writes it to the one that uses it last, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // one for each lifetime, in their order; multiples of 64
  std::size_t arena_bytes = 0;
};

// Walks the instructions in order and gives each new temporary the smallest free gap that holds it (the
// lowest of equal ones), so the result depends on the lifetimes alone. What an instruction writes never
// overlaps what it reads.
MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes);

}  // namespace penstock::exec
