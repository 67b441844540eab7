#include "operators/sequence/step_batches.h"

#include <numeric>

namespace penstock {

void StepBatches::Make(const Offsets& sequences, bool reversed) {
  order_.resize(static_cast<std::size_t>(sequences.count()));
  std::iota(order_.begin(), order_.end(), Dim{0});
  std::sort(order_.begin(), order_.end(), [&](Dim a, Dim b) {
    return sequences.length(a) != sequences.length(b) ? sequences.length(a) > sequences.length(b) : a < b;
  });
  rows_.clear();
  begins_.assign(1, 0);
  std::size_t alive = order_.size();
  for (Dim step = 0;; ++step) {
    while (alive > 0 && sequences.length(order_[alive - 1]) <= step) --alive;
    if (alive == 0) break;
    for (std::size_t place = 0; place < alive; ++place) {
      const Dim s = order_[place];
      rows_.push_back(reversed ? sequences.end(s) - 1 - step : sequences.begin(s) + step);
    }
    begins_.push_back(static_cast<Dim>(rows_.size()));
  }
}

}  // namespace penstock
