// label_smooth: a part of each label is spread over all classes. one_hot: class numbers as rows of 0 and 1.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kSmoothDoc[] = R"(
Out = (1 - epsilon) * X + epsilon * prior

where prior is PriorDist, one row for all, or 1 / classes; classes are X's last extent.)";

constexpr char kOneHotDoc[] = R"(
Out[i] has 1 at X[i] and 0 elsewhere; the last extent of X is 1, and Out's is depth. A number outside
[0, depth) is an error, or with allow_out_of_range gives zeros alone.)";

Status InferSmooth(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Dim classes = c.ShapeOf("X")[c.ShapeOf("X").rank() - 1];
  if (c.HasInput("PriorDist") && !Compatible(c.ShapeOf("PriorDist").Count(), classes)) {
    return c.Error("PriorDist (", c.ShapeOf("PriorDist"), ") must hold one element for each of ", classes,
                   " classes");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class SmoothKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    prior_ = k.Input("PriorDist");
    out_ = k.Output("Out");
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    classes_ = x_.shape[x_.shape.rank() - 1];
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const prior = prior_ ? k[prior_].template Data<T>() : nullptr;
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    const T even = epsilon_ / static_cast<T>(classes_);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = (T{1} - epsilon_) * x[i] + (prior == nullptr ? even : epsilon_ * prior[i % classes_]);
    }
    return OkStatus();
  }

 private:
  Operand x_, prior_, out_;
  T epsilon_ = 0;
  Dim classes_ = 1;
};

template <typename Device, typename T>
class SmoothGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    keeps_ = T{1} - static_cast<T>(k.Attr<float>("epsilon"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[dout_].count();
    for (std::int64_t i = 0; i < count; ++i) dx[i] = keeps_ * dout[i];
    return OkStatus();
  }

 private:
  Operand dout_, dx_;
  T keeps_ = 1;
};

Status InferOneHot(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const int depth = c.Attr<int>("depth");
  if (x.rank() == 0 || !Compatible(x[x.rank() - 1], 1))
    return c.Error("the last extent of X (", x, ") must be 1");
  Shape out = x;
  if (c.HasInput("depth_tensor")) {
    if (!Compatible(c.ShapeOf("depth_tensor").Count(), 1))
      return c.Error("depth_tensor (", c.ShapeOf("depth_tensor"), ") must hold one element");
    out.Set(x.rank() - 1, kUnknownDim);
  } else {
    if (depth < 1) return c.Error("depth (", depth, ") must be at least 1");
    out.Set(x.rank() - 1, depth);
  }
  c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class OneHotKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    given_ = k.Input("depth_tensor");
    shape_ = x_.shape;
    depth_ = k.Attr<int>("depth");
    lenient_ = k.Attr<bool>("allow_out_of_range");
    const bool known = VisitElementType(
        out_.dtype, [this]<typename Out>(std::type_identity<Out>) { fill_ = &OneHotKernel::Fill<Out>; });
    return known ? OkStatus()
                 : k.Error("dtype (", DTypeName(out_.dtype), ") is no type of a tensor's elements");
  }
  Status Run(KernelRun& k) override {
    if (given_) PENSTOCK_RETURN_IF_ERROR(TakeDepth(k));
    return (this->*fill_)(k);
  }

 private:
  Status TakeDepth(KernelRun& k) {
    depth_ = *k[given_].template Data<std::int32_t>();
    if (depth_ < 1)
      return InvalidArgument("E-op-one-hot", "one_hot: depth (", depth_, ") must be at least 1");
    shape_.Set(shape_.rank() - 1, depth_);
    k[out_].Reset(out_.dtype, shape_);
    return OkStatus();
  }

  template <typename Out>
  Status Fill(KernelRun& k) {
    std::ranges::fill(k[out_].template Span<Out>(), ConvertTo<Out>(0));
    Out* row = k[out_].template Data<Out>();
    for (const T at : k[x_].template Span<T>()) {
      if (at >= 0 && at < depth_) {
        row[at] = ConvertTo<Out>(1);
      } else if (!lenient_) {
        return InvalidArgument("E-op-index", "one_hot: ", at, " must be in [0, ", depth_, ")");
      }
      row += depth_;
    }
    return OkStatus();
  }

  Operand x_, given_, out_;
  Shape shape_;  // of Out
  std::int64_t depth_ = 1;
  bool lenient_ = false;
  Status (OneHotKernel::*fill_)(KernelRun&) = nullptr;
};

}  // namespace

void RegisterLabelSmooth(OpRegistry& ops) {
  ops.Add("label_smooth")
      .Doc("Spreads a part of each label over all classes.", kSmoothDoc)
      .Input("X", "distributions over classes, the last extent", Floats())
      .Input("PriorDist", "how the part is spread; by default evenly", SameTypeAs("X"), Optional())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("epsilon", 0.0f, "the part")
      .InferShape(InferSmooth)
      .Kernel<Cpu, SmoothKernel, float, double>()
      .Grad({.yields = {"X"}})
      .GradKernel<Cpu, SmoothGradKernel, float, double>()
      .GradDef()
      .InferShape(SameShape("Out@GRAD", "X@GRAD"));
  ops.Add("one_hot")
      .Doc("Class numbers as rows of 0 and 1.", kOneHotDoc)
      .Input("X", "class numbers; the last extent is 1", Integers())
      .Input("depth_tensor", "depth as a tensor of one element", Only(DType::kInt32), Optional())
      .Output("Out", "X with its last extent made `depth`", TypeFromAttr("dtype"))
      .Attr("depth", -1, "how many classes")
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "Out's element type, as Fluid numbers them")
      .Attr("allow_out_of_range", false, "whether numbers outside give zeros")
      .InferShape(InferOneHot)
      .KernelTypeFrom("X")
      .Kernel<Cpu, OneHotKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
