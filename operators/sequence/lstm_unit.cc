// lstm_unit: the elementwise part of one LSTM step.
#include <algorithm>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/lstm_cell.h"
#include "operators/sequence/recurrent.h"

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

// The cell without its bias: the forget bias, and zero for the other gates.
template <typename T>
class UnitCell {
 public:
  void Prepare(KernelSetup& k, Dim width) {
    gates_.width = static_cast<std::size_t>(width);
    gates_.bounds_sigmoids = false;
    gates_.parts = {.candidate = 3, .input = 0, .forget = 1, .output = 2};
    forget_bias_ = static_cast<T>(k.Attr<float>("forget_bias"));
    row_.Prepare(k, 4 * width);
    bias_.Prepare(k, 4 * width);
  }
  vec::LstmGates<T> Gates(KernelRun& k) const {
    const auto width = static_cast<Dim>(gates_.width);
    T* const bias = bias_.At(k);
    std::fill_n(bias, 4 * width, T{0});
    std::fill_n(bias + width, width, forget_bias_);
    vec::LstmGates<T> gates = gates_;
    gates.bias = bias;
    return gates;
  }
  T* Row(KernelRun& k) const { return row_.At(k); }  // the activated gates of one row

 private:
  vec::LstmGates<T> gates_;
  T forget_bias_ = 0;
  Scratch<T> row_, bias_;
};

template <typename Device, typename T>
class LstmUnitKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, before_, c_, h_);
    cell_.Prepare(k, k[before_].shape[1]);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const before = std::as_const(k[before_]).template Data<T>();
    T* const c = k[c_].template Data<T>();
    T* const h = k[h_].template Data<T>();
    const Dim rows = k[before_].shape()[0], width = k[before_].shape()[1];
    const vec::LstmGates<T> gates = cell_.Gates(k);
    for (Dim r = 0; r < rows; ++r) {
      LstmForward(gates, {.gates = cell_.Row(k),
                          .input = x + r * 4 * width,
                          .before = before + r * width,
                          .cell = c + r * width,
                          .out = h + r * width});
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"C_prev"> before_;
  Out<"C"> c_;
  Out<"H"> h_;
  UnitCell<T> cell_;
};

// Computes the gates of each row again.
template <typename Device, typename T>
class LstmUnitGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, before_, dc_, dh_, dx_, dbefore_);
    const Shape& cells = k[before_].shape;
    if (cells.rank() != 2) return k.Error("rank of C_prev (", cells, ") must be 2");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "X", {cells[0], 4 * cells[1]}));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "C", cells));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "C@GRAD", cells));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "H@GRAD", cells));
    cell_.Prepare(k, cells[1]);
    for (Scratch<T>* row : {&state_, &active_, &out_}) row->Prepare(k, cells[1]);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const dc = std::as_const(k[dc_]).template Data<T>();
    const T* const dh = std::as_const(k[dh_]).template Data<T>();
    const T* const x = std::as_const(k[x_]).template Data<T>();
    const T* const before = std::as_const(k[before_]).template Data<T>();
    const Dim rows = k[before_].shape()[0], width = k[before_].shape()[1];
    const vec::LstmGates<T> gates = cell_.Gates(k);
    T* const row = cell_.Row(k);
    T* const dcell = state_.At(k);
    for (Dim r = 0; r < rows; ++r) {
      LstmForward(gates, {.gates = row,
                          .input = x + r * 4 * width,
                          .before = before + r * width,
                          .cell = state_.At(k),
                          .active = active_.At(k),
                          .out = out_.At(k)});
      std::copy_n(dc + r * width, width, dcell);
      LstmBackward(gates, {.gates = row,
                           .before = before + r * width,
                           .active = active_.At(k),
                           .dout = dh + r * width,
                           .dcell = dcell,
                           .dgates = row});
      if (dx_) std::copy_n(row, 4 * width, k[dx_].template Data<T>() + r * 4 * width);
      if (dbefore_) std::copy_n(dcell, width, k[dbefore_].template Data<T>() + r * width);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"C_prev"> before_;
  In<"C@GRAD"> dc_;
  In<"H@GRAD"> dh_;
  Out<"X@GRAD"> dx_;
  Out<"C_prev@GRAD"> dbefore_;
  UnitCell<T> cell_;
  Scratch<T> state_, active_, out_;  // of one row; the first then is the gradient of the cell
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
