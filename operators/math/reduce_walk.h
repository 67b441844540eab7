// Maps the elements of X to elements of Out, for ops that reduce the axes in attribute `dim`, or all axes if
// reduce_all is set.
//
//   walk_.Prepare(k);                                                        // in Prepare
//   walk_.ForEach([&](Dim i, Dim o) { out[o] = Step(out[o], x[i]); });       // visits X in row-major order
//   walk_.RunsInParallel(ns, [&](Dim i, Dim o, Dim count) { ... });           // the same by runs
#pragma once

#include <algorithm>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"
#include "operators/common/parallel.h"

namespace penstock {

// Returns which axes of X are reduced. The error message does not name the op.
inline Result<std::vector<bool>> AxesOf(const std::vector<std::int32_t>& dims, bool reduce_all, int rank) {
  std::vector<bool> reduced(static_cast<std::size_t>(rank), reduce_all);
  for (const std::int32_t dim : dims) {
    if (reduce_all) break;
    const int axis = dim < 0 ? dim + rank : dim;
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("E-shape-reduce", "dim (", dim, ") must be in [", -rank, ", ", rank, ")");
    }
    reduced[static_cast<std::size_t>(axis)] = true;
  }
  return reduced;
}

// Sets the shape of Out, and its LoD if the first axis is not reduced.
inline Status InferReducedShape(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const Result<std::vector<bool>> reduced =
      AxesOf(c.Attr<std::vector<std::int32_t>>("dim"), c.Attr<bool>("reduce_all"), x.rank());
  if (!reduced.ok()) return c.Error(reduced.status().message());
  const bool keeps = c.Attr<bool>("keep_dim");
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!(*reduced)[static_cast<std::size_t>(i)]) {
      out.Append(x[i]);
    } else if (keeps) {
      out.Append(1);
    }
  }
  if (out.rank() == 0) out.Append(1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", out));
  if (x.rank() > 0 && !(*reduced)[0]) {
    c.ShareLod("X", "Out");
  } else {
    c.SetLodLevel("Out", 0);
  }
  return OkStatus();
}

