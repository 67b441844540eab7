// Reduces the same elements of several ranks into one, in rank order: what makes a group's bytes those of one
// process.
//
//   const std::byte* sources[] = {of_rank_0, of_rank_1, of_rank_2};
//   ReduceInOrder(ElementType::kFp32, Reduction::kMean, sources, count, out);
//
// Sums are ((x0 + x1) + x2) + ...; fp16 and bf16 are added as floats and rounded once, to the nearest even;
// integers wrap around. A mean is the sum divided by the number of sources, or by `divisor`, where the
// sources are themselves sums. Of max and min a NaN wins.
#pragma once

#include <cstddef>
#include <span>

#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// sources: at least one, `count` elements each; `out` may be one of them. kMean of floats only; divisor 0:
// the number of sources. `copy`, if any, gets the same bytes as `out`, while they are in the first cache.
void ReduceInOrder(ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
                   std::size_t count, std::byte* out, std::size_t divisor = 0, std::byte* copy = nullptr);

}  // namespace penstock::collective
