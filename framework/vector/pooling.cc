#include "framework/vector/pooling.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/vector/pooling.cc"
#include <hwy/foreach_target.h>  // must stand before the headers below

#include "framework/vector/lanes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::vec::HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V LargerOrNaN(D, V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void PoolRow(const float* top, const float* bottom, std::size_t count, float* out) {
  const Floats d;
  const auto at = [d](const float* p) { return hn::LoadU(d, p); };
  for (std::size_t i = 0; i < count; ++i, top += 2, bottom += 2) {
    const Vector left = LargerOrNaN(d, at(top), at(bottom)),
                 right = LargerOrNaN(d, at(top + 1), at(bottom + 1));
    hn::StoreU(LargerOrNaN(d, left, right), d, out + i);
  }
}

HWY_INLINE void PoolRowGrad(const float* top, const float* bottom, const float* out, const float* dout,
                            std::size_t count, float* dtop, float* dbottom) {
  const auto same = [](float a, float b) { return a == b || (a != a && b != b); };
  for (std::size_t i = 0; i < 2 * count; i += 2) {
    const float largest = out[i / 2];
    float slope = dout[i / 2];
    const auto take = [&](float x) {
      const float taken = same(x, largest) ? slope : 0;
      if (same(x, largest)) slope = 0;
      return taken;
    };
    dtop[i] = take(top[i]);
    dtop[i + 1] = take(top[i + 1]);
    dbottom[i] = take(bottom[i]);
    dbottom[i + 1] = take(bottom[i + 1]);
  }
}

#else

// Elements [i, i + n) of a row are `n` windows' left elements, or right ones, of 2 * n elements of `top` and
// `bottom`.
HWY_INLINE void PoolRow(const float* top, const float* bottom, std::size_t count, float* out) {
  EachVector(count, [&](Floats d, std::size_t i, std::size_t n) {
    const std::size_t low = std::min(2 * n, kWidth), high = 2 * n - low;
    const auto larger = [&](std::size_t at, std::size_t size) {
      return LargerOrNaN(d, Load(d, top + at, size), Load(d, bottom + at, size));
    };
    const Vector first = larger(2 * i, low), second = high == 0 ? first : larger(2 * i + low, high);
    const Vector largest = LargerOrNaN(d, hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first));
    Store(d, largest, out + i, n);
  });
}

// The first n of kWidth / 2 elements at p, each twice.
HWY_INLINE Vector Twice(Floats d, const float* p, std::size_t n) {
  const hn::Half<Floats> half;
  const hn::RebindToUnsigned<hn::Half<Floats>> bits;
  const hn::RepartitionToWide<hn::RebindToUnsigned<Floats>> pairs;
  const auto low = hn::PromoteTo(pairs, hn::BitCast(bits, Load(half, p, n)));
  return hn::BitCast(d, hn::Or(low, hn::ShiftLeft<32>(low)));
}

HWY_INLINE void PoolRowGrad(const float* top, const float* bottom, const float* out, const float* dout,
                            std::size_t count, float* dtop, float* dbottom) {
  const hn::RebindToUnsigned<Floats> bits;
  const Vector right = hn::BitCast(
      Floats(),
      hn::VecFromMask(bits, hn::Eq(hn::And(hn::Iota(bits, 0), hn::Set(bits, 1)), hn::Set(bits, 1))));
  EachVector(2 * count, [&](Floats d, std::size_t i, std::size_t n) {
    const Vector largest = Twice(d, out + i / 2, n / 2), slope = Twice(d, dout + i / 2, n / 2);
    const auto is_largest = [&](const float* row) {
      const Vector x = Load(d, row + i, n);
      const auto same = hn::Or(hn::Eq(x, largest), hn::And(hn::IsNaN(x), hn::IsNaN(largest)));
      return hn::VecFromMask(d, same);
    };
    const Vector above = is_largest(top), below = is_largest(bottom);
    const Vector beside_above = hn::Shuffle2301(above), beside_below = hn::Shuffle2301(below);
    // On the right, the element on the left comes first; below, both above do.
    const Vector take_above = hn::AndNot(hn::And(beside_above, right), above);
    const Vector take_below =
        hn::AndNot(hn::Or(hn::Or(above, beside_above), hn::And(beside_below, right)), below);
    Store(d, hn::And(take_above, slope), dtop + i, n);
    Store(d, hn::And(take_below, slope), dbottom + i, n);
  });
}

#endif

void MaxPool2x2(std::size_t planes, std::size_t height, std::size_t width, const float* x, float* out) {
  for (std::size_t plane = 0; plane < planes; ++plane, x += height * width) {
    for (std::size_t row = 0; row < height / 2; ++row, out += width / 2)
      PoolRow(x + 2 * row * width, x + (2 * row + 1) * width, width / 2, out);
  }
}

