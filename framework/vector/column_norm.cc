#include "framework/vector/column_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/column_norm.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"
#include "framework/vector/rows_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

void AddSquaredDistances(const Matrix& m, const float* x, const float* mean, float* sums) {
  EachRows(m.rows, m.columns, [&](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [&](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, mean + j, n);
      const float* at = x + first * m.columns + j;
      Vector sum = Load(d, sums + j, n);
      for (std::size_t i = 0; i < rows; ++i, at += m.columns) {
        const Vector distance = hn::Sub(Load(d, at, n), middle);
        sum = hn::MulAdd(distance, distance, sum);
      }
      Store(d, sum, sums + j, n);
    });
  });
}

void NormalizeColumns(const Matrix& m, const float* x, const float* mean, const float* factor,
                      const float* bias, float* y) {
  EachRows(m.rows, m.columns, [&](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [&](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, mean + j, n), by = Load(d, factor + j, n), offset = Load(d, bias + j, n);
      std::size_t at = first * m.columns + j;
      for (std::size_t i = 0; i < rows; ++i, at += m.columns)
        Store(d, hn::MulAdd(hn::Sub(Load(d, x + at, n), middle), by, offset), y + at, n);
    });
  });
}

void AddSlopes(const Matrix& m, const float* x, const float* dy, const float* mean, float* sums,
               float* alongs) {
  EachRows(m.rows, m.columns, [&](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [&](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, mean + j, n);
      std::size_t at = first * m.columns + j;
      Vector sum = Load(d, sums + j, n), along = Load(d, alongs + j, n);
      for (std::size_t i = 0; i < rows; ++i, at += m.columns) {
        const Vector slope = Load(d, dy + at, n);
        sum = hn::Add(sum, slope);
        along = hn::MulAdd(slope, hn::Sub(Load(d, x + at, n), middle), along);
      }
      Store(d, sum, sums + j, n);
      Store(d, along, alongs + j, n);
    });
  });
}

void DifferentiateColumns(const Matrix& m, const float* x, const float* dy, const ColumnSlopes& slopes,
                          float* dx) {
  EachRows(m.rows, m.columns, [&](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [&](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, slopes.mean + j, n), steep = Load(d, slopes.steep + j, n),
                   along = Load(d, slopes.along + j, n), constant = Load(d, slopes.constant + j, n);
      std::size_t at = first * m.columns + j;
      for (std::size_t i = 0; i < rows; ++i, at += m.columns) {
        const Vector rest = hn::MulAdd(along, hn::Sub(Load(d, x + at, n), middle), constant);
        Store(d, hn::MulAdd(steep, Load(d, dy + at, n), rest), dx + at, n);
      }
    });
  });
}

template <bool kAdds>
HWY_INLINE void NormalizeRelu(const Matrix m, const float* x, const float* mean, const float* factor,
                              const float* bias, const float* addend, float* y) {
  EachRows(m.rows, m.columns, [=](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [=](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, mean + j, n), by = Load(d, factor + j, n), offset = Load(d, bias + j, n);
      const Vector zero = hn::Zero(d);
      std::size_t at = first * m.columns + j;
      for (std::size_t i = 0; i < rows; ++i, at += m.columns) {
        Vector v = hn::MulAdd(hn::Sub(Load(d, x + at, n), middle), by, offset);
        if constexpr (kAdds) v = hn::Add(v, Load(d, addend + at, n));
        Store(d, hn::IfThenZeroElse(hn::Le(v, zero), v), y + at, n);
      }
    });
  });
}
void NormalizeColumnsRelu(const Matrix& m, const float* x, const float* mean, const float* factor,
                          const float* bias, const float* addend, float* y) {
  if (addend != nullptr) return NormalizeRelu<true>(m, x, mean, factor, bias, addend, y);
  NormalizeRelu<false>(m, x, mean, factor, bias, addend, y);
}

// n elements of the gradient of a relu.
template <bool kMore>
HWY_INLINE Vector ReluSlope(Floats d, const ReluSlopes relu, std::size_t at, std::size_t n) {
  const Vector y = Load(d, relu.y + at, n);
  Vector dy = Load(d, relu.dy + at, n);
  if constexpr (kMore) dy = hn::Add(dy, Load(d, relu.more + at, n));
  return hn::IfThenElse(hn::IsNaN(y), y, hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy));
}

// The arguments are copies: through references, each store would make them be read again.
template <bool kMore, bool kKeeps>
HWY_INLINE void AddSlopesOfRelu(const Matrix m, const float* x, const ReluSlopes relu, const float* mean,
                                float* sums, float* alongs, float* kept) {
  EachRows(m.rows, m.columns, [=](std::size_t first, std::size_t rows) {
    EachVector(m.columns, [=](Floats d, std::size_t j, std::size_t n) {
      const Vector middle = Load(d, mean + j, n);
      std::size_t at = first * m.columns + j;
      Vector sum = Load(d, sums + j, n), along = Load(d, alongs + j, n);
      for (std::size_t i = 0; i < rows; ++i, at += m.columns) {
        const Vector slope = ReluSlope<kMore>(d, relu, at, n);
        if constexpr (kKeeps) Store(d, slope, kept + at, n);
        sum = hn::Add(sum, slope);
        along = hn::MulAdd(slope, hn::Sub(Load(d, x + at, n), middle), along);
      }
      Store(d, sum, sums + j, n);
      Store(d, along, alongs + j, n);
    });
  });
}
void AddReluSlopes(const Matrix& m, const float* x, const ReluSlopes& relu, const float* mean, float* sums,
                   float* alongs, float* kept) {
  if (relu.more != nullptr) {
    if (kept != nullptr) return AddSlopesOfRelu<true, true>(m, x, relu, mean, sums, alongs, kept);
    return AddSlopesOfRelu<true, false>(m, x, relu, mean, sums, alongs, kept);
  }
  if (kept != nullptr) return AddSlopesOfRelu<false, true>(m, x, relu, mean, sums, alongs, kept);
  AddSlopesOfRelu<false, false>(m, x, relu, mean, sums, alongs, kept);
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(AddSquaredDistances);
HWY_EXPORT(NormalizeColumns);
HWY_EXPORT(AddSlopes);
HWY_EXPORT(DifferentiateColumns);
HWY_EXPORT(NormalizeColumnsRelu);
HWY_EXPORT(AddReluSlopes);

void AddSquaredDistances(const Matrix& m, const float* x, const float* mean, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddSquaredDistances)(m, x, mean, sums);
}
void NormalizeColumns(const Matrix& m, const float* x, const float* mean, const float* factor,
                      const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeColumns)(m, x, mean, factor, bias, y);
}
void AddSlopes(const Matrix& m, const float* x, const float* dy, const float* mean, float* sums,
               float* alongs) {
  HWY_DYNAMIC_DISPATCH(AddSlopes)(m, x, dy, mean, sums, alongs);
}
void DifferentiateColumns(const Matrix& m, const float* x, const float* dy, const ColumnSlopes& slopes,
                          float* dx) {
  HWY_DYNAMIC_DISPATCH(DifferentiateColumns)(m, x, dy, slopes, dx);
}
void NormalizeColumnsRelu(const Matrix& m, const float* x, const float* mean, const float* factor,
                          const float* bias, const float* addend, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeColumnsRelu)(m, x, mean, factor, bias, addend, y);
}
void AddReluSlopes(const Matrix& m, const float* x, const ReluSlopes& relu, const float* mean, float* sums,
                   float* alongs, float* kept) {
  HWY_DYNAMIC_DISPATCH(AddReluSlopes)(m, x, relu, mean, sums, alongs, kept);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
