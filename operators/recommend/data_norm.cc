// data_norm: normalises columns by accumulated sums over all rows so far.
#include <algorithm>
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Means = BatchSum / BatchSize, Scales = sqrt(BatchSize / BatchSquareSum), Y = (X - Means) * Scales; with
enable_scale_and_shift, Y = (X - Means) * Scales * scale_w + bias.

With slot_dim above 0, every slot_dim columns form a slot, whose first column is its number of shows. Where
this number is 0, the row's slot is 0 in Y, has no gradient and is not counted.

BatchSize@GRAD, BatchSum@GRAD and BatchSquareSum@GRAD are not derivatives but sums over this batch, which
update the accumulated sums: the number of rows, the sum of X, and the sum of (X - Means)^2 plus epsilon times
the number of rows. With slots they are means over the counted rows, and the number is 1.)";

constexpr double kShown = 1e-7;  // the smallest number of shows that counts as nonzero

Status InferDataNorm(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  const bool shifts = c.Attr<bool>("enable_scale_and_shift");
  for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"}) {
    const bool is_shift = slot[0] == 's' || slot[0] == 'b';
    if (is_shift && shifts && !c.HasInput(slot)) return c.Error("enable_scale_and_shift needs ", slot);
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot), Shape{x[1]}))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold an element for each column of X (", x, ")");
  }
  const int width = c.Attr<int>("slot_dim");
  if (width > 0 && x[1] != kUnknownDim && x[1] % width != 0)
    return c.Error("slot_dim (", width, ") must divide the columns of X (", x, ")");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Means", {x[1]}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Scales", {x[1]}));
  return c.ShareAll("X", "Y");
}

// The parts of a row that are counted.
class ShownSlots {
 public:
  void Prepare(const KernelSetup& k, Dim columns) {
    columns_ = columns;
    width_ = k.Attr<int>("slot_dim");
  }
  bool has_slots() const { return width_ > 0; }
  template <typename T>
  bool Counts(const T* row, Dim column) const {
    return !has_slots() || !(std::abs(static_cast<double>(row[column - column % width_])) < kShown);
  }

 private:
  Dim columns_ = 0, width_ = -1;
};

