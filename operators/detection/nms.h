// Non-maximum suppression, for the ops at the end of a detector.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/op/infer_context.h"
#include "operators/detection/boxes.h"
#include "operators/detection/polygons.h"

namespace penstock {

// A detected box of one image: its class, its number, its score.
template <typename T>
struct Detection {
  T score{};
  Dim label = 0;
  Dim box = 0;
};

// Boxes of 4 numbers, or polygons of 8, 16, 24 or 32 numbers, `stride` elements apart.
template <typename T>
struct BoxList {
  const T* data = nullptr;
  Dim stride = 4;
  int size = 4;
  bool normalized = true;

  const T* At(Dim i) const { return data + i * stride; }
  T Overlap(Dim i, Dim j) const {
    return size == 4 ? BoxOverlap(At(i), At(j), normalized) : PolygonOverlap(At(i), At(j), size);
  }
};

// Sets `found` to the scores and numbers of the boxes whose score is above `threshold`, best first: at most
// top_k of them, or all if top_k is negative. Boxes with equal scores keep their order. `score(i)` returns
// the score of box i.
template <typename T, typename Score>
void BestFirst(Dim count, T threshold, Dim top_k, Score score, std::vector<std::pair<T, Dim>>& found) {
  found.clear();
  for (Dim i = 0; i < count; ++i) {
    if (score(i) > threshold) found.emplace_back(score(i), i);
  }
  // Compares the numbers if scores are equal, because std::stable_sort would allocate.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  if (top_k >= 0 && top_k < static_cast<Dim>(found.size())) found.resize(static_cast<std::size_t>(top_k));
}

// Removes from `found` each box that overlaps a box kept before it by more than `threshold`. After each kept
// box, `threshold` is multiplied by `eta`, if `eta` is below 1 and `threshold` above 0.5.
template <typename T>
void Suppress(const BoxList<T>& boxes, T threshold, T eta, std::vector<std::pair<T, Dim>>& found) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < found.size(); ++at) {
    const std::pair<T, Dim> one = found[at];
    const bool keeps =
        std::all_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept),
                    [&](const auto& other) { return boxes.Overlap(one.second, other.second) <= threshold; });
    if (!keeps) continue;
    found[kept++] = one;
    if (eta < 1 && threshold > static_cast<T>(0.5)) threshold *= eta;
  }
  found.resize(kept);
}

// Reduces an image's detections to the best keep_top_k, sorted by class and, within a class, best first. Does
// nothing if there are no more than keep_top_k, or if keep_top_k is negative.
template <typename T>
void KeepBest(Dim keep_top_k, std::vector<Detection<T>>& found) {
  if (keep_top_k < 0 || static_cast<Dim>(found.size()) <= keep_top_k) return;
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.label != b.label ? a.label < b.label : a.box < b.box;
  });
  found.resize(static_cast<std::size_t>(keep_top_k));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    if (a.label != b.label) return a.label < b.label;
    return a.score != b.score ? a.score > b.score : a.box < b.box;
  });
}

// Returns whether a box may have `size` numbers.
inline bool IsBoxSize(Dim size) { return size == 4 || size == 8 || size == 16 || size == 24 || size == 32; }

}  // namespace penstock
