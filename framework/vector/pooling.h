// Max pooling and its gradient. The results have the same bytes on every instruction set. The largest element
// of a window with a NaN is NaN.
//
// With windows of 2 x 2 at distance 2, of planes of floats [height, width]. Windows are height / 2 x
// width / 2, rounded down: an odd last row or column is in none.
#pragma once

#include <cstddef>

namespace penstock::vec {

void MaxPool2x2(std::size_t planes, std::size_t height, std::size_t width, const float* x, float* out);

// dx is dout at the first element of each window that is `out` (NaN is NaN here), and 0 elsewhere. Rows of a
// window come first. Arrays must not overlap.
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

}  // namespace penstock::vec