template <typename Device, typename T>
class DataNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, size_, sum_, squares_);
    if (k.Attr<bool>("enable_scale_and_shift")) {
      k.Bind(scale_w_, bias_);
    }
    k.Bind(y_, means_, scales_);
    shown_.Prepare(k, k[x_].shape[1]);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "Means"));
    return RequireOutput(k, "Scales");
  }
  Status Run(KernelRun& k) override {
    const T *const size = k[size_].template Data<T>(), *const sum = k[sum_].template Data<T>();
    const T* const squares = k[squares_].template Data<T>();
    T *const means = k[means_].template Data<T>(), *const scales = k[scales_].template Data<T>();
    const Dim columns = k[x_].shape()[1];
    for (Dim j = 0; j < columns; ++j) {
      means[j] = sum[j] / size[j];
      scales[j] = std::sqrt(size[j] / squares[j]);
    }
    const T* const scale_w = scale_w_ ? k[scale_w_].template Data<T>() : nullptr;
    const T* const bias = bias_ ? k[bias_].template Data<T>() : nullptr;
    const T* x = k[x_].template Data<T>();
    T* y = k[y_].template Data<T>();
    for (Dim i = 0; i < k[x_].shape()[0]; ++i, x += columns, y += columns) {
      for (Dim j = 0; j < columns; ++j) {
        const T normal = (x[j] - means[j]) * scales[j];
        const T shifted = scale_w == nullptr ? normal : normal * scale_w[j] + bias[j];
        y[j] = shown_.Counts(x, j) ? shifted : T{0};
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"BatchSize"> size_;
  In<"BatchSum"> sum_;
  In<"BatchSquareSum"> squares_;
  In<"scale_w"> scale_w_;
  In<"bias"> bias_;
  Out<"Y"> y_;
  Out<"Means"> means_;
  Out<"Scales"> scales_;
  ShownSlots shown_;
};

template <typename Device, typename T>
class DataNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, means_, scales_, dy_);
    if (k.Attr<bool>("enable_scale_and_shift")) {
      k.Bind(scale_w_);
      if (!scale_w_) return k.Error("enable_scale_and_shift needs scale_w");
    }
    if (k[x_].shape.rank() != 2) return k.Error("rank of X (", k[x_].shape, ") must be 2");
    const Shape columns = {k[x_].shape[1]};
    for (const char* slot : {"Means", "Scales"}) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, columns));
    if (scale_w_) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "scale_w", columns));
    const int width = k.Attr<int>("slot_dim");
    if (width > 0 && k[x_].shape[1] % width != 0)
      return k.Error("slot_dim (", width, ") must divide the columns of X");
    const char* const outputs[] = {"X", "BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"};
    for (std::size_t i = 0; i < std::size(outputs); ++i) {
      const Argument& gradient = k.Output(outputs[i] + std::string(kGradSuffix));
      grads_[i] = gradient;
      if (i > 0 && gradient && gradient.shape != columns)
        return k.Error(outputs[i], " must hold an element for each column of X");
    }
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    shown_.Prepare(k, k[x_].shape[1]);
    return RequireShape(k, "Y@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    for (Dim j = 0; j < k[x_].shape()[1]; ++j) RunColumn(k, j);
    return OkStatus();
  }

 private:
  void RunColumn(KernelRun& k, Dim j) {
    const T *const x = k[x_].template Data<T>(), *const dy = k[dy_].template Data<T>();
    const T mean = k[means_].template Data<T>()[j], scale = k[scales_].template Data<T>()[j];
    const T factor = scale_w_ ? scale * k[scale_w_].template Data<T>()[j] : scale;
    T* const dx = grads_[0] ? k[grads_[0]].template Data<T>() : nullptr;
    T rows = 0, sum = 0, squares = 0, dscale = 0, dbias = 0;
    const Dim columns = k[x_].shape()[1];
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      const Dim at = i * columns + j;
      const bool counts = shown_.Counts(x + i * columns, j);
      if (dx != nullptr) dx[at] = counts ? dy[at] * factor : T{0};
      if (!counts) continue;
      rows += 1;
      sum += x[at];
      squares += (x[at] - mean) * (x[at] - mean);
      dscale += (x[at] - mean) * scale * dy[at];
      dbias += dy[at];
    }
    const bool averages = shown_.has_slots() && rows > 0;
    const T divisor = averages ? rows : T{1};
    const T made[] = {averages ? T{1} : rows, sum / divisor, squares / divisor + rows * epsilon_, dscale,
                      dbias};
    for (std::size_t i = 1; i < std::size(grads_); ++i) {
      if (grads_[i]) k[grads_[i]].template Data<T>()[j] = made[i - 1];
    }
  }

  In<"X"> x_;
  In<"Means"> means_;
  In<"Scales"> scales_;
  In<"Y@GRAD"> dy_;
  In<"scale_w"> scale_w_;
  Operand grads_[6];
  T epsilon_ = 0;
  ShownSlots shown_;
};

// The gradient of each column has the shape of Means.
Status InferDataNormGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "X@GRAD"));
  for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"})
    PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Means", slot + std::string(kGradSuffix)));
  return OkStatus();
}

}  // namespace

void RegisterDataNorm(OpRegistry& ops) {
  OpDef& def = ops.Add("data_norm");
  def.Doc("Normalises columns by sums accumulated over all rows so far.", kDoc)
      .Input("scale_w", "[columns]: the factor of each column", Floats(), Optional())
      .Input("bias", "[columns]: the offset of each column", Floats(), Optional())
      .Input("X", "[rows, columns]", Floats())
      .Input("BatchSize", "[columns]: the number of rows so far", SameTypeAs("X"))
      .Input("BatchSum", "[columns]: the sum of the rows so far", SameTypeAs("X"))
      .Input("BatchSquareSum", "[columns]: the sum of the squared differences from the mean", SameTypeAs("X"))
      .Output("Y", "shaped like X", SameTypeAs("X"), Apart())
      .Output("Means", "[columns]", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Scales", "[columns]", SameTypeAs("X"), Intermediate() | Apart())
      .Attr("epsilon", 1e-4f, "keeps the sum of squares above 0")
      .Attr("slot_dim", -1, "the number of columns per slot; -1: no slots")
      .Attr("summary_decay_rate", 0.9999999f, kNoEffect)
      .Attr("enable_scale_and_shift", false, "whether scale_w and bias are used")
      .Attr("data_layout", "NCHW", kNoEffect)
      .Attr("sync_stats", false, kNoEffect)
      .Attr("use_mkldnn", false, kNoEffect)
      .InferShape(InferDataNorm)
      .KernelTypeFrom("X")
      .Kernel<Cpu, DataNormKernel, float, double>()
      .Grad({.reads = {"scale_w", "bias", "X"},
             .reads_outputs = {"Means", "Scales"},
             .yields = {"X", "BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"},
             .apart = {"X", "BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"}})
      .GradKernel<Cpu, DataNormGradKernel, float, double>();
  def.GradDef().KernelTypeFrom("X").InferShape(InferDataNormGrad);
}

}  // namespace penstock