// Visits the elements of X in order, with the index in Out to which each belongs.
class ReduceWalk {
 public:
  Status Prepare(const KernelSetup& k) {
    const Shape& x = k.Input("X").shape;
    const Result<std::vector<bool>> reduced =
        AxesOf(k.Attr<std::vector<std::int32_t>>("dim"), k.Attr<bool>("reduce_all"), x.rank());
    if (!reduced.ok()) return k.Error(reduced.status().message());
    Dim x_stride = 1, out_stride = 1;
    for (int i = x.rank() - 1; i >= 0; --i) {
      const bool goes = (*reduced)[static_cast<std::size_t>(i)];
      if (!levels_.empty() && levels_.front().goes() == goes) {
        levels_.front().extent *= x[i];
      } else {
        levels_.insert(levels_.begin(), {x[i], x_stride, goes ? 0 : out_stride});
      }
      x_stride *= x[i];
      if (!goes) out_stride *= x[i];
    }
    count_ = x.Count();
    kept_ = out_stride;
    return OkStatus();
  }
  Dim outputs() const { return kept_; }
  Dim each() const { return kept_ == 0 ? 0 : count_ / kept_; }  // elements of X per element of Out

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    Walk(0, 0, 0, levels_.size(), 0, 0, ByElements(visit));
  }

  // Whether the elements of a run belong to consecutive elements of Out; otherwise to one.
  bool moves() const { return !levels_.empty() && !levels_.back().goes(); }
  // The same by runs, divided among threads (common/parallel.h): calls visit(i, o, count) for elements i, i +
  // 1 ... of X, which belong to o, or to o, o + 1 ... of Out. Elements of X that belong to one element of Out
  // are visited by one thread, in order, and those that are adjacent in one run.
  template <typename Visit>
  void RunsInParallel(double element_ns, const Visit& visit) const {
    const std::size_t d = LevelToDivide();
    if (d == levels_.size() || count_ == 0) return Walk(0, 0, 0, levels_.size(), 0, 0, visit);
    const Dim row = count_ / levels_[d].extent;  // elements of each step of the level
    ForRows(levels_[d].extent, element_ns * static_cast<double>(row),
            [&](Dim begin, Dim end) { Walk(0, 0, 0, d, begin, end, visit); });
  }
  // The same by blocks of runs: calls visit(i, o, block), where the runs of a block begin block.stride
  // elements apart and belong to the same elements of Out.
  struct Block {
    Dim runs, stride, count;
  };
  template <typename Visit>
  void BlocksInParallel(double element_ns, const Visit& visit) const {
    if (!moves() || levels_.size() < 2) {
      return RunsInParallel(element_ns, [&](Dim i, Dim o, Dim count) {
        visit(i, o, Block{1, count, count});
      });
    }
    const std::size_t d = LevelToDivide(), last = levels_.size() - 1;
    if (count_ == 0) return;
    const auto walk = [&](Dim begin, Dim end) {
      const Dim first = d == last ? begin : 0, size = d == last ? end - begin : levels_[last].extent;
      const Block block = {levels_[last - 1].extent, levels_[last - 1].x_stride, size};
      const auto visit_block = [&](Dim i, Dim o) { visit(i + first, o + first, block); };
      WalkTo(last - 1, 0, 0, 0, d, begin, end, visit_block);
    };
    ForRows(levels_[d].extent, element_ns * static_cast<double>(count_ / levels_[d].extent), walk);
  }

 private:
  struct Level {  // adjacent axes that are all reduced or all kept
    Dim extent, x_stride, out_stride;
    bool goes() const { return out_stride == 0; }
  };

  // The outermost kept level with many steps, or else the longest one; the number of levels: there is none.
  std::size_t LevelToDivide() const {
    constexpr Dim kMany = 16;
    std::size_t longest = levels_.size();
    for (std::size_t d = 0; d < levels_.size(); ++d) {
      if (levels_[d].goes()) continue;
      if (levels_[d].extent >= kMany) return d;
      if (longest == levels_.size() || levels_[d].extent > levels_[longest].extent) longest = d;
    }
    return longest;
  }

  template <typename Visit>
  auto ByElements(const Visit& visit) const {
    return [&visit, step = Dim{moves()}](Dim i, Dim o, Dim count) {
      for (Dim j = 0; j < count; ++j) visit(i + j, o + j * step);
    };
  }

  // Visits the runs of the levels from `level` on, of level `divided` only the steps [begin, end).
  template <typename Visit>
  void Walk(std::size_t level, Dim x, Dim out, std::size_t divided, Dim begin, Dim end,
            const Visit& visit) const {
    if (level == levels_.size()) return visit(x, out, 1);  // X is a scalar
    const Level& l = levels_[level];
    const Dim first = level == divided ? begin : 0, last = level == divided ? end : l.extent;
    if (level + 1 == levels_.size())
      return visit(x + first * l.x_stride, out + first * l.out_stride, last - first);
    for (Dim i = first; i < last; ++i)
      Walk(level + 1, x + i * l.x_stride, out + i * l.out_stride, divided, begin, end, visit);
  }

  // Visits the beginnings of the steps of the levels before `stop`, of level `divided` only [begin, end).
  template <typename Visit>
  void WalkTo(std::size_t stop, std::size_t level, Dim x, Dim out, std::size_t divided, Dim begin, Dim end,
              const Visit& visit) const {
    if (level == stop) return visit(x, out);
    const Level& l = levels_[level];
    const Dim first = level == divided ? begin : 0, last = level == divided ? end : l.extent;
    for (Dim i = first; i < last; ++i)
      WalkTo(stop, level + 1, x + i * l.x_stride, out + i * l.out_stride, divided, begin, end, visit);
  }

  std::vector<Level> levels_;  // outermost first
  Dim count_ = 0, kept_ = 1;
};

}  // namespace penstock
