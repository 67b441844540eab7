// Regions of images: the image to which each belongs, and the pixels along an axis that a bin of a region
// covers.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"
#include "operators/common/lod.h"

namespace penstock {

// The image to which each region belongs, from the sequences of input ROIs, or from a tensor.
class RoiImages {
 public:
  // `offsets` and `counts` name optional inputs with images + 1 offsets, or with the number of regions of
  // each image; null: the op has no such input. kInvalidArgument: ROIs is not [n, width].
  Status Prepare(const KernelSetup& k, Dim images, Dim width, const char* offsets, const char* counts);
  // Reads the images of this run. kInvalidArgument: the sequences do not match the images.
  Status Read(KernelRun& k);
  Dim count() const { return static_cast<Dim>(of_.size()); }
  Dim of(Dim region) const { return of_[static_cast<std::size_t>(region)]; }

 private:
  SequenceInput rois_;
  NamedOperand offsets_, counts_;
  std::string type_;
  Dim images_ = 0;
  std::vector<Dim> of_;
};

// Images must have rank 4, regions shape [n, width]. Sets the shape of `out` to
// [n, channels, pooled_height, pooled_width].
Status InferRois(InferContext& c, const char* images, const char* out, Dim channels, Dim width = 4);

// One pixel along an axis, and its weight in a bin.
template <typename T>
struct RoiTap {
  Dim at = 0;
  T weight{};
  T by_begin{}, by_end{};  // derivatives of the weight by the region's two ends, if the op has them
};
template <typename T>
using RoiTaps = std::vector<RoiTap<T>>;

// One axis of one region. `begin` and `end` are its ends as given, before an op rounds or scales them.
template <typename T>
struct RoiAxis {
  T begin{}, end{};
  T scale{1};
  Dim extent = 0;  // of the image
  Dim bins = 1;
};

// Returns the pixel at or below a position, clamped to [0, extent].
template <typename T>
Dim PixelAt(T place, Dim extent) {
  if (!(place > T{0})) return 0;
  return place < static_cast<T>(extent) ? static_cast<Dim>(place) : extent;
}

}  // namespace penstock
