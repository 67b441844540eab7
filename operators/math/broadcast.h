// Broadcasting of two arrays by Fluid's rule, and the loops over the result.
//
// The axes of the array of lower rank are aligned with the other's, starting at `axis` (-1: with the last
// ones). For equal shapes, `axis` is ignored. Where an array has no axis, or extent 1, its element is
// repeated. For example, X [2, 3, 4, 5] and Y [3, 4] with axis 1 give [2, 3, 4, 5].
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/kernel.h"
#include "framework/tensor/shape.h"
#include "operators/common/parallel.h"

namespace penstock {

// Both shapes extended to the same rank, with extents of 1 for missing axes, and the shape of the result.
// kInvalidArgument: the shapes do not match; the message states the violated rule, without the op.
struct AlignedShapes {
  Shape x, y, out;
};
Result<AlignedShapes> AlignShapes(const Shape& x, const Shape& y, int axis);

// Nested loops over the result. Adjacent axes that are contiguous in both arrays are merged. Strides are in
// elements; a stride of 0 repeats the element.
class BroadcastLoops {
 public:
  static constexpr int kMaxDepth = 8;

  BroadcastLoops() = default;
  // All extents must be known. kInvalidArgument: as AlignShapes, or more than kMaxDepth loops would be
  // needed.
  static Result<BroadcastLoops> Make(const Shape& x, const Shape& y, int axis);

  Dim inner() const { return extent_[0]; }
  bool x_moves() const { return x_stride_[0] != 0; }  // whether X advances in the innermost loop
  bool y_moves() const { return y_stride_[0] != 0; }
  bool x_repeats() const { return x_repeats_; }  // whether an element of X is used more than once
  bool y_repeats() const { return y_repeats_; }

  // Calls row(out_begin, x_begin, y_begin) for each run of inner() elements of the result, in order.
  template <typename Row>
  void ForEachRow(Row row) const {
    ForEachBlock([&](const RowBlock& b) {
      for (Dim r = 0; r < b.rows; ++r) row(b.out + r * b.out_row, b.x + r * b.x_row, b.y + r * b.y_row);
    });
  }

  // Rows of inner() elements whose beginnings are equally far apart: out_row in the result, x_row and y_row.
  struct RowBlock {
    Dim rows, out, x, y, out_row, x_row, y_row;
  };
  // Calls visit(block) for all rows, in order.
  template <typename Visit>
  void ForEachBlock(Visit visit) const {
    std::array<Dim, kMaxDepth> at{};
    RowBlock block = {extent_[1], out_first_, x_first_, y_first_, out_stride_[1], x_stride_[1], y_stride_[1]};
    if (rows_ == 0 || inner() == 0) return;
    for (Dim first = 0; first < rows_; first += block.rows) {
      visit(std::as_const(block));
      for (std::size_t d = 2; d < depth_; ++d) {
        block.x += x_stride_[d];
        block.y += y_stride_[d];
        block.out += out_stride_[d];
        if (++at[d] < extent_[d]) break;
        block.x -= x_stride_[d] * extent_[d];
        block.y -= y_stride_[d] * extent_[d];
        block.out -= out_stride_[d] * extent_[d];
        at[d] = 0;
      }
    }
  }

  // Divides the loops among threads (common/parallel.h): calls part(loops) for parts that together visit
  // every element of the result. No two parts visit the same element of `apart`; each visits those that it
  // does visit in the order of the whole, so sums into them do not depend on the division.
  enum class Apart { kOut, kX, kY };
  template <typename Part>
  void InParallel(double element_ns, Apart apart, const Part& part) const {
    const std::size_t d = LoopToDivide(apart);
    if (d == kMaxDepth) return part(*this);
    const Dim elements = rows_ * inner();
    if (elements == 0) return;
    const Dim of_step = elements / extent_[d];
    const double step_ns = element_ns * static_cast<double>(of_step);
    const auto of_range = [&](Dim begin, Dim end) { part(Range(d, begin, end)); };
    d == 0 ? ForElements(extent_[d], step_ns, of_range) : ForRows(extent_[d], step_ns, of_range);
  }

 private:
  // The outermost loop with many steps, or else the longest one; kMaxDepth: no loop moves in `apart`.
  std::size_t LoopToDivide(Apart apart) const;
  // Only the steps [begin, end) of loop d.
  BroadcastLoops Range(std::size_t d, Dim begin, Dim end) const;

  std::size_t depth_ = 1;  // innermost loop first
  std::array<Dim, kMaxDepth> extent_ = {1, 1};
  std::array<Dim, kMaxDepth> x_stride_{};
  std::array<Dim, kMaxDepth> y_stride_{};
  std::array<Dim, kMaxDepth> out_stride_{};
  Dim x_first_ = 0, y_first_ = 0, out_first_ = 0;
  Dim rows_ = 1;  // how often the innermost loop runs
  bool x_repeats_ = false, y_repeats_ = false;
};

// Returns the loops of a kernel over X and Y, which must be dense tensors. Errors: as Make, with the op's
// name.
Result<BroadcastLoops> LoopsOver(const KernelSetup& k, const Shape& x, const Shape& y, int axis);

}  // namespace penstock
