// add_position_encoding: adds an encoding of its position to each word.
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = alpha * X + beta * P

where P encodes position p in the text: sin(p / 10000 ^ (j / (half - 1))) in column j of the first half of the
columns, and the cosine of the same in the second half. If each half has one column, P uses p / 10000. X is
[texts, positions, columns], or [words, columns] in sequences.

A. Vaswani et al.: "Attention is all you need", NIPS 2017.)";

// [texts, positions, columns], or [words, columns].
template <typename Context>
Status CheckEncoded(const Context& c, const Shape& x) {
  if (x.rank() != 2 && x.rank() != 3) return c.Error("rank of X (", x, ") must be 2, in sequences, or 3");
  const Dim columns = x[x.rank() - 1];
  if (columns == kUnknownDim || (columns > 0 && columns % 2 == 0)) return OkStatus();
  return c.Error("the columns of X (", x, ") must be an even number above 0");
}

Status InferEncoding(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(CheckEncoded(c, c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class PositionKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(out_);
    alpha_ = static_cast<T>(k.Attr<float>("alpha"));
    beta_ = k.Attr<float>("beta");
    return CheckEncoded(k, k.Input("X").shape);
  }
  Status Run(KernelRun& k) override {
    const Shape& shape = k[x_.operand()].shape();
    if (shape.rank() == 3) {
      for (Dim n = 0; n < shape[0]; ++n) EncodeText(k, n * shape[1], shape[1], shape[2]);
      return OkStatus();
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets texts, x_.Innermost(k));
    for (Dim s = 0; s < texts.count(); ++s) EncodeText(k, texts.begin(s), texts.length(s), shape[1]);
    return OkStatus();
  }

 private:
  // Encodes rows [begin, begin + places), which form a text.
  void EncodeText(KernelRun& k, Dim begin, Dim places, Dim columns) const {
    const T* x = k[x_.operand()].template Data<T>() + begin * columns;
    T* out = k[out_].template Data<T>() + begin * columns;
    const Dim half = columns / 2;
    for (Dim p = 0; p < places; ++p, x += columns, out += columns) {
      for (Dim j = 0; j < half; ++j) {
        const double power = half > 1 ? static_cast<double>(j) / static_cast<double>(half - 1) : 1.0;
        const double angle = static_cast<double>(p) / std::pow(10000.0, power);
        const T left = x[j], right = x[half + j];
        out[j] = alpha_ * left + static_cast<T>(beta_ * std::sin(angle));
        out[half + j] = alpha_ * right + static_cast<T>(beta_ * std::cos(angle));
      }
    }
  }
  SequenceInput x_;
  Out<"Out"> out_;
  T alpha_ = 1;
  double beta_ = 1;
};

template <typename Device, typename T>
class PositionGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    alpha_ = static_cast<T>(k.Attr<float>("alpha"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    for (Dim i = 0; i < k[dout_].count(); ++i) dx[i] = alpha_ * dout[i];
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  T alpha_ = 1;
};

}  // namespace

void RegisterAddPositionEncoding(OpRegistry& ops) {
  ops.Add("add_position_encoding")
      .Doc("Adds an encoding of its position to each word.", kDoc)
      .Input("X", "[texts, positions, columns], or [words, columns] in sequences", Floats())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("alpha", 1.0f, "the factor of X")
      .Attr("beta", 1.0f, "the factor of the encoding")
      .InferShape(InferEncoding)
      .Kernel<Cpu, PositionKernel, float, double>()
      .Grad({.yields = {"X"}})
      .GradKernel<Cpu, PositionGradKernel, float, double>()
      .GradDef()
      .InferShape(SameShape("Out@GRAD", "X@GRAD"));
}

}  // namespace penstock
