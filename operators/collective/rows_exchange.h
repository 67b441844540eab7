// Sums or broadcasts selected rows over the ranks of a ring.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/variable.h"
#include "operators/common/merge_rows.h"
#include "operators/common/ring.h"

namespace penstock {

// Reuses its memory between calls. Both functions block until `out` is complete. Rows are f32, f64, i32 or
// i64.
class RowsExchange {
 public:
  // Sets `out`, which may be `x`, to the rows of all ranks, each once and in ascending order. Each rank first
  // sums its duplicate rows in their order in x; then the ranks' rows are summed in rank order. A rank
  // without rows must call it too.
  //
  // An all-gather of the numbers of rows comes first. If GatheringCostsMore, an all-reduce of the dense
  // tensor and one of a byte per row follow; otherwise an all-gather of rows and one of values. Both ways
  // give the same bytes if the group adds in rank order.
  Status Sum(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, SelectedRows& out);
  // Sets `out`, which may be `x`, to the rows of rank `root`.
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

  SelectedRows own_;  // the rows of this rank, each once and ascending
  SelectedRows all_;  // the rows of all ranks, in rank order
  Tensor dense_;
  std::vector<std::uint8_t> present_;  // for each row of the dense tensor: 1 if any rank has it
  RowMerger merger_;
};

// Returns whether gathering sends more bytes per rank than reducing. Gathering sends `rows` rows (of all
// ranks together), each with its row number; reducing sends a dense tensor of `height` rows, with one byte
// per row, and sends every element twice. A row has `row_bytes` bytes.
bool GatheringCostsMore(std::int64_t rows, std::int64_t height, std::int64_t row_bytes);

}  // namespace penstock