void MaxPool2x2Grad(std::size_t planes, std::size_t height, std::size_t width, const float* x,
                    const float* out, const float* dout, float* dx) {
  for (std::size_t plane = 0; plane < planes; ++plane, x += height * width, dx += height * width) {
    for (std::size_t row = 0; row < height / 2; ++row, out += width / 2, dout += width / 2) {
      float *const top = dx + 2 * row * width, *const bottom = top + width;
      const float* const at = x + 2 * row * width;
      PoolRowGrad(at, at + width, out, dout, width / 2, top, bottom);
      if (width % 2 != 0) top[width - 1] = bottom[width - 1] = 0;
    }
    if (height % 2 != 0) std::fill_n(dx + (height - 1) * width, width, 0.0f);
  }
}

void MaxOfWindow(const ChannelsWindow& w, const float* x, float* out) {
  EachVector(w.channels, [&](Floats d, std::size_t c, std::size_t n) {
    Vector largest = Load(d, x + c, n);
    for (std::size_t row = 0; row < w.rows; ++row) {
      const float* at = x + row * w.stride + c;
      for (std::size_t i = 0; i < w.columns; ++i, at += w.channels)
        largest = LargerOrNaN(d, largest, Load(d, at, n));
    }
    Store(d, largest, out + c, n);
  });
}

void AddMaxGradOfWindow(const ChannelsWindow& w, const float* x, const float* out, const float* dout,
                        float* dx) {
  EachVector(w.channels, [&](Floats d, std::size_t c, std::size_t n) {
    const Vector largest = Load(d, out + c, n);
    Vector slope = Load(d, dout + c, n);  // 0 once it is given away
    for (std::size_t row = 0; row < w.rows; ++row) {
      std::size_t at = row * w.stride + c;
      for (std::size_t i = 0; i < w.columns; ++i, at += w.channels) {
        const Vector value = Load(d, x + at, n);
        const auto same = hn::Or(hn::Eq(value, largest), hn::And(hn::IsNaN(value), hn::IsNaN(largest)));
        Store(d, hn::Add(Load(d, dx + at, n), hn::IfThenElseZero(same, slope)), dx + at, n);
        slope = hn::IfThenZeroElse(same, slope);
      }
    }
  });
}

// The elements of an axis under window o.
struct Range {
  std::size_t begin, end;
};
HWY_INLINE Range Under(const PoolAxis& axis, std::size_t o) {
  const std::size_t first = o * axis.stride, end = first + axis.kernel;
  return {first < axis.padding ? 0 : first - axis.padding, std::min(end - axis.padding, axis.extent)};
}

// n elements at p, p + stride ...; reads none beyond the last.
HWY_INLINE Vector Strided(Floats d, const float* p, std::size_t stride, std::size_t n) {
  if (stride == 1) return Load(d, p, n);
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2 && n == kWidth) {  // without masks, which some processors load slowly
    const Vector first = hn::LoadU(d, p), last = hn::LoadU(d, p + kWidth - 1);
    return hn::ConcatUpperLower(d, hn::ConcatOdd(d, last, last), hn::ConcatEven(d, first, first));
  }
  if (stride == 2) {
    const std::size_t all = 2 * n - 1, low = std::min(all, kWidth);
    const Vector first = Load(d, p, low);
    return hn::ConcatEven(d, all == low ? first : Load(d, p + low, all - low), first);
  }
#endif
  HWY_ALIGN float each[kWidth] = {};
  for (std::size_t i = 0; i < n; ++i) each[i] = p[i * stride];
  return hn::Load(d, each);
}

// First the largest of each column of a row of windows, then of the columns of each window.
void MaxPool(const PoolAxis& rows, const PoolAxis& columns, const float* x, float* out) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::size_t width = columns.extent;
  HWY_ALIGN float largest[kPoolWidthMax];
  const std::size_t padded =
      std::max(columns.padding + width, (columns.windows - 1) * columns.stride + columns.kernel);
  std::fill(largest, largest + padded, kNone);
  for (std::size_t o = 0; o < rows.windows; ++o, out += columns.windows) {
    const Range range = Under(rows, o);
    EachVector(width, [&](Floats d, std::size_t j, std::size_t n) {
      Vector so_far = Load(d, x + range.begin * width + j, n);
      for (std::size_t i = range.begin + 1; i < range.end; ++i)
        so_far = LargerOrNaN(d, so_far, Load(d, x + i * width + j, n));
      Store(d, so_far, largest + columns.padding + j, n);
    });
    EachVector(columns.windows, [&](Floats d, std::size_t j, std::size_t n) {
      const float* const first = largest + j * columns.stride;
      Vector so_far = Strided(d, first, columns.stride, n);
      for (std::size_t k = 1; k < columns.kernel; ++k)
        so_far = LargerOrNaN(d, so_far, Strided(d, first + k, columns.stride, n));
      Store(d, so_far, out + j, n);
    });
  }
}

