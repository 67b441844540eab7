// lstm_unit: the elementwise part of one LSTM step.
#include <cmath>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
i = sigmoid(X_i),  f = sigmoid(X_f + forget_bias),  o = sigmoid(X_o),  g = tanh(X_g)
C = f * C_prev + i * g,  H = o * tanh(C)

The columns of X are X_i, X_f, X_o, X_g.)";

Status InferLstmUnit(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("C_prev", 2));
  const Shape& x = c.ShapeOf("X");
  const Shape& before = c.ShapeOf("C_prev");
  const Dim width = before[1] == kUnknownDim ? kUnknownDim : 4 * before[1];
  if (!Compatible(x, Shape{before[0], width})) {
    return c.Error("shape of X (", x, ") must have the rows of C_prev (", before,
                   ") and four times its width");
  }
  for (const char* slot : {"C", "H"}) {
    if (!c.HasOutput(slot)) return c.Error("output ", slot, " is missing");
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, {x[0] == kUnknownDim ? before[0] : x[0], before[1]}));
  }
  return OkStatus();
}

template <typename T>
T Sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <typename T>
struct Gates {
  T i, f, o, g;
  // Computes the gates of element j from a row of X.
  Gates(const T* x, Dim j, Dim width, T forget_bias)
      : i(Sigmoid(x[j])),
        f(Sigmoid(x[width + j] + forget_bias)),
        o(Sigmoid(x[2 * width + j])),
        g(std::tanh(x[3 * width + j])) {}
};

template <typename Device, typename T>
class LstmUnitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    before_ = k.Input("C_prev");
    c_ = k.Output("C");
    h_ = k.Output("H");
    forget_bias_ = static_cast<T>(k.Attr<float>("forget_bias"));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const before = std::as_const(k[before_]).template Data<T>();
    T* const c = k[c_].template Data<T>();
    T* const h = k[h_].template Data<T>();
    const Dim rows = before_.shape[0], width = before_.shape[1];
    for (Dim r = 0; r < rows; ++r) {
      for (Dim j = 0; j < width; ++j) {
        const Gates<T> gates(x + r * 4 * width, j, width, forget_bias_);
        const Dim at = r * width + j;
        c[at] = gates.f * before[at] + gates.i * gates.g;
        h[at] = gates.o * std::tanh(c[at]);
      }
    }
    return OkStatus();
  }

 private:
  Operand x_, before_, c_, h_;
  T forget_bias_ = 0;
};

template <typename Device, typename T>
class LstmUnitGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    before_ = k.Input("C_prev");
    c_ = k.Input("C");
    dc_ = k.Input("C@GRAD");
    dh_ = k.Input("H@GRAD");
    dx_ = k.Output("X@GRAD");
    dbefore_ = k.Output("C_prev@GRAD");
    forget_bias_ = static_cast<T>(k.Attr<float>("forget_bias"));
    const Shape& cells = before_.shape;
    if (cells.rank() != 2) return k.Error("rank of C_prev (", cells, ") must be 2");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "X", {cells[0], 4 * cells[1]}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "C", cells));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "C@GRAD", cells));
    return RequireShape(k, "H@GRAD", cells);
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const before = std::as_const(k[before_]).template Data<T>();
    const T* const c = std::as_const(k[c_]).template Data<T>();
    const T* const dc = std::as_const(k[dc_]).template Data<T>();
    const T* const dh = std::as_const(k[dh_]).template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dbefore = dbefore_ ? k[dbefore_].template Data<T>() : nullptr;
    const Dim rows = before_.shape[0], width = before_.shape[1];
    for (Dim r = 0; r < rows; ++r) {
      for (Dim j = 0; j < width; ++j) {
        const Gates<T> gates(x + r * 4 * width, j, width, forget_bias_);
        const Dim at = r * width + j;
        const T active = std::tanh(c[at]);
        const T dstate = dc[at] + dh[at] * gates.o * (T{1} - active * active);
        if (dbefore != nullptr) dbefore[at] = dstate * gates.f;
        if (dx == nullptr) continue;
        T* const row = dx + r * 4 * width;
        row[j] = dstate * gates.g * gates.i * (T{1} - gates.i);
        row[width + j] = dstate * before[at] * gates.f * (T{1} - gates.f);
        row[2 * width + j] = dh[at] * active * gates.o * (T{1} - gates.o);
        row[3 * width + j] = dstate * gates.i * (T{1} - gates.g * gates.g);
      }
    }
    return OkStatus();
  }

 private:
  Operand x_, before_, c_, dc_, dh_, dx_, dbefore_;
  T forget_bias_ = 0;
};

}  // namespace

void RegisterLstmUnit(OpRegistry& ops) {
  ops.Add("lstm_unit")
      .Doc("The elementwise part of one LSTM step.", kDoc)
      .Input("X", "[rows, 4 * width]", Floats())
      .Input("C_prev", "[rows, width], the previous cell", SameTypeAs("X"))
      .Output("C", "the new cell", SameTypeAs("X"), Apart())
      .Output("H", "the hidden state after the step", SameTypeAs("X"), Apart())
      .Attr("forget_bias", 0.0f, "added to the forget gate before its sigmoid")
      .InferShape(InferLstmUnit)
      .Kernel<Cpu, LstmUnitKernel, float, double>()
      .Grad({.reads = {"X", "C_prev"},
             .reads_outputs = {"C"},
             .yields = {"X", "C_prev"},
             .of = {"C", "H"},
             .apart = {"X", "C_prev"}})
      .GradKernel<Cpu, LstmUnitGradKernel, float, double>();
}

}  // namespace penstock
