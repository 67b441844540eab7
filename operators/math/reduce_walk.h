// Maps the elements of X to elements of Out, for ops that reduce the axes in attribute `dim`, or all axes if
// reduce_all is set.
//
//   walk_.Prepare(k);                                                        // in Prepare
//   walk_.ForEach([&](Dim i, Dim o) { out[o] = Step(out[o], x[i]); });       // visits X in row-major order
#pragma once

#include <algorithm>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"

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
    Dim stride = 1;
    for (int i = x.rank() - 1; i >= 0; --i) {
      const bool goes = (*reduced)[static_cast<std::size_t>(i)];
      extents_.push_back(x[i]);
      strides_.push_back(goes ? 0 : stride);
      if (!goes) stride *= x[i];
    }
    count_ = x.Count();
    kept_ = stride;
    at_.resize(extents_.size());
    return OkStatus();
  }
  Dim outputs() const { return kept_; }
  Dim each() const { return kept_ == 0 ? 0 : count_ / kept_; }  // elements of X per element of Out

  template <typename Visit>
  void ForEach(Visit visit) {
    std::ranges::fill(at_, 0);
    Dim out = 0;
    for (Dim i = 0; i < count_; ++i) {
      visit(i, out);
      for (std::size_t d = 0; d < extents_.size(); ++d) {
        out += strides_[d];
        if (++at_[d] < extents_[d]) break;
        out -= strides_[d] * extents_[d];
        at_[d] = 0;
      }
    }
  }

 private:
  std::vector<Dim> extents_, strides_, at_;  // innermost first
  Dim count_ = 0, kept_ = 1;
};

}  // namespace penstock