// The index in the plane of the first element under a window that is its `out`, or -1.
HWY_INLINE std::int32_t FirstOfWindow(const float* x, std::size_t width, Range rows, Range columns,
                                      float out) {
  for (std::size_t i = rows.begin; i < rows.end; ++i) {
    for (std::size_t j = columns.begin; j < columns.end; ++j) {
      const float each = x[i * width + j];
      if (each == out || (each != each && out != out)) return static_cast<std::int32_t>(i * width + j);
    }
  }
  return -1;
}

// The same of n windows of a row, all of whose columns are in the plane; the first one begins at column j.
HWY_INLINE void FirstOfWindows(Floats d, const float* x, std::size_t width, Range rows,
                               const PoolAxis& columns, std::size_t j, const float* out, std::size_t n,
                               std::int32_t* firsts) {
  const hn::RebindToSigned<Floats> whole;
  const Vector largest = Load(d, out, n);
  const auto none = hn::IsNaN(largest);
  const auto ramp = hn::Mul(hn::Iota(whole, 0), hn::Set(whole, static_cast<std::int32_t>(columns.stride)));
  auto first = hn::Set(whole, -1);
  // From the last element of the windows on, so that the first one stays.
  for (std::size_t i = rows.end; i-- > rows.begin;) {
    for (std::size_t k = columns.kernel; k-- > 0;) {
      const std::size_t at = i * width + j + k;
      const Vector each = Strided(d, x + at, columns.stride, n);
      const auto same = hn::Or(hn::Eq(each, largest), hn::And(hn::IsNaN(each), none));
      const auto index = hn::Add(ramp, hn::Set(whole, static_cast<std::int32_t>(at)));
      first = hn::IfThenElse(hn::RebindMask(whole, same), index, first);
    }
  }
  HWY_ALIGN std::int32_t all[kWidth];
  hn::Store(first, whole, all);
  std::copy_n(all, n, firsts);
}

// Finds the first elements of a whole row of windows, then adds their gradients in order.
void MaxPoolGrad(const PoolAxis& rows, const PoolAxis& columns, const float* x, const float* out,
                 const float* dout, float* dx) {
  const std::size_t width = columns.extent, stride = columns.stride, padding = columns.padding;
  std::fill_n(dx, rows.extent * width, 0.0f);
  // Windows [begin, end) of a row are in the plane with all their columns.
  const std::size_t begin = std::min(columns.windows, (padding + stride - 1) / stride);
  const std::size_t last =
      width + padding < columns.kernel ? 0 : (width + padding - columns.kernel) / stride + 1;
  const std::size_t end = std::max(begin, std::min(columns.windows, last));
  HWY_ALIGN std::int32_t firsts[kPoolWidthMax];
  for (std::size_t o = 0; o < rows.windows; ++o, out += columns.windows, dout += columns.windows) {
    const Range range = Under(rows, o);
    const auto one_by_one = [&](std::size_t from, std::size_t to) {
      for (std::size_t w = from; w < to; ++w)
        firsts[w] = FirstOfWindow(x, width, range, Under(columns, w), out[w]);
    };
    one_by_one(0, begin);
    EachVector(end - begin, [&](Floats d, std::size_t i, std::size_t n) {
      const std::size_t w = begin + i;
      FirstOfWindows(d, x, width, range, columns, w * stride - padding, out + w, n, firsts + w);
    });
    one_by_one(end, columns.windows);
    for (std::size_t w = 0; w < columns.windows; ++w) {
      if (firsts[w] >= 0) dx[firsts[w]] += dout[w];
    }
  }
}

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(MaxPool2x2);
HWY_EXPORT(MaxPool2x2Grad);
HWY_EXPORT(MaxOfWindow);
HWY_EXPORT(AddMaxGradOfWindow);
HWY_EXPORT(MaxPool);
HWY_EXPORT(MaxPoolGrad);

void MaxPool2x2(std::size_t planes, std::size_t height, std::size_t width, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxPool2x2)(planes, height, width, x, out);
}
void MaxPool2x2Grad(std::size_t planes, std::size_t height, std::size_t width, const float* x,
                    const float* out, const float* dout, float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxPool2x2Grad)(planes, height, width, x, out, dout, dx);
}
void MaxOfWindow(const ChannelsWindow& window, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxOfWindow)(window, x, out);
}
void AddMaxGradOfWindow(const ChannelsWindow& window, const float* x, const float* out, const float* dout,
                        float* dx) {
  HWY_DYNAMIC_DISPATCH(AddMaxGradOfWindow)(window, x, out, dout, dx);
}
void MaxPool(const PoolAxis& rows, const PoolAxis& columns, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxPool)(rows, columns, x, out);
}
void MaxPoolGrad(const PoolAxis& rows, const PoolAxis& columns, const float* x, const float* out,
                 const float* dout, float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxPoolGrad)(rows, columns, x, out, dout, dx);
}

}  // namespace penstock::vec
#endif  // HWY_ONCE
