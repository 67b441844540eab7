// one_hot, one_hot_v2: one-hot encoding of class indices.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i, :] has depth elements: 1 at X[i] and 0 elsewhere. An index outside [0, depth) is an error or, with
allow_out_of_range, yields only zeros.)";

// The dimensions of X to keep: the last one of one_hot's X is 1 and is replaced by the depth.
Result<Shape> CountedExtents(const InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  if (c.op().type() == "one_hot_v2") return x;
  if (x.rank() < 2) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be at least 2");
  if (!Compatible(x[x.rank() - 1], 1)) return c.Error("the last extent of X (", x, ") must be 1");
  return x.First(x.rank() - 1);
}

Status InferOneHot(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN(Shape out, CountedExtents(c));
  const int depth = c.Attr<int>("depth");
  if (c.HasInput("depth_tensor")) {
    if (!Compatible(c.ShapeOf("depth_tensor").Count(), 1))
      return c.Error("depth_tensor (", c.ShapeOf("depth_tensor"), ") must hold one element");
    out.Append(kUnknownDim);
  } else {
    if (depth < 1) return c.Error("depth (", depth, ") must be at least 1");
    out.Append(depth);
  }
  c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class OneHotKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    type_ = k.op().type();
    k.Bind(x_, given_);
    out_ = k.Output("Out");
    shape_ = k[x_].shape;
    if (type_ == "one_hot_v2") shape_.Append(1);
    depth_ = k.Attr<int>("depth");
    lenient_ = k.Attr<bool>("allow_out_of_range");
    const bool known = VisitElementType(
        out_.dtype, [this]<typename Out>(std::type_identity<Out>) { fill_ = &OneHotKernel::Fill<Out>; });
    return known ? OkStatus()
                 : k.Error("dtype (", DTypeName(out_.dtype), ") is not an element type of tensors");
  }
  Status Run(KernelRun& k) override {
    if (given_) PENSTOCK_RETURN_IF_ERROR(TakeDepth(k));
    return (this->*fill_)(k);
  }

 private:
  Status TakeDepth(KernelRun& k) {
    depth_ = *k[given_].template Data<std::int32_t>();
    if (depth_ < 1)
      return InvalidArgument("E-op-one-hot", type_, ": depth (", depth_, ") must be at least 1");
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
        return InvalidArgument("E-op-index", type_, ": ", at, " must be in [0, ", depth_, ")");
      }
      row += depth_;
    }
    return OkStatus();
  }

  std::string type_;
  In<"X"> x_;
  In<"depth_tensor"> given_;
  TypedOperand out_;
  Shape shape_;  // of Out
  std::int64_t depth_ = 1;
  bool lenient_ = false;
  Status (OneHotKernel::*fill_)(KernelRun&) = nullptr;
};

OpDef& AddOneHot(OpRegistry& ops, const std::string& type, std::string x, std::string out) {
  return ops.Add(type)
      .Doc("One-hot encoding of class indices.", kDoc)
      .Input("X", std::move(x), Integers())
      .Input("depth_tensor", "one element; replaces the attribute depth", Only(DType::kInt32), Optional())
      .Output("Out", std::move(out), TypeFromAttr("dtype"))
      .Attr("depth", -1, "the number of classes")
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid")
      .Attr("allow_out_of_range", false, "whether an index out of range yields zeros")
      .InferShape(InferOneHot)
      .KernelTypeFrom("X")
      .Kernel<Cpu, OneHotKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace

void RegisterOneHot(OpRegistry& ops) {
  AddOneHot(ops, "one_hot", "class indices; the last dimension is 1",
            "X with its last dimension replaced by `depth`");
  AddOneHot(ops, "one_hot_v2", "class indices", "the dimensions of X, then `depth`");
}

}  // namespace penstock
