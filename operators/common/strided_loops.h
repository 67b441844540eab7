// Loops over two arrays at once. One is contiguous and row-major; in the other, each axis has its own stride.
// A stride of 0 repeats an element (expand); a larger stride skips a gap between rows (slice, pad).
//
//   StridedLoops loops;
//   loops.Add(rows, 5);     // outermost first: extent, stride in the other array
//   loops.Add(3, 1);
//   loops.ForEachRun([&](Dim row_major, Dim other) { ... loops.inner() elements ... });
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "framework/base/check.h"
#include "framework/tensor/shape.h"
#include "operators/common/parallel.h"

namespace penstock {

class StridedLoops {
 public:
  static constexpr int kMaxExtents = 16;

  void Clear() { depth_ = 0; }
  // Adds an axis. Adjacent axes that are contiguous in both arrays become one loop; at most kMaxExtents may
  // remain.
  void Add(Dim extent, Dim stride) {
    if (extent == 1) return;
    if (depth_ > 0 && stride_[depth_ - 1] == stride * extent) {
      extent_[depth_ - 1] *= extent;
      stride_[depth_ - 1] = stride;
      return;
    }
    PENSTOCK_CHECK(depth_ < kMaxExtents, "the caller bounds the rank");
    extent_[depth_] = extent;
    stride_[depth_++] = stride;
  }

  Dim runs() const {
    Dim runs = 1;
    for (std::size_t d = 0; d + 1 < depth_; ++d) runs *= extent_[d];
    return runs;
  }
  Dim inner() const { return depth_ == 0 ? 1 : extent_[depth_ - 1]; }
  Dim inner_stride() const { return depth_ == 0 ? 1 : stride_[depth_ - 1]; }

  // Calls run(index in the row-major array, index in the other array) for each run of inner() elements, which
  // are inner_stride() apart in the other array.
  template <typename Run>
  void ForEachRun(Run run) const {
    ForEachRun(0, runs(), run);
  }
  // The same for runs [begin, end) of all runs().
  template <typename Run>
  void ForEachRun(Dim begin, Dim end, Run run) const {
    if (begin >= end || inner() == 0) return;
    std::array<Dim, kMaxExtents> at{};
    Dim other = 0;
    for (Dim left = begin, d = static_cast<Dim>(depth_) - 2; d >= 0 && left > 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      at[i] = left % extent_[i];
      left /= extent_[i];
      other += at[i] * stride_[i];
    }
    for (Dim r = begin; r < end; ++r) {
      run(r * inner(), other);
      if (depth_ < 2) continue;
      for (std::size_t d = depth_ - 1; d-- > 0;) {
        other += stride_[d];
        if (++at[d] < extent_[d]) break;
        other -= stride_[d] * extent_[d];
        at[d] = 0;
      }
    }
  }

  // Copies row_major[...] = other[...], for elements of the given size.
  void Gather(std::size_t element_bytes, const std::byte* other, std::byte* row_major) const {
    Move(element_bytes, row_major, other, [](auto& mine, const auto& theirs) { mine = theirs; });
  }
  // Copies other[...] = row_major[...]. No stride may be 0.
  void Scatter(std::size_t element_bytes, const std::byte* row_major, std::byte* other) const {
    Move(element_bytes, row_major, other, [](const auto& mine, auto& theirs) { theirs = mine; });
  }

 private:
  // Copies depend only on the size of an element, so they serve every type.
  template <typename Mine, typename Theirs, typename Step>
  void Move(std::size_t element_bytes, Mine* mine, Theirs* theirs, Step step) const {
    switch (element_bytes) {
      case 1:
        return MoveAs<std::uint8_t>(mine, theirs, step);
      case 2:
        return MoveAs<std::uint16_t>(mine, theirs, step);
      case 4:
        return MoveAs<std::uint32_t>(mine, theirs, step);
      default:
        return MoveAs<std::uint64_t>(mine, theirs, step);
    }
  }
  template <typename Element, typename Mine, typename Theirs, typename Step>
  void MoveAs(Mine* mine_bytes, Theirs* theirs_bytes, Step step) const {
    auto* const mine = As<Element>(mine_bytes);
    auto* const theirs = As<Element>(theirs_bytes);
    const Dim n = inner(), stride = inner_stride();
    ForRows(runs(), StreamNs<Element>(2) * static_cast<double>(n), [&](Dim begin, Dim end) {
      ForEachRun(begin, end, [&](Dim m, Dim t) {
        for (Dim i = 0; i < n; ++i) step(mine[m + i], theirs[t + i * stride]);
      });
    });
  }
  template <typename Element>
  static Element* As(std::byte* bytes) {
    return reinterpret_cast<Element*>(bytes);
  }
  template <typename Element>
  static const Element* As(const std::byte* bytes) {
    return reinterpret_cast<const Element*>(bytes);
  }

  std::size_t depth_ = 0;
  std::array<Dim, kMaxExtents> extent_{}, stride_{};  // outermost first
};

}  // namespace penstock
