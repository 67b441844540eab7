// Uniform random samples of lists, and the regression targets of boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/runtime/random.h"
#include "operators/common/philox.h"
#include "operators/detection/boxes.h"

namespace penstock {

// Random draws for ops without a seed: each run draws a different sequence.
class SampleDraws {
 public:
  void Prepare(const KernelSetup& k, bool random) {
    source_ = k.services().random != nullptr ? k.services().random : &ProcessRandom();
    random_ = random;
  }
  void Begin() {
    if (random_) key_ = source_->Next();
    next_ = 0;
  }
  // Moves a sample of `count` of `size` elements to the front, by calls swap(a, b) that exchange two
  // elements. If draws are random, all elements have the same probability (reservoir sampling); otherwise the
  // first ones stay.
  template <typename Swap>
  void Choose(std::size_t size, std::size_t count, Swap swap) {
    for (std::size_t i = count; random_ && count > 0 && i < size; ++i) {
      const PhiloxWords words = PhiloxBlock(key_, next_++);
      const std::uint64_t drawn = (static_cast<std::uint64_t>(words[0]) << 32 | words[1]) % (i + 1);
      if (drawn < count) swap(static_cast<std::size_t>(drawn), i);
    }
  }
  template <typename T>
  void Shorten(std::vector<T>& list, std::size_t count) {
    if (list.size() <= count) return;
    Choose(list.size(), count, [&](std::size_t a, std::size_t b) { std::swap(list[a], list[b]); });
    list.resize(count);
  }

 private:
  RandomSource* source_ = nullptr;
  bool random_ = false;
  std::uint64_t key_ = 0, next_ = 0;
};

// Returns the intersection over union of two boxes in pixels; 0 if they do not overlap.
template <typename T>
T PixelOverlap(const T* a, const T* b) {
  const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + 1;
  const T height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + 1;
  if (!(width > 0 && height > 0)) return T{0};
  const T common = width * height;
  const auto area = [](const T* box) { return (box[2] - box[0] + 1) * (box[3] - box[1] + 1); };
  return common / (area(a) + area(b) - common);
}

// Computes the regression target of `box`: the offset of the centre of `truth`, relative to the extents of
// `box`, and the logarithms of the ratios of the extents.
template <typename T>
void BoxDeltas(const T* box, const T* truth, T* deltas) {
  const T half{0.5};
  const T width = box[2] - box[0] + 1, height = box[3] - box[1] + 1;
  const T true_width = truth[2] - truth[0] + 1, true_height = truth[3] - truth[1] + 1;
  // Centres are rounded before they are subtracted: equal boxes have offsets of 0.
  const T x = box[0] + half * width, y = box[1] + half * height;
  const T true_x = truth[0] + half * true_width, true_y = truth[1] + half * true_height;
  deltas[0] = (true_x - x) / width;
  deltas[1] = (true_y - y) / height;
  deltas[2] = std::log(true_width / width);
  deltas[3] = std::log(true_height / height);
}

}  // namespace penstock
