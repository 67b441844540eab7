// Reduces the corresponding elements of several ranks into one, in rank order, so a group computes the same
// bytes as one process.
//
//   const std::byte* sources[] = {of_rank_0, of_rank_1, of_rank_2};
//   ReduceInOrder(ElementType::kFp32, Reduction::kMean, sources, count, out);
//
// Sums are ((x0 + x1) + x2) + ...; fp16 and bf16 are added as floats and rounded once, ties to even; integers
// wrap around. A mean is the sum divided by the number of sources, or by `divisor` if the sources are
// themselves sums. In max and min a NaN wins.
#pragma once

#include <cstddef>
#include <span>

#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// sources: at least one, `count` elements each; `out` may be one of them. kMean: floats only; divisor 0: the
// number of sources. `copy`, if given, gets the same bytes as `out`, while they are in the first-level cache.
void ReduceInOrder(ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
                   std::size_t count, std::byte* out, std::size_t divisor = 0, std::byte* copy = nullptr);

}  // namespace penstock::collective
