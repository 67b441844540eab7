// sequence_mask: marks the steps of padded sequences that are not padding.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y[..., j] = 1 if j < X[...], otherwise 0, for j from 0 to the number of steps - 1

The number of steps is the value of MaxLenTensor, else maxlen, else (if maxlen is -1) the largest element of
X, rounded down.)";

std::optional<std::string> MaxLenRule(const Attr& value) {
  const auto* number = std::get_if<std::int32_t>(&value);
  if (number != nullptr && (*number < 0 || *number >= 1)) return std::nullopt;
  return "at least 1, or negative for the longest";
}

Status InferSequenceMask(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  Shape y = c.ShapeOf("X");
  const Dim length = c.Attr<std::int32_t>("maxlen");
  y.Append(c.HasInput("MaxLenTensor") || length < 0 ? kUnknownDim : length);
  c.SetLodLevel("Y", 0);
  return c.SetShape("Y", y);
}

template <typename Device, typename T>
class SequenceMaskKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, max_length_);
    y_ = k.Output("Y");
    y_shape_ = Concat(k[x_].shape, {0});
    given_ = k.Attr<std::int32_t>("maxlen");
    if (max_length_ && k[max_length_].shape.Count() != 1)
      return k.Error("MaxLenTensor (", k[max_length_].shape, ") must hold one element");
    const bool known =
        VisitElementType(y_.dtype, [this]<typename U>(std::type_identity<U>) { fill_ = &Fill<U>; });
    return known ? OkStatus()
                 : k.Error("out_dtype (", DTypeName(y_.dtype), ") is not an element type of tensors");
  }

  Status Run(KernelRun& k) override {
    const auto x = k[x_].template Span<T>();
    Dim length = given_;
    if (max_length_) {
      const Tensor& tensor = k[max_length_];
      length = tensor.dtype() == DType::kInt64 ? *tensor.Data<std::int64_t>() : *tensor.Data<std::int32_t>();
      if (length < 1)
        return InvalidArgument("E-op-value", "sequence_mask: MaxLenTensor holds ", length,
                               "; it must be at least 1");
    } else if (length < 0) {
      length = 0;
      for (const T one : x) length = std::max(length, RoundedDown(one));
    }
    Dim bytes = 0;
    if (__builtin_mul_overflow(static_cast<Dim>(SizeOf(y_.dtype)), length, &bytes) ||
        __builtin_mul_overflow(bytes, std::max<Dim>(static_cast<Dim>(x.size()), 1), &bytes))
      return InvalidArgument("E-op-value", "sequence_mask: masks of ", length, " steps are too large");
    y_shape_.Set(y_shape_.rank() - 1, length);
    Tensor& y = k[y_];
    y.Reset(y_.dtype, y_shape_);
    fill_(x, length, y);
    return OkStatus();
  }

 private:
  // A value too large for a number of steps stays too large; NaN counts as 0.
  static Dim RoundedDown(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      constexpr Dim kTooMany = std::numeric_limits<Dim>::max();
      if (!(x > T{0})) return 0;
      return x < static_cast<T>(kTooMany) ? static_cast<Dim>(x) : kTooMany;
    } else {
      return x;
    }
  }

  // Returns how many of the steps 0 .. length - 1 are below x.
  static Dim StepsBelow(T x, Dim length) {
    const Dim whole = RoundedDown(x);
    if (whole >= length) return length;
    return std::max<Dim>(static_cast<T>(whole) < x ? whole + 1 : whole, 0);
  }

  template <typename U>
  static void Fill(std::span<const T> x, Dim length, Tensor& y) {
    U* to = y.Data<U>();
    for (const T one : x) {
      const Dim real = StepsBelow(one, length);
      std::fill_n(to, real, ConvertTo<U>(1));
      std::fill_n(to + real, length - real, ConvertTo<U>(0));
      to += length;
    }
  }

  In<"X"> x_;
  In<"MaxLenTensor"> max_length_;
  TypedOperand y_;
  Shape y_shape_;
  std::int32_t given_ = -1;
  void (*fill_)(std::span<const T> x, Dim length, Tensor& y) = nullptr;
};

}  // namespace

void RegisterSequenceMask(OpRegistry& ops) {
  ops.Add("sequence_mask")
      .Doc("Marks the steps of padded sequences that are not padding.", kDoc)
      .Input("X", "the lengths of the sequences", Numbers())
      .Input("MaxLenTensor", "one element: the number of steps", Integers(), Optional())
      .Output("Y", "the dimensions of X, followed by one for the steps", TypeFromAttr("out_dtype"), Apart())
      .Attr("maxlen", -1, "the number of steps; negative: the largest element of X", {MaxLenRule})
      .RequiredAttr("out_dtype", AttrKind::kInt, "the element type of Y")
      .InferShape(InferSequenceMask)
      .Kernel<Cpu, SequenceMaskKernel, std::int32_t, std::int64_t, float, double>()
      .NoGrad();
}

}  // namespace penstock
