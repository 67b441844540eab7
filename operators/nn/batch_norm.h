// What batch_norm and its gradient share.
#pragma once

#include <string>

#include "framework/op/op_def.h"
#include "operators/common/onednn.h"

namespace penstock {

// X as a batch of channels of points, whatever its rank.
struct ChannelShape {
  Dim images = 0, channels = 0, points = 0;
  bool channels_last = false;
  Dim At(Dim n, Dim c, Dim p) const {
    return channels_last ? (n * points + p) * channels + c : (n * channels + c) * points + p;
  }
  Dim PerChannel() const { return images * points; }
  // Calls visit(index) for each element of a channel.
  template <typename Visit>
  void EachElement(Dim c, Visit&& visit) const {
    for (Dim n = 0; n < images; ++n) {
      for (Dim p = 0; p < points; ++p) visit(At(n, c, p));
    }
  }
};
ChannelShape MakeChannelShape(const Shape& x, const std::string& data_layout);
dnnl::memory::desc ChannelDesc(const ChannelShape& shape);

// Scale and shift as arguments of their own; with `uses_running` the moments are inputs.
dnnl::normalization_flags BatchNormFlags(bool uses_running);

template <typename Context>
bool UsesRunningStatistics(const Context& c) {
  const bool test = c.template Attr<bool>("is_test") && !c.template Attr<bool>("trainable_statistics");
  return test || c.template Attr<bool>("use_global_stats");
}

// Declares batch_norm_grad and its kernels (batch_norm_grad.cc).
void AddBatchNormGrad(OpDef& batch_norm);

}  // namespace penstock
