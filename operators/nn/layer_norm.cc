// layer_norm: normalises each row to mean 0 and variance 1, then applies Scale and Bias.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/common/onednn.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias

X is viewed as a matrix; its first begin_norm_axis dimensions form the rows. Mean and (biased) Variance are
those of each row. Scale and Bias have one element per column; if absent they are 1 and 0.)";

struct RowShape {
  Dim rows = 0, columns = 0;
};

RowShape MakeRowShape(const Shape& x, int begin_norm_axis) {
  return {x.Product(0, begin_norm_axis), x.Product(begin_norm_axis, x.rank())};
}

Status InferLayerNorm(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const int axis = c.Attr<std::int32_t>("begin_norm_axis");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", axis));
  const RowShape shape = MakeRowShape(x, axis);
  for (const char* slot : {"Scale", "Bias"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot), Shape{shape.columns})) {
      return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be [", shape.columns,
                     "], the columns of X");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Mean", {shape.rows}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Variance", {shape.rows}));
  return c.ShareAll("X", "Y");
}

dnnl::normalization_flags Flags(bool scale, bool bias) {
  auto flags = dnnl::normalization_flags::none;
  if (scale) flags |= dnnl::normalization_flags::use_scale;
  if (bias) flags |= dnnl::normalization_flags::use_shift;
  return flags;
}

// Calls add(part, offset of its elements, offset of its rows) for each share of the rows, offsets in bytes.
template <typename Add>
void EachShareOfRows(const KernelSetup& k, OnednnSequence& steps, const RowShape& shape, const Add& add) {
  constexpr double kElementNs = 0.4;
  const Shares shares =
      DivideIntoShares(shape.rows, kElementNs * static_cast<double>(shape.columns), 1, k.threads(), 1);
  EachShare(k, steps, shares, shape.rows, [&](Dim first, Dim rows) {
    const auto rows_before = static_cast<std::size_t>(first) * sizeof(float);
    add({rows, shape.columns}, rows_before * static_cast<std::size_t>(shape.columns), rows_before);
  });
}

// Calls visit(row, first index) for each row.
template <typename Visit>
void EachRow(const RowShape& shape, Visit&& visit) {
  constexpr double kElementNs = 2;
  ForRows(shape.rows, kElementNs * static_cast<double>(shape.columns), [&](Dim begin, Dim end) {
    for (Dim row = begin; row < end; ++row) visit(row, row * shape.columns);
  });
}

template <typename Device, typename T>
class LayerNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, bias_, y_, mean_, variance_);
    epsilon_ = k.Attr<float>("epsilon");
    shape_ = MakeRowShape(k[x_].shape, k.Attr<std::int32_t>("begin_norm_axis"));
    if (!mean_ || !variance_) return k.Error("outputs Mean and Variance must be given");
    if constexpr (std::is_same_v<T, float>) {
      if (steps_.NothingToDo(k)) return OkStatus();
      return OnednnTry(k, [&] { AddPrimitives(k); });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if constexpr (std::is_same_v<T, float>) {
      PENSTOCK_RETURN_IF_ERROR(steps_.Run(k));
    } else {
      Normalize(k);
    }
    return OkStatus();
  }

 private:
  void AddPrimitives(KernelSetup& k) {
    EachShareOfRows(
        k, steps_, shape_, [&](const RowShape& part, std::size_t data_offset, std::size_t row_offset) {
          const dnnl::memory::desc data = OnednnPlain({part.rows, part.columns});
          const dnnl::memory::desc row = OnednnPlain({part.rows}), column = OnednnPlain({part.columns});
          const dnnl::layer_normalization_forward::primitive_desc pd(
              {dnnl::prop_kind::forward_training, data, row, epsilon_, Flags(bool(scale_), bool(bias_))},
              OnednnAttr(), OnednnEngine());
          std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
              {DNNL_ARG_SRC, steps_.Tensor(x_, data, data_offset)},
              {DNNL_ARG_DST, steps_.Tensor(y_, data, data_offset)},
              {DNNL_ARG_MEAN, steps_.Tensor(mean_, row, row_offset)},
              {DNNL_ARG_VARIANCE, steps_.Tensor(variance_, row, row_offset)}};
          if (scale_) arguments.emplace_back(DNNL_ARG_SCALE, steps_.Tensor(scale_, column));
          if (bias_) arguments.emplace_back(DNNL_ARG_SHIFT, steps_.Tensor(bias_, column));
          steps_.Add(k, dnnl::layer_normalization_forward(pd), pd.scratchpad_desc(), arguments);
        });
  }

  void Normalize(KernelRun& k) const {
    const T* x = k[x_].template Data<T>();
    const T* scale = scale_ ? k[scale_].template Data<T>() : nullptr;
    const T* bias = bias_ ? k[bias_].template Data<T>() : nullptr;
    T* y = k[y_].template Data<T>();
    T* means = k[mean_].template Data<T>();
    T* variances = k[variance_].template Data<T>();
    EachRow(shape_, [&](Dim row, Dim first) {
      const T count = static_cast<T>(shape_.columns);
      T sum = 0, squares = 0;
      for (Dim i = 0; i < shape_.columns; ++i) sum += x[first + i];
      const T mean = sum / count;
      for (Dim i = 0; i < shape_.columns; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean);
      means[row] = mean;
      variances[row] = squares / count;
      const T r = T(1) / std::sqrt(variances[row] + static_cast<T>(epsilon_));
      for (Dim i = 0; i < shape_.columns; ++i) {
        y[first + i] = (x[first + i] - mean) * r * (scale == nullptr ? T(1) : scale[i]) +
                       (bias == nullptr ? T(0) : bias[i]);
      }
    });
  }

  In<"X"> x_;
  In<"Scale"> scale_;
  In<"Bias"> bias_;
  Out<"Y"> y_;
  Out<"Mean"> mean_;
  Out<"Variance"> variance_;
  float epsilon_ = 0;
  RowShape shape_;
  OnednnSequence steps_;
};

