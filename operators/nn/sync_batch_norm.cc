// sync_batch_norm: batch_norm over the batches of all ranks.
#include <cmath>
#include <cstring>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/ring.h"
#include "operators/nn/batch_norm.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
batch_norm with the mean and variance of the batches of all ranks, which may differ in size. All ranks of ring
`ring_id` compute bitwise identical results; a single process with the joined batch differs by rounding. With
is_test or use_global_stats, ranks do not communicate. The op gathers 2 C + 1 numbers of double precision from
each rank, and so does its gradient. Scale@GRAD and Bias@GRAD cover only this rank's batch and must be summed
over the ranks like other gradients. If Live is 0, this rank's batch is excluded from the statistics and is
normalised by the moments of the other batches.
Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances",
1979.)";

constexpr char kLive[] = "one element; 0 excludes this rank's batch from the statistics";

// The message that ranks exchange: one number, then two numbers per channel, in double precision.
class PerChannelNumbers {
 public:
  explicit PerChannelNumbers(Dim channels) : own_(2 * static_cast<std::size_t>(channels) + 1) {}

  void Clear() { own_.assign(own_.size(), 0.0); }
  double& count() { return own_[0]; }
  double& first(Dim c) { return own_[2 * static_cast<std::size_t>(c) + 1]; }
  double& second(Dim c) { return own_[2 * static_cast<std::size_t>(c) + 2]; }

  // Fetches the numbers of all ranks, then calls visit(numbers of a rank) in rank order.
  template <typename Visit>
  Status OfAllRanks(RingUse& ring, Visit&& visit) {
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring.Open());
    const std::size_t ranks = static_cast<std::size_t>(group->size());
    all_.resize(own_.size() * ranks);
    const auto elements = [](std::vector<double>& numbers) {
      return Elements{reinterpret_cast<std::byte*>(numbers.data()), static_cast<std::int64_t>(numbers.size()),
                      ElementType::kFp64};
    };
    PENSTOCK_RETURN_IF_ERROR(
        ring.Wait(group->AllGatherEqual(elements(own_), elements(all_), ring.options())));
    for (std::size_t r = 0; r < ranks; ++r) {
      own_.assign(all_.begin() + static_cast<std::ptrdiff_t>(r * own_.size()),
                  all_.begin() + static_cast<std::ptrdiff_t>((r + 1) * own_.size()));
      visit(*this);
    }
    return OkStatus();
  }

 private:
  std::vector<double> own_, all_;
};

bool IsLive(KernelRun& k, const Operand& live) { return !live || *k[live].Data<float>() != 0.0f; }

template <typename Device, typename T>
class SyncBatchNormKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    k.Bind(live_);
    return a_.uses_running ? OkStatus() : ring_.Prepare(k, RingUse::Order::kInPlace);
  }

  Status Run(KernelRun& k) override {
    if (a_.uses_running) {
      Normalize(k, k[a_.mean].template Data<T>(), k[a_.variance].template Data<T>());
      a_.KeepRunning<T>(k);
      return OkStatus();
    }
    double count = 0;
    PENSTOCK_RETURN_IF_ERROR(JoinMoments(k, count));
    if (count <= 1) {  // as in batch_norm: one element has no variance
      std::memcpy(k[a_.y].raw(), k[a_.x].raw(), k[a_.x].bytes());
      a_.KeepRunning<T>(k);
      return OkStatus();
    }
    Normalize(k, k[a_.saved_mean].template Data<T>(), k[a_.saved_variance].template Data<T>());
    a_.MoveRunning<T>(k);
    return OkStatus();
  }

 private:
  // Writes mean and variance over all ranks' batches to saved_mean and saved_variance.
  Status JoinMoments(KernelRun& k, double& count) {
    const T* x = k[a_.x].template Data<T>();
    const double own = IsLive(k, live_) ? static_cast<double>(a_.shape.PerChannel()) : 0.0;
    PerChannelNumbers numbers(a_.shape.channels);
    numbers.count() = own;
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      double sum = 0, squares = 0;
      a_.shape.EachElement(c, [&](Dim at) { sum += static_cast<double>(x[at]); });
      const double mean = own > 0 ? sum / own : 0;
      a_.shape.EachElement(c, [&](Dim at) {
        const double off = static_cast<double>(x[at]) - mean;
        squares += off * off;
      });
      numbers.first(c) = mean;
      numbers.second(c) = squares;
    }
    const auto channels = static_cast<std::size_t>(a_.shape.channels);
    std::vector<double> means(channels, 0.0), squares(channels, 0.0);
    PENSTOCK_RETURN_IF_ERROR(numbers.OfAllRanks(ring_, [&](PerChannelNumbers& rank) {
      const double more = rank.count(), total = count + more;
      if (more <= 0) return;
      for (std::size_t c = 0; c < channels; ++c) {
        const double off = rank.first(static_cast<Dim>(c)) - means[c];
        means[c] += off * more / total;
        squares[c] += rank.second(static_cast<Dim>(c)) + off * off * count * more / total;
      }
      count = total;
    }));
    for (std::size_t c = 0; c < channels; ++c) {
      k[a_.saved_mean].template Data<T>()[c] = static_cast<T>(means[c]);
      k[a_.saved_variance].template Data<T>()[c] = static_cast<T>(count > 0 ? squares[c] / count : 0);
    }
    return OkStatus();
  }

  void Normalize(KernelRun& k, const T* mean, const T* variance) {
    const T* x = k[a_.x].template Data<T>();
    const T* scale = k[a_.scale].template Data<T>();
    const T* bias = k[a_.bias].template Data<T>();
    T* y = k[a_.y].template Data<T>();
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T factor = scale[c] / std::sqrt(variance[c] + static_cast<T>(a_.epsilon));
      a_.shape.EachElement(c, [&](Dim at) { y[at] = (x[at] - mean[c]) * factor + bias[c]; });
    }
  }

  BatchNormArguments a_;
  In<"Live"> live_;
  RingUse ring_;
};

