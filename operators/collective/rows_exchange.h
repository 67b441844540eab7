// Selected rows of all ranks of a ring.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/variable.h"
#include "operators/common/merge_rows.h"
#include "operators/common/ring.h"

namespace penstock {

// Keeps its memory between calls. Blocks until the rows are there. Rows are f32, f64, i32 or i64.
class RowsExchange {
 public:
  // `out`, which may be `x`, becomes the rows of all ranks, each once and ascending. A row is the sum of its
  // values in x, in their order, on each rank, added up in rank order: the same bytes on either way. A rank
  // without rows takes part.
  //
  // First an all-gather of numbers. Where GatheringCostsMore, an all-reduce of the dense tensor and one of a
  // byte for each of its rows; else an all-gather of rows and one of values.
  Status Sum(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, SelectedRows& out);
  // `out`, which may be `x`, becomes the rows of rank `root`.
  Status Broadcast(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, int root,
                   SelectedRows& out);

 private:
  struct Extent;
  template <typename T>
  Status SumOf(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, SelectedRows& out);
  Status Measure(const RingUse& ring, CollectiveGroup& group, Extent& extent);
  template <typename T>
  Status SumGathered(const RingUse& ring, CollectiveGroup& group, const Extent& extent, SelectedRows& out);
  template <typename T>
  Status SumDense(const RingUse& ring, CollectiveGroup& group, const Extent& extent, SelectedRows& out);

  SelectedRows own_;  // of this rank, each once and ascending
  SelectedRows all_;  // of all ranks, in rank order
  Tensor dense_;
  std::vector<std::uint8_t> present_;  // of each row of the dense tensor: 1 if a rank has it
  RowMerger merger_;
};

// Whether a rank sends more bytes where `rows` rows of all ranks together, each of `row_bytes` bytes and its
// number, are gathered, than where a dense tensor of `height` such rows, with a byte for each, is reduced.
// A reduction sends every element twice.
bool GatheringCostsMore(std::int64_t rows, std::int64_t height, std::int64_t row_bytes);

}  // namespace penstock
