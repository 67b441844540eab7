// fake_dequantize_max_abs, fake_channel_wise_dequantize_max_abs, dequantize_abs_max, dequantize_log: convert
// quantized numbers back to floats.
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kMaxAbsDoc[] = R"(
Out = Scale * X / max_range)";

constexpr char kChannelDoc[] = R"(
If Scales has one variable, it holds one scale for each index of the first dimension of X: Out[c] = Scales[c]
* X[c] / range, where range = 2^(quant_bits[0] - 1) - 1. If it has two variables, the first holds one scale
for each index of the second dimension of X, the second holds one scale for all of X, and both the scales and
the ranges are multiplied.)";

constexpr char kLogDoc[] = R"(
Out = Dict[X] where X is at least 0, and -Dict[X + 128] elsewhere.)";

template <typename Device, typename T>
class DequantizeMaxAbsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, out_);
    range_ = static_cast<T>(k.Attr<float>("max_range"));
    return RequireCount(k, "Scale", 1);
  }
  Status Run(KernelRun& k) override {
    const T scale = *std::as_const(k[scale_]).template Data<T>();
    const T* const x = std::as_const(k[x_]).template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim count = k[x_].count();
    for (Dim i = 0; i < count; ++i) out[i] = scale * x[i] / range_;
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Scale"> scale_;
  Out<"Out"> out_;
  T range_ = 1;
};

// The number of scales must match the dimension of X to which they belong.
Status InferChannels(InferContext& c) {
  const int count = c.InputCount("Scales");
  if (count != 1 && count != 2) return c.Error("Scales must name 1 or 2 variables, not ", count);
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", count - 1));
  if (!Compatible(c.ShapeOf("Scales").Count(), c.ShapeOf("X")[count - 1])) {
    return c.Error("Scales (", c.ShapeOf("Scales"), ") must hold a scale for each of extent ", count - 1,
                   " of X (", c.ShapeOf("X"), ")");
  }
  if (count == 2 && !Compatible(c.ShapeOf("Scales", 1).Count(), 1))
    return c.Error("the second of Scales (", c.ShapeOf("Scales", 1), ") must hold one element");
  const auto bits = c.Attr<std::vector<std::int32_t>>("quant_bits");
  if (static_cast<int>(bits.size()) < count)
    return c.Error("quant_bits has ", bits.size(), " values for ", count, " Scales");
  for (const std::int32_t each : bits) {
    if (each > 16) return c.Error("quant_bits holds ", each, "; it must be at most 16");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class DequantizeChannelsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    scales_.assign(k.Inputs("Scales").begin(), k.Inputs("Scales").end());
    const auto bits = k.Attr<std::vector<std::int32_t>>("quant_bits");
    const int at = static_cast<int>(scales_.size()) - 1;
    for (std::size_t s = 0; s < scales_.size(); ++s) range_ *= static_cast<T>((1 << (bits[s] - 1)) - 1);
    outer_ = k[x_].shape.Product(0, at);
    channels_ = k[x_].shape[at];
    inner_ = k[x_].shape.Product(at + 1, k[x_].shape.rank());
    const auto scales = k.Inputs("Scales");
    if (scales[0].shape.Count() == channels_ && (at == 0 || scales[1].shape.Count() == 1)) return OkStatus();
    return k.Error("Scales do not fit X (", k[x_].shape, ")");
  }
  Status Run(KernelRun& k) override {
    const T* const scales = std::as_const(k[scales_[0]]).template Data<T>();
    const T all = scales_.size() == 2 ? *std::as_const(k[scales_[1]]).template Data<T>() : T{1};
    const T* x = std::as_const(k[x_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    for (Dim o = 0; o < outer_; ++o) {
      for (Dim c = 0; c < channels_; ++c) {
        const T scale = scales[c] * all;
        for (Dim i = 0; i < inner_; ++i) *out++ = scale * *x++ / range_;
      }
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  std::vector<Operand> scales_;
  T range_ = 1;
  Dim outer_ = 1, channels_ = 1, inner_ = 1;
};

Status InferAbsMax(InferContext& c) {
  if (!Compatible(c.ShapeOf("Scale").Count(), 1))
    return c.Error("Scale (", c.ShapeOf("Scale"), ") must hold one element");
  return c.ShareAll("X", "Out");
}

class DequantizeAbsMaxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, scale_, out_);
    range_ = k.Attr<float>("max_range");
    return RequireCount(k, "Scale", 1);
  }
  Status Run(KernelRun& k) override {
    const std::int8_t* const x = std::as_const(k[x_]).Data<std::int8_t>();
    const float scale = *std::as_const(k[scale_]).Data<float>();
    float* const out = k[out_].Data<float>();
    const Dim count = k[x_].count();
    for (Dim i = 0; i < count; ++i) out[i] = scale * static_cast<float>(x[i]) / range_;
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Scale"> scale_;
  Out<"Out"> out_;
  float range_ = 1;
};

Status InferLog(InferContext& c) {
  if (!Compatible(c.ShapeOf("Dict").Count(), 128))
    return c.Error("Dict (", c.ShapeOf("Dict"), ") must hold 128 elements");
  return c.ShareAll("X", "Out");
}

class DequantizeLogKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dict_, out_);
    return RequireCount(k, "Dict", 128);
  }
  Status Run(KernelRun& k) override {
    const std::int8_t* const x = std::as_const(k[x_]).Data<std::int8_t>();
    const float* const dict = std::as_const(k[dict_]).Data<float>();
    float* const out = k[out_].Data<float>();
    const Dim count = k[x_].count();
    for (Dim i = 0; i < count; ++i) out[i] = x[i] < 0 ? -dict[x[i] + 128] : dict[x[i]];
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Dict"> dict_;
  Out<"Out"> out_;
};

}  // namespace

