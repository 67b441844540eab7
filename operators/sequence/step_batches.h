// The rows of sequences in the order in which a recurrence processes them: step by step, and within a step
// one row of each sequence that is long enough, the longest sequence first. The rows of a step are therefore
// contiguous, and place p of a step belongs to the same sequence as place p of the step before. Each step is
// one matrix product.
//
//   sequences of 2, 4 and 3 rows:  steps [2 6 0] [3 7 1] [4 8] [5]
#pragma once

#include <algorithm>
#include <vector>

#include "operators/common/lod.h"

namespace penstock {

class StepBatches {
 public:
  // Computes the order. If `reversed`, each sequence runs from its last row to its first. Allocates only if
  // there are more rows than before.
  void Make(const Offsets& sequences, bool reversed);

  Dim steps() const { return static_cast<Dim>(begins_.size()) - 1; }
  Dim begin(Dim step) const {
    return begins_[static_cast<std::size_t>(step)];
  }  // the position of the first row of a step
  Dim size(Dim step) const { return begin(step + 1) - begin(step); }
  Dim rows() const { return static_cast<Dim>(rows_.size()); }
  // Returns the row of the argument at a position.
  Dim row(Dim position) const { return rows_[static_cast<std::size_t>(position)]; }
  // Returns the sequence that has this place in each of its steps.
  Dim sequence(Dim place) const { return order_[static_cast<std::size_t>(place)]; }

  // Copy rows of `width` elements into the order of the batches, and back.
  template <typename T>
  void Gather(const T* from, Dim width, T* to) const {
    for (Dim i = 0; i < rows(); ++i) std::copy_n(from + row(i) * width, width, to + i * width);
  }
  template <typename T>
  void Scatter(const T* from, Dim width, T* to) const {
    for (Dim i = 0; i < rows(); ++i) std::copy_n(from + i * width, width, to + row(i) * width);
  }
  // Copies one row per sequence into the order of the places of step 0; sequences without rows come last.
  template <typename T>
  void GatherSequences(const T* from, Dim width, T* to) const {
    for (const Dim s : order_) to = std::copy_n(from + s * width, width, to);
  }
  // Copies to each position the row of the previous step of its sequence. `from` is in the order of the
  // batches. `first` has one row per sequence for step 0; null means zeros.
  template <typename T>
  void GatherPrevious(const T* from, const T* first, Dim width, T* to) const {
    const Dim starting = steps() == 0 ? 0 : size(0);
    for (Dim place = 0; place < starting; ++place, to += width) {
      if (first == nullptr) {
        std::fill_n(to, width, T{0});
      } else {
        std::copy_n(first + sequence(place) * width, width, to);
      }
    }
    for (Dim t = 1; t < steps(); ++t) to = std::copy_n(from + begin(t - 1) * width, size(t) * width, to);
  }

 private:
  std::vector<Dim> order_, begins_, rows_;
};

}  // namespace penstock
