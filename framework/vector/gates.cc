#include "framework/vector/gates.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/gates.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

// x within [least, most]; NaN stays.
HWY_INLINE Vector Within(Floats d, Vector x, float least, float most) {
  const Vector low = hn::Set(d, least), high = hn::Set(d, most);
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
}

HWY_INLINE Vector Activate(Floats d, GateFunction f, bool bounds, Vector x) {
  switch (f) {
    case GateFunction::kIdentity:
      return x;
    case GateFunction::kSigmoid:
      return Sigmoid(d, bounds ? Within(d, x, -40, 13) : x);
    case GateFunction::kTanh:
      return Tanh(d, x);
    case GateFunction::kRelu:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
  return x;
}

// yes where `which` holds, else x where that is NaN, else 0. `which` compares x.
HWY_INLINE Vector ChooseOrZero(hn::Mask<Floats> which, Vector yes, Vector x) {
  return hn::IfThenElse(which, yes, hn::IfThenElseZero(hn::IsNaN(x), x));
}

// dy * f'(x), given y = f(x)
HWY_INLINE Vector ActivateGrad(Floats d, GateFunction f, Vector y, Vector dy) {
  const Vector one = hn::Set(d, 1.0f);
  switch (f) {
    case GateFunction::kIdentity:
      return dy;
    case GateFunction::kSigmoid:
      return hn::Mul(dy, hn::Mul(y, hn::Sub(one, y)));
    case GateFunction::kTanh:
      return hn::Mul(dy, hn::NegMulAdd(y, y, one));
    case GateFunction::kRelu:
      return ChooseOrZero(hn::Gt(y, hn::Zero(d)), dy, y);
  }
  return dy;
}

// The functions as constants, so that the code has no branches; or as given.
struct UsualLstm {
  static constexpr GateFunction gate = GateFunction::kSigmoid, cell = GateFunction::kTanh;
  static constexpr GateFunction candidate = GateFunction::kTanh;
};
struct UsualGru {
  static constexpr GateFunction gate = GateFunction::kSigmoid, candidate = GateFunction::kTanh;
};
HWY_INLINE bool IsUsual(const LstmGates<float>& g) {
  return g.gate == UsualLstm::gate && g.cell == UsualLstm::cell && g.candidate == UsualLstm::candidate;
}
HWY_INLINE bool IsUsual(const GruGates<float>& g) {
  return g.gate == UsualGru::gate && g.candidate == UsualGru::candidate;
}

// products + (input + bias), of those that are given, at `at` of a row of gates.
HWY_INLINE Vector SumOf(Floats d, bool has_product, const float* gates, const float* input, const float* bias,
                        std::size_t at, std::size_t n) {
  Vector sum = input != nullptr ? Load(d, input + at, n) : hn::Zero(d);
  if (bias != nullptr) sum = hn::Add(sum, Load(d, bias + at, n));
  return has_product ? hn::Add(Load(d, gates + at, n), sum) : sum;
}

template <class Functions>
HWY_INLINE void LstmForwardBy(const Functions& by, const LstmGates<float>& g, const LstmRow<float>& row) {
  const std::size_t candidate = g.parts.candidate * g.width, input = g.parts.input * g.width;
  const std::size_t forget = g.parts.forget * g.width, output = g.parts.output * g.width;
  const bool bounds = g.bounds_sigmoids;
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const auto sum = [&](std::size_t at) {
      return SumOf(d, row.has_product, row.gates, row.input, g.bias, at + j, n);
    };
    Vector i = sum(input), f = sum(forget), o = sum(output);
    const Vector before = row.before != nullptr ? Load(d, row.before + j, n) : hn::Zero(d);
    if (g.peepholes != nullptr && row.before != nullptr) {
      i = hn::MulAdd(before, Load(d, g.peepholes + j, n), i);
      f = hn::MulAdd(before, Load(d, g.peepholes + g.width + j, n), f);
    }
    const Vector c = Activate(d, by.candidate, bounds, sum(candidate));
    i = Activate(d, by.gate, bounds, i);
    f = Activate(d, by.gate, bounds, f);
    Vector cell = hn::Mul(c, i);
    if (row.before != nullptr) cell = hn::MulAdd(before, f, cell);
    if (g.clip > 0) cell = Within(d, cell, -g.clip, g.clip);
    if (g.peepholes != nullptr) o = hn::MulAdd(cell, Load(d, g.peepholes + 2 * g.width + j, n), o);
    o = Activate(d, by.gate, bounds, o);
    const Vector active = Activate(d, by.cell, bounds, cell);
    Store(d, c, row.gates + candidate + j, n);
    Store(d, i, row.gates + input + j, n);
    Store(d, f, row.gates + forget + j, n);
    Store(d, o, row.gates + output + j, n);
    Store(d, cell, row.cell + j, n);
    if (row.active != nullptr) Store(d, active, row.active + j, n);
    Store(d, hn::Mul(o, active), row.out + j, n);
  });
}
void LstmForward(const LstmGates<float>& g, const LstmRow<float>& row) {
  return IsUsual(g) ? LstmForwardBy(UsualLstm(), g, row) : LstmForwardBy(g, g, row);
}

