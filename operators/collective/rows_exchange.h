// Selected rows of all ranks of a ring.
#pragma once

#include "framework/tensor/variable.h"
#include "operators/common/merge_rows.h"
#include "operators/common/ring.h"

namespace penstock {

// Keeps its memory between calls. Blocks until the rows are there. Rows are f32, f64, i32 or i64.
class RowsExchange {
 public:
  // `out`, which may be `x`, becomes the rows of all ranks, each once and ascending; values of a row are
  // added in rank order. A rank without rows takes part. Three all-gathers: of numbers, rows, values.
  Status Sum(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, SelectedRows& out);
  // `out`, which may be `x`, becomes the rows of rank `root`.
  Status Broadcast(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x, int root,
                   SelectedRows& out);

 private:
  Status Gather(const RingUse& ring, CollectiveGroup& group, const SelectedRows& x);

  SelectedRows all_;  // of all ranks, in rank order
  RowMerger merger_;
};

}  // namespace penstock
