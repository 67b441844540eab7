// Shared by fusion_gru and fusion_lstm: the product that makes the gates, and the shapes of their arguments.
#pragma once

#include <string>
#include <utility>

#include "operators/common/gemm.h"
#include "operators/sequence/recurrent.h"

namespace penstock {

// Returns the width. kInvalidArgument: WeightH is not [width, gates * width], or the rows of H0 or C0 have
// another width.
inline Result<Dim> InferRecurrentWidth(InferContext& c, Dim gates) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("WeightH", 2));
  const Dim width = c.ShapeOf("WeightH")[0];
  if (width == kUnknownDim)
    return c.Error("the height of WeightH (", c.ShapeOf("WeightH"), ") must be known");
  if (!Compatible(c.ShapeOf("WeightH")[1], gates * width))
    return c.Error("shape of WeightH (", c.ShapeOf("WeightH"), ") must be [", width, ", ", gates * width,
                   "]");
  for (const char* slot : {"H0", "C0"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot), Shape{kUnknownDim, width}))
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [sequences, ", width, "]");
  }
  return width;
}

// Sets the shapes of XX, BatchedInput, ReorderedH0 and Hidden from X, WeightX, WeightH and H0. Returns the
// width.
inline Result<Dim> InferFusedGates(InferContext& c, Dim gates) {
  PENSTOCK_ASSIGN_OR_RETURN(const Dim width, InferRecurrentWidth(c, gates));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  const Shape &x = c.ShapeOf("X"), &weight = c.ShapeOf("WeightX");
  if (!Compatible(weight, Shape{x[1], gates * width}))
    return c.Error("shape of WeightX (", weight, ") must be ", Shape{x[1], gates * width});
  for (const char* slot : {"XX", "BatchedInput"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {x[0], gates * width}));
  const Dim sequences = c.HasInput("H0") ? c.ShapeOf("H0")[0] : 0;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ReorderedH0", {sequences, width}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Hidden", {x[0], width}));
  c.ShareLod("X", "XX");
  c.ShareLod("X", "Hidden");
  return width;
}

// Computes XX = X . WeightX + Bias. Only the first elements of Bias are used, one per column of XX.
template <typename T>
class GateProduct {
 public:
  void Prepare(KernelSetup& k, Dim width) {
    k.Bind(x_, weight_, bias_);
    width_ = width;
    options_ = {.threads = k.threads()};
    xx_.Prepare(k, "XX", k[x_].shape[0] * width);
  }
  // Returns the rows of XX.
  Result<const T*> Run(KernelRun& k) const {
    const Dim rows = k[x_].shape()[0], depth = k[x_].shape()[1];
    T* const xx = xx_.At(k);
    PENSTOCK_RETURN_IF_ERROR(Gemm<T>(RowMajor(std::as_const(k[x_]).template Data<T>(), rows, depth),
                                     RowMajor(std::as_const(k[weight_]).template Data<T>(), depth, width_),
                                     RowMajor(xx, rows, width_), options_));
    if (bias_) AddToRows(std::as_const(k[bias_]).template Data<T>(), rows, width_, xx);
    return static_cast<const T*>(xx);
  }

 private:
  In<"X"> x_;
  In<"WeightX"> weight_;
  In<"Bias"> bias_;
  Dim width_ = 0;
  GemmOptions options_;
  OutputOrScratch<T> xx_;
};

}  // namespace penstock
