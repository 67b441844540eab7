// fill_constant: a tensor filled with one value. fill_zeros_like, fill_zeros_like2, fill_any_like: zeros, or
// a value, in the shape of another tensor.
#include <algorithm>
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/shape_attr.h"
#include "operators/common/start_rows.h"
#include "operators/tensor/fill_value.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out has the shape in attribute shape and element type dtype. Every element is str_value, if that is not empty
(it can hold an int64 that a float cannot), otherwise value. ValueTensor, if given, replaces both; it has one
element. If tensors give the shape, it is known only when the op runs. If Out is selected rows, it lists no
rows; in a table sharded by id, each row has the value when it is first used.)";

constexpr char kZerosDoc[] = R"(
Out has the shape and element type of X, and holds zeros. The values of X are not read. If X is selected rows,
Out is a dense tensor of the shape that X represents.)";

constexpr char kAnyDoc[] = R"(
Out has the shape of X and holds `value` everywhere. The values of X are not read.)";

template <typename T>
class ConstantRows : public RowStart {
 public:
  explicit ConstantRows(T value) : value_(value) {}
  void Make(std::int64_t, std::int64_t width, std::byte* out) const override {
    std::fill_n(reinterpret_cast<T*>(out), width, value_);
  }

 private:
  const T value_;
};

template <typename Device, typename T>
class FillConstantKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(given_, out_);
    shape_.Prepare(k);
    PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k, k[out_]));
    if (given_ && (k[given_].dtype != DTypeOfT<T>::kValue || k[given_].shape.Count() != 1)) {
      return k.Error("ValueTensor (", DTypeName(k[given_].dtype), k[given_].shape,
                     ") must be one element of Out's type");
    }
    return ReadFillValue(k, value_);
  }
  Status Run(KernelRun& k) override {
    const T value = given_ ? *k[given_].template Data<T>() : value_;
    if (rows_.sharded_by_id()) {
      rows_.Start(k, std::make_shared<ConstantRows<T>>(value));
      return OkStatus();
    }
    PENSTOCK_RETURN_IF_ERROR(shape_.Make(k));
    std::ranges::fill((rows_.is_rows() ? rows_.Values(k) : k[out_]).template Span<T>(), value);
    return OkStatus();
  }

 private:
  In<"ValueTensor"> given_;
  Out<"Out"> out_;
  T value_{};
  StartRows rows_;
  GivenShape shape_;
};

Status InferZerosLike(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  c.SetKind("Out", VarKind::kTensor);
  return OkStatus();
}

class FillZerosLikeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    Tensor& out = k[out_];
    if (out.bytes() > 0) std::memset(out.raw(), 0, out.bytes());
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
};

template <typename Device, typename T>
class FillAnyLikeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    return FillValueOf(k, k.Attr<float>("value"), value_);
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), value_);
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  T value_{};
};

Status InferAnyLike(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  const int type = c.Attr<std::int32_t>("dtype");
  if (type < 0) return OkStatus();
  if (!VisitElementType(static_cast<DType>(type), [](auto) {}))
    return c.Error("attribute dtype (", type, ") is no element type");
  c.SetDType("Out", static_cast<DType>(type));
  return OkStatus();
}

}  // namespace

void RegisterFillConstant(OpRegistry& ops) {
  WithShapeInputs(
      ops.Add("fill_constant")
          .Doc("A tensor filled with one value.", kDoc)
          .Input("ValueTensor", "one element; replaces the attribute value", AnyType(), Optional()))
      .Output("Out", "the tensor", TypeFromAttr("dtype"), TensorOrRows())
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid")
      .Attr("shape", std::vector<std::int64_t>(), "Out's shape; -1 where it comes from tensors", AtLeast(-1))
      .Attr("value", 0.0f, "the value")
      .Attr("str_value", "", "the value as text; replaces `value` if it is not empty")
      .Attr("force_cpu", false, kNoEffect)
      .InferShape(InferGivenShape)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, FillConstantKernel, float, double, Half, std::int32_t, std::int64_t, bool>()
      .NoGrad();
  ops.Add("fill_zeros_like")
      .Doc("Zeros in the shape of X.", kZerosDoc)
      .Input("X", "gives the shape and element type", AnyType(), TensorOrRows())
      .Output("Out", "zeros", SameTypeAs("X"))
      .InferShape(InferZerosLike)
      .Elementwise()
      .KernelForAnyType<Cpu, FillZerosLikeKernel>()
      .NoGrad();
  ops.Add("fill_zeros_like2")
      .Doc("Zeros in the shape of X, of a given type.", "Out = 0, of element type dtype.")
      .Input("X", "gives the shape", AnyType())
      .Output("Out", "zeros", AnyType())
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid",
            AtLeast(0))
      .InferShape(InferAnyLike)
      .Elementwise()
      .KernelForAnyType<Cpu, FillZerosLikeKernel>()
      .NoGrad();
  ops.Add("fill_any_like")
      .Doc("One value in the shape of X.", kAnyDoc)
      .Input("X", "gives the shape and, if dtype is -1, the element type", AnyType())
      .Output("Out", "the filled tensor", AnyType())
      .Attr("value", 0.0f, "the value")
      .Attr("dtype", -1, "the element type of Out, numbered as in Fluid; -1: that of X")
      .InferShape(InferAnyLike)
      .Elementwise()
      .KernelTypeFrom("Out")
      .Kernel<Cpu, FillAnyLikeKernel, float, double, Half, std::int32_t, std::int64_t, bool>()
      .NoGrad();
}

}  // namespace penstock
