// The gradients of a convolution whose windows are one point, of images that are stored channels last, as
// matrix products: with a row for each point of each image,
//
//   Input@GRAD = Output@GRAD . Filter              [points, filters] . [filters, channels]
//   Filter@GRAD = Output@GRAD transposed . Input   [filters, points] . [points, channels]
//
// They read and write plain filters. Measured at the shapes of ResNet-50 on a core with AVX-512, products
// take 0.75 to 1.0 of the time of oneDNN's gradients of the input, and 0.45 to 1.0 of those of the filter
// (without the copies of filters into oneDNN's layouts); with AVX2, 1.0 and up to 1.6. The convolution itself
// takes as long as its product.
#pragma once

#include "operators/nn/conv2d.h"

namespace penstock {

class PointProducts {
 public:
  // Each returns whether Run computes the gradient, which the op must have. Then oneDNN need not. Depends on
  // shapes, attributes and instruction set only.
  bool TakeInputGradient(const KernelSetup& k, const ConvArguments& a);
  bool TakeFilterGradient(const KernelSetup& k, const ConvArguments& a);  // false if Bias has a gradient

  Status Run(KernelRun& k) const;

 private:
  void Prepare(const KernelSetup& k, const ConvArguments& a);

  Operand input_, filter_, doutput_, dinput_, dfilter_;  // gradients: present if they are computed
  Dim points_ = 0, channels_ = 0, filters_ = 0;
  int threads_ = 1;
};

}  // namespace penstock
