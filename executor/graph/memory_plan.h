// Places temporaries in one arena. Two temporaries may share bytes if no instruction needs both.
#pragma once

#include <cstddef>
#include <vector>

namespace penstock::exec {

// The life of a temporary: from the instruction that first writes it to its last use, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // one for each lifetime, in their order; multiples of 64
  std::size_t arena_bytes = 0;
};

// What a temporary takes in the arena: its bytes, up to a multiple of 64.
std::size_t BytesInArena(std::size_t bytes);

// Goes through the instructions in order and gives each new temporary the smallest free gap that holds it (of
// equal gaps the lowest), so the result depends only on the lifetimes. Two lifetimes that have an
// instruction in common never overlap; in_place.h joins those that may.
MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes);

}  // namespace penstock::exec