// As batch_norm_grad, but count, sum(dY) and sum(dY * (X - mean) * r) in dX are sums over all ranks.
template <typename Device, typename T>
class SyncBatchNormGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(a_.Prepare(k));
    k.Bind(live_);
    return a_.uses_running ? OkStatus() : ring_.Prepare(k, RingUse::Order::kInPlace);
  }

  Status Run(KernelRun& k) override {
    const auto channels = static_cast<std::size_t>(a_.shape.channels);
    PerChannelNumbers numbers(a_.shape.channels);
    AddUp(k, numbers);
    const bool live = IsLive(k, live_);
    if (!live) numbers.Clear();
    std::vector<double> sums(channels, 0.0), weighted(channels, 0.0);
    double count = 0;
    if (!a_.uses_running) {
      PENSTOCK_RETURN_IF_ERROR(numbers.OfAllRanks(ring_, [&](PerChannelNumbers& rank) {
        count += rank.count();
        for (std::size_t c = 0; c < channels; ++c) {
          sums[c] += rank.first(static_cast<Dim>(c));
          weighted[c] += rank.second(static_cast<Dim>(c));
        }
      }));
      if (count <= 1) return CopyDy(k);
    }
    if (!a_.dx) return OkStatus();
    for (std::size_t c = 0; c < channels; ++c) {
      if (count > 0) {
        sums[c] /= count;
        weighted[c] /= count;
      }
      if (!live) sums[c] = weighted[c] = 0;  // the moments do not depend on this X
      Differentiate(k, static_cast<Dim>(c), static_cast<T>(sums[c]), static_cast<T>(weighted[c]));
    }
    return OkStatus();
  }

 private:
  T Root(KernelRun& k, Dim c) const {
    const T variance = k[a_.variance].template Data<T>()[c];
    return a_.uses_running ? T(1) / std::sqrt(variance + static_cast<T>(a_.epsilon)) : variance;
  }

  // This rank's sums, which are the gradients of Bias and Scale.
  void AddUp(KernelRun& k, PerChannelNumbers& numbers) {
    const T* x = k[a_.x].template Data<T>();
    const T* dy = k[a_.dy].template Data<T>();
    numbers.count() = static_cast<double>(a_.shape.PerChannel());
    for (Dim c = 0; c < a_.shape.channels; ++c) {
      const T mean = k[a_.mean].template Data<T>()[c], r = Root(k, c);
      double sum = 0, weighted = 0;
      a_.shape.EachElement(c, [&](Dim at) {
        sum += static_cast<double>(dy[at]);
        weighted += static_cast<double>(dy[at] * (x[at] - mean) * r);
      });
      numbers.first(c) = sum;
      numbers.second(c) = weighted;
      if (a_.dbias) k[a_.dbias].template Data<T>()[c] = static_cast<T>(sum);
      if (a_.dscale) k[a_.dscale].template Data<T>()[c] = static_cast<T>(weighted);
    }
  }

  // Takes the means of both sums over all elements of the channel; 0 if the running moments were used.
  void Differentiate(KernelRun& k, Dim c, T sum, T weighted) {
    const T* x = k[a_.x].template Data<T>();
    const T* dy = k[a_.dy].template Data<T>();
    T* dx = k[a_.dx].template Data<T>();
    const T mean = k[a_.mean].template Data<T>()[c], r = Root(k, c);
    const T factor = k[a_.scale].template Data<T>()[c] * r;
    if (a_.uses_running) sum = weighted = 0;
    a_.shape.EachElement(c,
                         [&](Dim at) { dx[at] = factor * (dy[at] - sum - (x[at] - mean) * r * weighted); });
  }

  // The gradient of Y = X.
  Status CopyDy(KernelRun& k) {
    if (a_.dx) std::memcpy(k[a_.dx].raw(), k[a_.dy].raw(), k[a_.dy].bytes());
    for (const Operand zero : std::initializer_list<Operand>{a_.dscale, a_.dbias}) {
      if (zero) std::memset(k[zero].raw(), 0, k[zero].bytes());
    }
    return OkStatus();
  }

  BatchNormGradArguments a_;
  In<"Live"> live_;
  RingUse ring_;
};

}  // namespace

void RegisterSyncBatchNorm(OpRegistry& ops) {
  OpDef& op =
      ops.Add("sync_batch_norm").Doc("Batch normalisation by the moments of all ranks' batches.", kDoc);
  DeclareBatchNorm(op)
      .Input("Live", kLive, Only(DType::kFp32), Optional())
      .Attr("ring_id", 0, "the ring to communicate on", AtLeast(0))
      .Kernel<Cpu, SyncBatchNormKernel, float, double>();
  DeclareBatchNormGrad(op).Input("Live", kLive, Only(DType::kFp32), Optional());
  op.GradKernel<Cpu, SyncBatchNormGradKernel, float, double>();
}

}  // namespace penstock
