// where: selects each element from one of two tensors by a condition. where_index: the indices of the nonzero
// elements.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X where Condition is true, and Y elsewhere. All three have the same shape.)";

constexpr char kIndexDoc[] = R"(
Out has one row for each nonzero (true) element of Condition, in order, which holds the element's index in
each dimension.)";

Status InferWhere(InferContext& c) {
  for (const char* slot : {"Condition", "Y"}) {
    if (!Compatible(c.ShapeOf(slot), c.ShapeOf("X")))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must have the shape of X (", c.ShapeOf("X"), ")");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class WhereKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(condition_, x_, y_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const bool* const condition = k[condition_].template Data<bool>();
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[out_].count();
    for (std::int64_t i = 0; i < count; ++i) out[i] = condition[i] ? x[i] : y[i];
    return OkStatus();
  }

 private:
  In<"Condition"> condition_;
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class WhereGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(condition_, dout_, dx_, dy_);
    if (k[condition_].dtype != DType::kBool) return k.Error("Condition must hold booleans");
    for (const char* slot : {"X", "Y", "Condition"})
      PENSTOCK_RETURN_IF_ERROR(RequireShape(k, slot, k[dout_].shape));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (dx_) Take(k, dx_, true);
    if (dy_) Take(k, dy_, false);
    return OkStatus();
  }

 private:
  void Take(KernelRun& k, const Operand& to, bool where) {
    const bool* const condition = k[condition_].template Data<bool>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[to].template Data<T>();
    const std::int64_t count = k[to].count();
    for (std::int64_t i = 0; i < count; ++i) dx[i] = condition[i] == where ? dout[i] : T{0};
  }
  In<"Condition"> condition_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
};

Status InferWhereIndex(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Condition", 0));
  return c.SetShape("Out", {kUnknownDim, c.ShapeOf("Condition").rank()});
}

template <typename Device, typename T>
class WhereIndexKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(condition_);
    return out_.Prepare(k, "Out", DType::kInt64, {0, k[condition_].shape.rank()});
  }
  Status Run(KernelRun& k) override {
    const auto condition = k[condition_].template Span<T>();
    const auto is_set = [](T value) { return value != T{0}; };
    Tensor& out = out_.Make(k, std::ranges::count_if(condition, is_set));
    std::int64_t* row = out.Data<std::int64_t>();
    const Shape& shape = k[condition_].shape();
    for (std::size_t i = 0; i < condition.size(); ++i) {
      if (!is_set(condition[i])) continue;
      auto rest = static_cast<Dim>(i);
      for (int d = shape.rank() - 1; d >= 0; --d) {
        row[d] = rest % shape[d];
        rest /= shape[d];
      }
      row += shape.rank();
    }
    return OkStatus();
  }

 private:
  In<"Condition"> condition_;
  RowsOutput out_;
};

}  // namespace

void RegisterWhere(OpRegistry& ops) {
  ops.Add("where")
      .Doc("Selects each element from one of two tensors by a condition.", kDoc)
      .Input("Condition", "booleans, shaped like X", Only(DType::kBool))
      .Input("X", "the elements where Condition is true", Numbers())
      .Input("Y", "the elements elsewhere; shaped like X", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .InferShape(InferWhere)
      .Elementwise()
      .KernelTypeFrom("X")
      .Kernel<Cpu, WhereKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"Condition", "X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, WhereGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
  ops.Add("where_index")
      .Doc("The indices of the nonzero elements.", kIndexDoc)
      .Input("Condition", "of rank 1 or more",
             OneOfTypes<bool, float, double, std::int32_t, std::int64_t, std::int16_t, std::uint8_t>())
      .Output("Out", "[number of nonzero elements, rank of Condition]", Only(DType::kInt64))
      .Nan("NaN counts as nonzero.")
      .InferShape(InferWhereIndex)
      .KernelTypeFrom("Condition")
      .Kernel<Cpu, WhereIndexKernel, bool, float, double, std::int32_t, std::int64_t, std::int16_t,
              std::uint8_t>()
      .NoGrad();
}

}  // namespace penstock
