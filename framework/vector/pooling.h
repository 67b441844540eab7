// Max pooling and its gradient. Results have the same bytes on every instruction set. The largest element of
// a window with a NaN is NaN. A gradient goes to the first element of a window that is the window's `out`
// (NaN is NaN here); rows of a window come first. Arrays must not overlap.
//
// Of planes of floats [height, width]:
#pragma once

#include <cstddef>

namespace penstock::vec {

// Windows of 2 x 2 at distance 2: height / 2 x width / 2 of them, rounded down, so an odd last row or column
// is in none.
void MaxPool2x2(std::size_t planes, std::size_t height, std::size_t width, const float* x, float* out);

void MaxPool2x2Grad(std::size_t planes, std::size_t height, std::size_t width, const float* x,
                    const float* out, const float* dout, float* dx);

// The same for one window of any size, of images [height, width, channels]: `columns` points at x in each of
// `rows` rows that are `stride` floats apart. The largest element of each channel goes to out.
struct ChannelsWindow {
  std::size_t rows, columns, stride, channels;
};
void MaxOfWindow(const ChannelsWindow& window, const float* x, float* out);
// Adds dout[c] to dx at the first element of channel c that is out[c]; dx has the form of x.
void AddMaxGradOfWindow(const ChannelsWindow& window, const float* x, const float* out, const float* dout,
                        float* dx);
// Along one axis of a plane: window o covers elements [o * stride - padding, o * stride - padding + kernel),
// of which at least one is in the plane.
struct PoolAxis {
  std::size_t extent, windows, kernel, stride, padding;
};
inline constexpr std::size_t kPoolWidthMax = 4096;  // of a row with its padding
// Whether rows of windows along this axis are short enough for the functions below.
inline bool FitsPool(const PoolAxis& x) {
  return x.padding + x.extent <= kPoolWidthMax && (x.windows - 1) * x.stride + x.kernel <= kPoolWidthMax;
}

// Of one plane. The largest of no numbers but -infinity is -infinity.
void MaxPool(const PoolAxis& rows, const PoolAxis& columns, const float* x, float* out);
// dx is 0 where no window sends a gradient, else their sum in the order of the windows.
void MaxPoolGrad(const PoolAxis& rows, const PoolAxis& columns, const float* x, const float* out,
                 const float* dout, float* dx);

}  // namespace penstock::vec