// dpeepholes += d * with
HWY_INLINE void AddPeephole(Floats d, float* dpeepholes, Vector gradient, Vector with, std::size_t n) {
  Store(d, hn::MulAdd(gradient, with, Load(d, dpeepholes, n)), dpeepholes, n);
}

template <class Functions>
HWY_INLINE void LstmBackwardBy(const Functions& by, const LstmGates<float>& g,
                               const LstmGradRow<float>& row) {
  const std::size_t candidate = g.parts.candidate * g.width, input = g.parts.input * g.width;
  const std::size_t forget = g.parts.forget * g.width, output = g.parts.output * g.width;
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const Vector c = Load(d, row.gates + candidate + j, n), i = Load(d, row.gates + input + j, n);
    const Vector f = Load(d, row.gates + forget + j, n), o = Load(d, row.gates + output + j, n);
    const Vector active = Load(d, row.active + j, n);
    const Vector before = row.before != nullptr ? Load(d, row.before + j, n) : hn::Zero(d);
    Vector dout = Load(d, row.dout + j, n), dcell = Load(d, row.dcell + j, n);
    if (row.dout_again != nullptr) dout = hn::Add(dout, Load(d, row.dout_again + j, n));
    if (row.dcell_direct != nullptr) dcell = hn::Add(dcell, Load(d, row.dcell_direct + j, n));
    const Vector d_o = ActivateGrad(d, by.gate, o, hn::Mul(dout, active));
    dcell = hn::Add(dcell, ActivateGrad(d, by.cell, active, hn::Mul(dout, o)));
    const float* const check = g.peepholes;
    if (check != nullptr) dcell = hn::MulAdd(d_o, Load(d, check + 2 * g.width + j, n), dcell);
    if (g.clip > 0) {
      const Vector cell = Load(d, row.cell + j, n), bound = hn::Set(d, g.clip);
      dcell = ChooseOrZero(hn::Lt(hn::Abs(cell), bound), dcell, cell);
    }
    const Vector dc = ActivateGrad(d, by.candidate, c, hn::Mul(dcell, i));
    const Vector di = ActivateGrad(d, by.gate, i, hn::Mul(dcell, c));
    const Vector df = row.before == nullptr ? ActivateGrad(d, by.gate, f, hn::Zero(d))
                                            : ActivateGrad(d, by.gate, f, hn::Mul(dcell, before));
    Vector dbefore = hn::Mul(dcell, f);
    if (check != nullptr) {
      dbefore = hn::Add(dbefore,
                        hn::MulAdd(di, Load(d, check + j, n), hn::Mul(df, Load(d, check + g.width + j, n))));
    }
    if (row.dpeepholes != nullptr) {
      AddPeephole(d, row.dpeepholes + 2 * g.width + j, d_o, Load(d, row.cell + j, n), n);
      if (row.before != nullptr) {
        AddPeephole(d, row.dpeepholes + j, di, before, n);
        AddPeephole(d, row.dpeepholes + g.width + j, df, before, n);
      }
    }
    Store(d, dc, row.dgates + candidate + j, n);
    Store(d, di, row.dgates + input + j, n);
    Store(d, df, row.dgates + forget + j, n);
    Store(d, d_o, row.dgates + output + j, n);
    Store(d, dbefore, row.dcell + j, n);
  });
}
void LstmBackward(const LstmGates<float>& g, const LstmGradRow<float>& row) {
  return IsUsual(g) ? LstmBackwardBy(UsualLstm(), g, row) : LstmBackwardBy(g, g, row);
}

template <class Functions>
HWY_INLINE void GruResetBy(const Functions& by, const GruGates<float>& g, const GruRow<float>& row) {
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const auto gate = [&](std::size_t at) {
      const Vector sum = SumOf(d, row.has_product, row.gates, row.input, g.bias, at, n);
      const Vector y = Activate(d, by.gate, g.bounds_sigmoids, sum);
      Store(d, y, row.gates + at, n);
      return y;
    };
    gate(j);
    const Vector r = gate(g.width + j);
    const Vector reset = row.before == nullptr ? hn::Zero(d) : hn::Mul(r, Load(d, row.before + j, n));
    Store(d, reset, row.reset + j, n);
  });
}
void GruReset(const GruGates<float>& g, const GruRow<float>& row) {
  return IsUsual(g) ? GruResetBy(UsualGru(), g, row) : GruResetBy(g, g, row);
}