// With g = dY * Scale and n = (X - Mean) * r, r = 1 / sqrt(Variance + epsilon), sums over a row of `count`
// elements:
//   dX = r / count * (count * g - sum(g) - n * sum(g * n))
// dScale and dBias are the sums over the rows of dY * n and dY.
template <typename Device, typename T>
class LayerNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, bias_, mean_, variance_, dy_, dx_, dscale_, dbias_);
    epsilon_ = k.Attr<float>("epsilon");
    const int axis = k.Attr<std::int32_t>("begin_norm_axis");
    if (k[x_].shape.rank() <= axis)
      return k.Error("rank of X (", k[x_].shape.rank(), ", shape ", k[x_].shape, ") must be above ", axis);
    shape_ = MakeRowShape(k[x_].shape, axis);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y@GRAD", k[x_].shape));
    for (const char* slot : {"Mean", "Variance"}) {
      PENSTOCK_RETURN_IF_ERROR(RequireCount(k, slot, shape_.rows));
    }
    for (const char* slot : {"Scale", "Bias"}) {
      if (k.Input(slot)) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, slot, shape_.columns));
      const std::string grad = StrCat(slot, kGradSuffix);
      if (!k.Input(slot) && k.Output(grad)) return k.Error(grad, " is requested without ", slot);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (steps_.NothingToDo(k)) return OkStatus();
      return OnednnTry(k, [&] { AddPrimitives(k); });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if constexpr (std::is_same_v<T, float>) return steps_.Run(k);
    Differentiate(k);
    return OkStatus();
  }

 private:
  // The gradients of Scale and Bias are sums over the shares, in their order.
  void AddPrimitives(KernelSetup& k) {
    std::vector<OnednnSequence::MemoryId> dscales, dbiases;
    EachShareOfRows(k, steps_, shape_,
                    [&](const RowShape& part, std::size_t data_offset, std::size_t row_offset) {
                      AddShare(k, part, data_offset, row_offset, dscales, dbiases);
                    });
    if (dscale_ && dscales.size() > 1) steps_.AddSum(dscales);
    if (dbias_ && dbiases.size() > 1) steps_.AddSum(dbiases);
  }

  void AddShare(KernelSetup& k, const RowShape& part, std::size_t data_offset, std::size_t row_offset,
                std::vector<OnednnSequence::MemoryId>& dscales,
                std::vector<OnednnSequence::MemoryId>& dbiases) {
    const dnnl::memory::desc data = OnednnPlain({part.rows, part.columns});
    const dnnl::memory::desc row = OnednnPlain({part.rows}), column = OnednnPlain({part.columns});
    const auto flags = Flags(bool(scale_), bool(bias_));
    const dnnl::layer_normalization_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, data, row, epsilon_, flags}, OnednnAttr(), OnednnEngine());
    const dnnl::layer_normalization_backward::primitive_desc pd(
        {dnnl::prop_kind::backward, data, data, row, epsilon_, flags}, OnednnAttr(), OnednnEngine(), forward);
    // The primitive writes all gradients; those that are not requested go to scratch memory.
    std::vector<std::pair<int, OnednnSequence::MemoryId>> arguments = {
        {DNNL_ARG_SRC, steps_.Tensor(x_, data, data_offset)},
        {DNNL_ARG_DIFF_DST, steps_.Tensor(dy_, data, data_offset)},
        {DNNL_ARG_MEAN, steps_.Tensor(mean_, row, row_offset)},
        {DNNL_ARG_VARIANCE, steps_.Tensor(variance_, row, row_offset)},
        {DNNL_ARG_DIFF_SRC, dx_ ? steps_.Tensor(dx_, data, data_offset) : steps_.Scratch(k, data)}};
    const auto partial = [&](const Operand& operand, std::vector<OnednnSequence::MemoryId>& of_shares) {
      const bool first = operand && of_shares.empty();
      of_shares.push_back(first ? steps_.Tensor(operand, column) : steps_.Scratch(k, column));
      return of_shares.back();
    };
    if (scale_) {
      arguments.emplace_back(DNNL_ARG_SCALE, steps_.Tensor(scale_, column));
      arguments.emplace_back(DNNL_ARG_DIFF_SCALE, partial(dscale_, dscales));
    }
    if (bias_) {
      arguments.emplace_back(DNNL_ARG_SHIFT,
                             steps_.Tensor(bias_, column));  // required by the primitive, not used
      arguments.emplace_back(DNNL_ARG_DIFF_SHIFT, partial(dbias_, dbiases));
    }
    steps_.Add(k, dnnl::layer_normalization_backward(pd), pd.scratchpad_desc(), arguments);
  }

  T* Cleared(KernelRun& k, const Operand& operand) const {
    if (!operand) return nullptr;
    std::fill_n(k[operand].template Data<T>(), shape_.columns, T(0));
    return k[operand].template Data<T>();
  }

  void Differentiate(KernelRun& k) const {
    const T* x = k[x_].template Data<T>();
    const T* dy = k[dy_].template Data<T>();
    const T* scale = scale_ ? k[scale_].template Data<T>() : nullptr;
    const T* means = k[mean_].template Data<T>();
    const T* variances = k[variance_].template Data<T>();
    T* dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* dscale = Cleared(k, dscale_);
    T* dbias = Cleared(k, dbias_);
    const T count = static_cast<T>(shape_.columns);
    for (Dim row = 0; row < shape_.rows; ++row) {
      const Dim first = row * shape_.columns;
      const T r = T(1) / std::sqrt(variances[row] + static_cast<T>(epsilon_));
      const auto normal = [&](Dim i) { return (x[first + i] - means[row]) * r; };
      const auto scaled = [&](Dim i) { return dy[first + i] * (scale == nullptr ? T(1) : scale[i]); };
      T sum = 0, weighted = 0;
      for (Dim i = 0; i < shape_.columns; ++i) {
        sum += scaled(i);
        weighted += scaled(i) * normal(i);
        if (dscale != nullptr) dscale[i] += dy[first + i] * normal(i);
        if (dbias != nullptr) dbias[i] += dy[first + i];
      }
      if (dx == nullptr) continue;
      for (Dim i = 0; i < shape_.columns; ++i) {
        dx[first + i] = r / count * (count * scaled(i) - sum - normal(i) * weighted);
      }
    }
  }

  In<"X"> x_;
  In<"Scale"> scale_;
  In<"Bias"> bias_;
  In<"Mean"> mean_;
  In<"Variance"> variance_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  Out<"Scale@GRAD"> dscale_;
  Out<"Bias@GRAD"> dbias_;
  float epsilon_ = 0;
  RowShape shape_;
  OnednnSequence steps_;
};

}  // namespace

