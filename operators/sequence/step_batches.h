// The rows of sequences in the order in which a recurrence processes them: step by step, and within a step
// one row of each sequence that is long enough, the longest sequence first. The rows of a step are therefore
// contiguous, and place p of a step belongs to the same sequence as place p of the step before. Each step is
// one matrix product.
//
//   sequences of 2, 4 and 3 rows:  steps [2 6 0] [3 7 1] [4 8] [5]
//
// Many sequences are divided into shares, which do not depend on each other: share s has the places s, s +
// shares, s + 2 * shares ..., so that all shares have almost equally many rows. A share runs through all
// steps on one thread. The division depends on the sequences alone, so results are the same for any number
// of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "operators/common/lod.h"

namespace penstock {

constexpr Dim kMostShares = 8;
// The number of shares of so many sequences. A product of fewer than 16 rows costs more for each row.
constexpr Dim SharesOf(Dim sequences) { return std::clamp<Dim>(sequences / 16, 1, kMostShares); }

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

  // The number of sequences that have rows.
  Dim places() const { return steps() == 0 ? 0 : size(0); }

  Dim shares() const { return SharesOf(places()); }
  // The number of rows that a share has in a step. It does not increase from step to step.
  Dim size(Dim step, Dim share) const { return (size(step) - share + shares() - 1) / shares(); }
  Dim Place(Dim share, Dim i) const { return share + i * shares(); }
  Dim Position(Dim step, Dim share, Dim i) const { return begin(step) + Place(share, i); }
  // The most rows that a share has in a step.
  Dim places_of_share() const { return steps() == 0 ? 0 : size(0, 0); }

  // Copies rows of `width` elements from the order of the batches.
  template <typename T>
  void Scatter(const T* from, Dim width, T* to) const {
    for (Dim i = 0; i < rows(); ++i) std::copy_n(from + i * width, width, to + row(i) * width);
  }
  // Copies one row per sequence into the order of the places of step 0; sequences without rows come last.
  template <typename T>
  void GatherSequences(const T* from, Dim width, T* to) const {
    for (const Dim s : order_) to = std::copy_n(from + s * width, width, to);
  }
  // Copies to each row that of the previous step of its sequence: `from` and `to` are in the order of the
  // argument, or `from` is in that of the batches. `first` has one row per sequence for step 0; null means
  // zeros.
  template <typename T>
  void CopyPrevious(const T* from, bool from_batches, const T* first, Dim width, T* to) const {
    for (Dim place = 0; place < places(); ++place) {
      if (first == nullptr) {
        std::fill_n(to + row(place) * width, width, T{0});
      } else {
        std::copy_n(first + sequence(place) * width, width, to + row(place) * width);
      }
    }
    for (Dim t = 1; t < steps(); ++t) {
      for (Dim place = 0; place < size(t); ++place) {
        const Dim previous = begin(t - 1) + place;
        std::copy_n(from + (from_batches ? previous : row(previous)) * width, width,
                    to + row(begin(t) + place) * width);
      }
    }
  }

 private:
  std::vector<Dim> order_, begins_, rows_;
};

}  // namespace penstock
