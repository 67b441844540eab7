// Every operation of a group against a reference in rank order: what each rank of any backend can check by
// itself, because the values of all ranks are a function of a seed. Sums of a group that adds in another
// order are compared to within what the order can change.
//
//   EXPECT_EQ(FirstDifference(*group, 7), "");      // on every rank, at the same time
#pragma once

#include <cstdint>
#include <string>

#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// All operations, types and reductions, with sizes 0, 1, odd, and larger than a block. Empty: all bytes are
// right.
std::string FirstDifference(CollectiveGroup& group, std::uint64_t seed);
// Some hundred operations of random kinds and sizes, up to eight at a time; with or without messages.
std::string FirstDifferenceOfRandom(CollectiveGroup& group, std::uint64_t seed, int operations,
                                    bool messages = true);

// A little of everything, byte by byte, as `count` elements of `type` of rank `rank`.
std::string ValuesOf(ElementType type, std::int64_t count, int rank, std::uint64_t seed);
// Their reduction over ranks 0 to ranks-1, added in this order by one thread.
std::string ReducedInOrder(ElementType type, Reduction reduction, std::int64_t count, int ranks,
                           std::uint64_t seed);

inline Elements ElementsOf(std::string& bytes, ElementType type) {
  return {reinterpret_cast<std::byte*>(bytes.data()), static_cast<std::int64_t>(bytes.size() / SizeOf(type)),
          type};
}

}  // namespace penstock::collective