void RegisterLayerNorm(OpRegistry& ops) {
  ops.Add("layer_norm")
      .Doc("Normalises each row by its mean and variance, then scales and shifts it.", kDoc)
      .Input("X", "of rank above begin_norm_axis", Floats())
      .Input("Scale", "the factor of each column", SameTypeAs("X"), Optional())
      .Input("Bias", "the offset of each column", SameTypeAs("X"), Optional())
      .Output("Y", "shaped like X", SameTypeAs("X"))
      .Output("Mean", "the mean of each row", SameTypeAs("X"), Intermediate())
      .Output("Variance", "the variance of each row", SameTypeAs("X"), Intermediate())
      .Attr("epsilon", 1e-5f, "added to the variance", AtLeast(0))
      .Attr("begin_norm_axis", 1, "the number of leading dimensions of X that form the rows", AtLeast(1))
      .InferShape(InferLayerNorm)
      .Kernel<Cpu, LayerNormKernel, float, double>()
      .Grad({.reads = {"X", "Scale", "Bias"},
             .reads_outputs = {"Mean", "Variance"},
             .yields = {"X", "Scale", "Bias"},
             .apart = {"Scale", "Bias"}})
      .GradKernel<Cpu, LayerNormGradKernel, float, double>();
}

}  // namespace penstock
