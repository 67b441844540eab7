// Compares every operation of a group with a reference in rank order. Each rank of any backend can check its
// own results, because a seed determines the values of all ranks. If a group adds in another order, sums are
// compared within the tolerance of that order.
//
//   EXPECT_EQ(FirstDifference(*group, 7), "");      // on every rank, at the same time
#pragma once

#include <cstdint>
#include <string>

#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// Runs all operations, types and reductions with sizes 0, 1, odd, and larger than a block. Returns "" if all
// bytes are correct.
std::string FirstDifference(CollectiveGroup& group, std::uint64_t seed);
// Runs `operations` operations of random kinds and sizes, up to eight at a time, with or without messages.
std::string FirstDifferenceOfRandom(CollectiveGroup& group, std::uint64_t seed, int operations,
                                    bool messages = true);

// The bytes of rank `rank`: `count` varied elements of `type`.
std::string ValuesOf(ElementType type, std::int64_t count, int rank, std::uint64_t seed);
// The reduction of these values over ranks 0 to ranks-1, in this order, on one thread.
std::string ReducedInOrder(ElementType type, Reduction reduction, std::int64_t count, int ranks,
                           std::uint64_t seed);

inline Elements ElementsOf(std::string& bytes, ElementType type) {
  return {reinterpret_cast<std::byte*>(bytes.data()), static_cast<std::int64_t>(bytes.size() / SizeOf(type)),
          type};
}

}  // namespace penstock::collective
