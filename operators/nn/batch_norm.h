// Shared by batch_norm, batch_norm_relu, sync_batch_norm and their gradients.
#pragma once

#include <algorithm>
#include <string>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "framework/vector/channel_norm.h"
#include "framework/vector/column_norm.h"
#include "framework/vector/column_sums.h"
#include "operators/common/parallel.h"

namespace penstock {

// X of any rank, viewed as images x channels x points. If each channel of an image is one point, X is viewed
// as one image whose points are X's images, with channels last: the bytes are the same.
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
// For channels that are not last.
inline vec::Planes PlanesOf(const ChannelShape& s) {
  return {static_cast<std::size_t>(s.images), static_cast<std::size_t>(s.channels),
          static_cast<std::size_t>(s.points)};
}
// Calls part(first, count) for parts of the channels, on several threads if there are many elements.
template <typename Part>
void EachPartOfChannels(const ChannelShape& s, const Part& part) {
  constexpr double kElementNs = 0.4;
  ForRows(s.channels, kElementNs * static_cast<double>(s.PerChannel()), [&](Dim begin, Dim end) {
    part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  });
}
ChannelShape MakeChannelShape(const Shape& x, const std::string& data_layout);

// For channels that are last: a row for each point, a column for each channel.
inline vec::Matrix MatrixOf(const ChannelShape& s) {
  return {static_cast<std::size_t>(s.images * s.points), static_cast<std::size_t>(s.channels)};
}
// Calls part(first row, rows) for parts of the rows, on several threads if there are many elements.
template <typename Part>
void EachPartOfRows(const ChannelShape& s, const Part& part) {
  constexpr double kElementNs = 0.2;
  ForRows(s.images * s.points, kElementNs * static_cast<double>(s.channels), [&](Dim begin, Dim end) {
    part(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  });
}

// Sums over the rows, column by column. Blocks of rows have sums of their own, which are added in the order
// of the blocks: bytes do not depend on threads.
class RowBlockSums {
 public:
  // `kinds`: the number of sums of each column.
  void Prepare(KernelSetup& k, const ChannelShape& s, int kinds) {
    rows_ = s.images * s.points;
    width_ = s.channels * kinds;
    blocks_ = (rows_ + kRows - 1) / kRows;
    sums_ = k.Workspace(static_cast<std::size_t>(blocks_ * width_) * sizeof(float));
  }
  // Calls add(first row, rows, sums) for each block, with sums of 0. Returns the totals.
  template <typename Add>
  const float* Run(KernelRun& k, const Add& add) const {
    auto* const sums = reinterpret_cast<float*>(k.Workspace(sums_));
    ForRows(blocks_, 0.2 * kRows * static_cast<double>(width_), [&](Dim begin, Dim end) {
      for (Dim block = begin; block < end; ++block) {
        float* const own = sums + block * width_;
        std::fill_n(own, width_, 0.0f);
        add(static_cast<std::size_t>(block * kRows),
            static_cast<std::size_t>(std::min<Dim>(kRows, rows_ - block * kRows)), own);
      }
    });
    for (Dim block = 1; block < blocks_; ++block) {
      for (Dim j = 0; j < width_; ++j) sums[j] += sums[block * width_ + j];
    }
    return sums;
  }

 private:
  static constexpr Dim kRows = 256;
  Dim rows_ = 0, width_ = 0, blocks_ = 0;
  WorkspaceId sums_;
};

template <typename Context>
bool UsesRunningStatistics(const Context& c) {
  const bool test = c.template Attr<bool>("is_test") && !c.template Attr<bool>("trainable_statistics");
  return test || c.template Attr<bool>("use_global_stats");
}

Status InferBatchNorm(InferContext& c);
// Declare the slots, attributes and shapes of the ops, and of their gradient ops.
OpDef& DeclareBatchNorm(OpDef& op);
OpDef& DeclareBatchNormGrad(OpDef& op);
// Makes the gradient op, which reads `kept` (X or Y) in addition to the common arguments. As in Fluid, it
// names the running moments only if the forward op used them.
GradMaker BatchNormGradReading(const char* kept);

// Declares batch_norm_grad and its kernels (batch_norm_grad.cc).
void AddBatchNormGrad(OpDef& batch_norm);

// The arguments of a kernel, and the update of the running moments.
struct BatchNormArguments {
  In<"X"> x;
  In<"Scale"> scale;
  In<"Bias"> bias;
  In<"Mean"> mean;
  In<"Variance"> variance;
  In<"MomentumTensor"> momentum_tensor;
  Out<"Y"> y;
  Out<"MeanOut"> mean_out;
  Out<"VarianceOut"> variance_out;
  Out<"SavedMean"> saved_mean;
  Out<"SavedVariance"> saved_variance;
  ChannelShape shape;
  float epsilon = 0, momentum = 0;
  bool uses_running = false;

  Status Prepare(KernelSetup& k);
  // The moments by which X is normalised: the running ones, or those of the batch.
  Operand used_mean() const { return uses_running ? Operand(mean) : Operand(saved_mean); }
  Operand used_variance() const { return uses_running ? Operand(variance) : Operand(saved_variance); }
  // Writes the mean and the variance of the batch to saved_mean and saved_variance, by plain loops.
  template <typename T>
  void Measure(KernelRun& k) const;
  // For training, with the moments of the batch in saved_mean and saved_variance. Moves the running moments
  // towards them, then converts saved_variance to the form that the gradient reads.
  template <typename T>
  void MoveRunning(KernelRun& k) const;
  // Copies the running moments unchanged. There are no moments of the batch, and the gradient does not read
  // the saved ones.
  template <typename T>
  void KeepRunning(KernelRun& k) const;
};

// The f32 moments and factors of channels that are last.
class RowMoments {
 public:
  void Prepare(KernelSetup& k, const ChannelShape& s);
  // A row is normalised by (x - mean) * factor + bias. In training, writes the moments of the batch to
  // SavedMean and SavedVariance, which holds the variance until MoveRunning.
  struct Numbers {
    const float *mean, *factor, *bias;
  };
  Numbers Run(KernelRun& k, const BatchNormArguments& a) const;

 private:
  void Measure(KernelRun& k, const BatchNormArguments& a) const;

  RowBlockSums sums_;
  WorkspaceId factors_;
};

struct BatchNormGradArguments {
  In<"X"> x;
  In<"Scale"> scale;
  In<"Bias"> bias;
  In<"Y@GRAD"> dy;
  Out<"X@GRAD"> dx;
  Out<"Scale@GRAD"> dscale;
  Out<"Bias@GRAD"> dbias;
  Operand mean, variance;  // of the batch, or the running ones
  ChannelShape shape;
  float epsilon = 0;
  bool uses_running = false;

  Status Prepare(KernelSetup& k);
  // Whether the gradient is that of Y = X.
  bool CopiesOnly() const { return shape.PerChannel() <= (uses_running ? 0 : 1); }
};

// The f32 numbers of each channel from which a gradient is computed (batch_norm_grad.cc).
class ChannelSlopes {
 public:
  void Prepare(KernelSetup& k, const ChannelShape& s);
  // The arguments for framework/vector.
  vec::ChannelNormGrad Arguments(KernelRun& k, const BatchNormGradArguments& a) const;
  // For channels that are last. Calls add(first row, rows, sums, alongs) for blocks of rows, which does as
  // vec::AddSlopes. Writes the gradients of Scale and Bias.
  template <typename Add>
  vec::ColumnSlopes OfRows(KernelRun& k, const vec::ChannelNormGrad& g, const Add& add) const {
    const auto columns = static_cast<std::size_t>(channels_);
    return Finish(k, g, sums_.Run(k, [&](std::size_t first, std::size_t rows, float* own) {
      add(first, rows, own, own + columns);
    }));
  }

 private:
  vec::ColumnSlopes Finish(KernelRun& k, const vec::ChannelNormGrad& g, const float* sums) const;
  float* Numbers(KernelRun& k, Dim i) const {
    return reinterpret_cast<float*>(k.Workspace(numbers_)) + i * channels_;
  }

  static constexpr Dim kNumbers = 4;
  Dim rows_ = 0, channels_ = 0;
  WorkspaceId numbers_;
  RowBlockSums sums_;
};

}  // namespace penstock