void RegisterDequantize(OpRegistry& ops) {
  ops.Add("fake_dequantize_max_abs")
      .Doc("Converts quantized integers to floats by one scale.", kMaxAbsDoc)
      .Input("X", "any shape", Floats())
      .Input("Scale", "one element", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .RequiredAttr("max_range", AttrKind::kFloat, "the integer that represents Scale")
      .InferShape([](InferContext& c) { return c.ShareAll("X", "Out"); })
      .Kernel<Cpu, DequantizeMaxAbsKernel, float, double>()
      .NoGrad();
  ops.Add("fake_channel_wise_dequantize_max_abs")
      .Doc("Converts quantized integers to floats by scales per channel.", kChannelDoc)
      .Input("X", "of rank 1 or more, or 2 or more with two Scales", Floats())
      .Input("Scales", "one or two variables", SameTypeAs("X"), Repeated())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("quant_bits", std::vector<std::int32_t>{8},
            "the number of bits for each of Scales, including the sign: 1 to 16", AtLeast(1))
      .InferShape(InferChannels)
      .Kernel<Cpu, DequantizeChannelsKernel, float, double>()
      .NoGrad();
  ops.Add("dequantize_abs_max")
      .Doc("Converts bytes to floats by one scale.", kMaxAbsDoc)
      .Input("X", "any shape", Only(DType::kInt8))
      .Input("Scale", "one element", Only(DType::kFp32))
      .Output("Out", "shaped like X", Only(DType::kFp32))
      .RequiredAttr("max_range", AttrKind::kFloat, "the integer that represents Scale")
      .InferShape(InferAbsMax)
      .KernelForAnyType<Cpu, DequantizeAbsMaxKernel>()
      .NoGrad();
  ops.Add("dequantize_log")
      .Doc("Converts indices to floats by a dictionary.", kLogDoc)
      .Input("X", "any shape", Only(DType::kInt8))
      .Input("Dict", "128 elements", Only(DType::kFp32))
      .Output("Out", "shaped like X", Only(DType::kFp32))
      .InferShape(InferLog)
      .KernelForAnyType<Cpu, DequantizeLogKernel>()
      .NoGrad();
}

}  // namespace penstock