template <class Functions>
HWY_INLINE void GruOutBy(const Functions& by, const GruGates<float>& g, const GruRow<float>& row) {
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const std::size_t at = 2 * g.width + j;
    const Vector sum = SumOf(d, row.has_product, row.gates, row.input, g.bias, at, n);
    const Vector c = Activate(d, by.candidate, g.bounds_sigmoids, sum);
    const Vector u = Load(d, row.gates + j, n), share = g.origin ? hn::Sub(hn::Set(d, 1.0f), u) : u;
    const Vector old = row.before == nullptr ? hn::Zero(d) : Load(d, row.before + j, n);
    Store(d, c, row.gates + at, n);
    Store(d, hn::MulAdd(share, hn::Sub(c, old), old), row.out + j, n);
  });
}
void GruOut(const GruGates<float>& g, const GruRow<float>& row) {
  return IsUsual(g) ? GruOutBy(UsualGru(), g, row) : GruOutBy(g, g, row);
}

template <class Functions>
HWY_INLINE void GruOutGradBy(const Functions& by, const GruGates<float>& g, const GruGradRow<float>& row) {
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const std::size_t at = 2 * g.width + j;
    const Vector u = Load(d, row.gates + j, n), c = Load(d, row.gates + at, n);
    const Vector old = row.before == nullptr ? hn::Zero(d) : Load(d, row.before + j, n);
    Vector dout = Load(d, row.dout + j, n);
    if (row.dout_again != nullptr) dout = hn::Add(dout, Load(d, row.dout_again + j, n));
    const Vector change = hn::Mul(dout, hn::Sub(c, old)), rest = hn::Sub(hn::Set(d, 1.0f), u);
    const Vector share = g.origin ? rest : u, kept = g.origin ? u : rest;
    Store(d, ActivateGrad(d, by.gate, u, g.origin ? hn::Neg(change) : change), row.dgates + j, n);
    Store(d, ActivateGrad(d, by.candidate, c, hn::Mul(dout, share)), row.dgates + at, n);
    Store(d, hn::Mul(dout, kept), row.dbefore + j, n);
  });
}
void GruOutGrad(const GruGates<float>& g, const GruGradRow<float>& row) {
  return IsUsual(g) ? GruOutGradBy(UsualGru(), g, row) : GruOutGradBy(g, g, row);
}

template <class Functions>
HWY_INLINE void GruResetGradBy(const Functions& by, const GruGates<float>& g, const GruGradRow<float>& row) {
  EachVector(g.width, [&](Floats d, std::size_t j, std::size_t n) {
    const Vector dreset = Load(d, row.dreset + j, n), r = Load(d, row.gates + g.width + j, n);
    const Vector dr = row.before == nullptr ? hn::Zero(d) : hn::Mul(dreset, Load(d, row.before + j, n));
    Store(d, ActivateGrad(d, by.gate, r, dr), row.dgates + g.width + j, n);
    Store(d, hn::MulAdd(dreset, r, Load(d, row.dbefore + j, n)), row.dbefore + j, n);
  });
}
void GruResetGrad(const GruGates<float>& g, const GruGradRow<float>& row) {
  return IsUsual(g) ? GruResetGradBy(UsualGru(), g, row) : GruResetGradBy(g, g, row);
}

void ActivateAll(GateFunction f, bool bounds, float* x, std::size_t count) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, Activate(d, f, bounds, Load(d, x + i, n)), x + i, n);
  });
}
void ActivateGradAll(GateFunction f, const float* y, float* dy, std::size_t count) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    Store(d, ActivateGrad(d, f, Load(d, y + i, n), Load(d, dy + i, n)), dy + i, n);
  });
}

void AddRowsTo(const float* rows, std::size_t count, std::size_t width, float* sums) {
  EachVector(width, [&](Floats d, std::size_t j, std::size_t n) {
    Vector sum = Load(d, sums + j, n);
    for (std::size_t r = 0; r < count; ++r) sum = hn::Add(sum, Load(d, rows + r * width + j, n));
    Store(d, sum, sums + j, n);
  });
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(LstmForward);
HWY_EXPORT(LstmBackward);
HWY_EXPORT(GruReset);
HWY_EXPORT(GruOut);
HWY_EXPORT(GruOutGrad);
HWY_EXPORT(GruResetGrad);
HWY_EXPORT(ActivateAll);
HWY_EXPORT(ActivateGradAll);
HWY_EXPORT(AddRowsTo);

void LstmForward(const LstmGates<float>& gates, const LstmRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(LstmForward)(gates, row);
}
void LstmBackward(const LstmGates<float>& gates, const LstmGradRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(LstmBackward)(gates, row);
}
void GruReset(const GruGates<float>& gates, const GruRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(GruReset)(gates, row);
}
void GruOut(const GruGates<float>& gates, const GruRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(GruOut)(gates, row);
}
void GruOutGrad(const GruGates<float>& gates, const GruGradRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(GruOutGrad)(gates, row);
}
void GruResetGrad(const GruGates<float>& gates, const GruGradRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(GruResetGrad)(gates, row);
}
void Activate(GateFunction f, bool bounds_sigmoid, float* x, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ActivateAll)(f, bounds_sigmoid, x, count);
}
void ActivateGrad(GateFunction f, const float* y, float* d, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ActivateGradAll)(f, y, d, count);
}
void AddRowsTo(const float* rows, std::size_t count, std::size_t width, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddRowsTo)(rows, count, width, sums);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
