// Regions of images: which image each belongs to, and the pixels along an axis that a bin of one is made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/op/infer_context.h"
#include "framework/op/kernel.h"
#include "operators/common/lod.h"

namespace penstock {

// The image that each region belongs to: by the sequences of input ROIs, or by a tensor in their place.
class RoiImages {
 public:
  // `offsets` and `counts` name inputs that the op may have: images + 1 offsets, or a number for each image;
  // null: it has none. kInvalidArgument unless ROIs is [n, width].
  Status Prepare(const KernelSetup& k, Dim images, Dim width, const char* offsets, const char* counts);
  // kInvalidArgument: the sequences do not fit the images.
  Status Read(KernelRun& k);
  Dim count() const { return static_cast<Dim>(of_.size()); }
  Dim of(Dim region) const { return of_[static_cast<std::size_t>(region)]; }

 private:
  SequenceInput rois_;
  Operand offsets_, counts_;
  std::string type_;
  Dim images_ = 0;
  std::vector<Dim> of_;
};

// Images of rank 4, regions [n, width]. The shape of Out is [n, channels, pooled_height, pooled_width].
Status InferRois(InferContext& c, const char* images, const char* out, Dim channels, Dim width = 4);

// One pixel along an axis, and its part in a bin.
template <typename T>
struct RoiTap {
  Dim at = 0;
  T weight{};
  T by_begin{}, by_end{};  // derivatives of the weight by the region's two ends, where they have some
};
template <typename T>
using RoiTaps = std::vector<RoiTap<T>>;

// One axis of one region: its ends on the image as they are, before an op rounds or scales them.
template <typename T>
struct RoiAxis {
  T begin{}, end{};
  T scale{1};
  Dim extent = 0;  // of the image
  Dim bins = 1;
};

// The pixel that lies at or below a place, within [0, extent].
template <typename T>
Dim PixelAt(T place, Dim extent) {
  if (!(place > T{0})) return 0;
  return place < static_cast<T>(extent) ? static_cast<Dim>(place) : extent;
}

}  // namespace penstock
