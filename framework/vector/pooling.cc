#include "framework/vector/pooling.h"

#include <algorithm>

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

}  // namespace penstock::vec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::vec {

HWY_EXPORT(MaxPool2x2);
HWY_EXPORT(MaxPool2x2Grad);
HWY_EXPORT(MaxOfWindow);
HWY_EXPORT(AddMaxGradOfWindow);

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

}  // namespace penstock::vec
#endif  // HWY_ONCE
