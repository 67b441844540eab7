// sample_logits: the logits of the true classes and of a few sampled ones, for a softmax over these only.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"
#include "operators/common/require_shape.h"
#include "operators/loss/class_sampler.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Samples       = for each example, its classes in Labels, then num_samples classes shared by all examples
Probabilities = the probability of each of these classes to be among the samples
SampledLogits = Logits[Samples] - log(Probabilities)
SampledLabels = 0, 1, ... for each example: the positions of its classes in Samples

Class c is drawn with probability log((c + 2) / (c + 1)) / log(classes + 1), so classes should be sorted by
descending frequency; each class is drawn at most once. With remove_accidental_hits, the SampledLogits of a
sampled class that is a true class of the example are lowered by 1e20. With use_customized_samples, Samples
and Probabilities are CustomizedSamples and CustomizedProbabilities. Samples depend only on the seed; if it is
0, each run draws a new seed from the process. LogitsDim and LabelsDim have no elements; their shapes are
those of Logits and Labels followed by 0. Jean, Cho, Memisevic, Bengio: "On Using Very Large Target
Vocabulary", ACL 2015.)";

Status InferSampleLogits(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Logits", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Labels", 2));
  const Shape &logits = c.ShapeOf("Logits"), &labels = c.ShapeOf("Labels");
  if (!Compatible(labels[0], logits[0]))
    return c.Error("rows of Labels (", labels[0], ") must equal rows of Logits (", logits[0], ")");
  const Dim drawn = c.Attr<int>("num_samples");
  const Shape samples = {logits[0], labels[1] == kUnknownDim ? kUnknownDim : labels[1] + drawn};
  if (c.Attr<bool>("use_customized_samples")) {
    for (const char* slot : {"CustomizedSamples", "CustomizedProbabilities"}) {
      if (!c.HasInput(slot)) return c.Error("use_customized_samples needs input ", slot);
      if (!Compatible(c.ShapeOf(slot), samples))
        return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must be ", samples);
    }
  } else if (logits[1] != kUnknownDim && drawn > logits[1]) {
    return c.Error("num_samples (", drawn, ") must be at most the ", logits[1],
                   " classes of Logits, because each is drawn once");
  }
  for (const char* slot : {"Samples", "Probabilities", "SampledLogits"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(slot, samples));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LogitsDim", Concat(logits, Shape{0})));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("LabelsDim", Concat(labels, Shape{0})));
  return c.SetShape("SampledLabels", labels);
}

Status InferSampleLogitsGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("LogitsDim", 0));
  const Shape& dim = c.ShapeOf("LogitsDim");
  c.SetDType("Logits@GRAD", c.DTypeOf("SampledLogits@GRAD"));
  return c.SetShape("Logits@GRAD", dim.First(dim.rank() - 1));
}

Status CheckSamples(const char* op, std::span<const std::int64_t> samples, Dim classes) {
  for (const std::int64_t label : samples) {
    if (label < 0 || label >= classes)
      return InvalidArgument("E-op-label", op, ": class ", label, " must be in [0, ", classes, ")");
  }
  return OkStatus();
}

// Makes infinite numbers finite, so that their differences are numbers.
template <typename T>
T Tolerable(T x) {
  return std::isinf(x) ? std::copysign(static_cast<T>(1e20), x) : x;
}

template <typename Device, typename T>
class SampleLogitsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(logits_, labels_, given_samples_, given_probabilities_, samples_, probabilities_, sampled_logits_,
           sampled_labels_);
    customized_ = k.Attr<bool>("use_customized_samples");
    removes_hits_ = k.Attr<bool>("remove_accidental_hits");
    drawn_ = k.Attr<int>("num_samples");
    for (const char* slot : {"Samples", "Probabilities", "SampledLogits"})
      PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, slot));
    sampler_.PrepareLogUniform(k, k[logits_].shape[1]);
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Dim truths = k[labels_].shape()[1], columns = truths + drawn_;
    if (customized_) {
      if (&k[given_samples_] != &k[samples_]) CopyTensor(k[given_samples_], k[samples_]);
      if (&k[given_probabilities_] != &k[probabilities_])
        CopyTensor(k[given_probabilities_], k[probabilities_]);
    } else {
      PENSTOCK_RETURN_IF_ERROR(Draw(k));
    }
    const auto samples = std::as_const(k[samples_]).template Span<std::int64_t>();
    const Dim classes = k[logits_].shape()[1];
    PENSTOCK_RETURN_IF_ERROR(CheckSamples("sample_logits", samples, classes));
    const T* const logits = std::as_const(k[logits_]).template Data<T>();
    const T* const probabilities = std::as_const(k[probabilities_]).template Data<T>();
    T* const sampled = k[sampled_logits_].template Data<T>();
    for (Dim i = 0; i < k[labels_].shape()[0]; ++i) {
      const std::int64_t* const row = samples.data() + i * columns;
      for (Dim j = 0; j < columns; ++j) {
        T logit = logits[i * classes + row[j]];
        if (j >= truths && removes_hits_ && std::find(row, row + truths, row[j]) != row + truths)
          logit -= static_cast<T>(1e20);
        sampled[i * columns + j] = Tolerable(logit - Tolerable(std::log(probabilities[i * columns + j])));
      }
      for (Dim j = 0; j < truths; ++j) k[sampled_labels_].template Data<std::int64_t>()[i * truths + j] = j;
    }
    return OkStatus();
  }

 private:
  Status Draw(KernelRun& k) {
    const Dim truths = k[labels_].shape()[1], columns = truths + drawn_;
    const std::int64_t* label = std::as_const(k[labels_]).template Data<std::int64_t>();
    PENSTOCK_RETURN_IF_ERROR(CheckSamples("sample_logits",
                                          {label, static_cast<std::size_t>(k[labels_].shape().Count())},
                                          k[logits_].shape()[1]));
    const std::uint64_t tries = DrawOnce(k[logits_].shape()[1]);
    std::int64_t* const samples = k[samples_].template Data<std::int64_t>();
    T* const probabilities = k[probabilities_].template Data<T>();
    for (Dim i = 0; i < k[labels_].shape()[0]; ++i) {
      for (Dim j = 0; j < columns; ++j) {
        const std::int64_t chosen = j < truths ? *label++ : classes_[static_cast<std::size_t>(j - truths)];
        samples[i * columns + j] = chosen;
        probabilities[i * columns + j] =
            static_cast<T>(Expected(sampler_.LogUniformProbability(chosen), tries));
      }
    }
    return OkStatus();
  }
  // Fills classes_ with the requested number of distinct classes of `all`. Returns the number of draws.
  std::uint64_t DrawOnce(Dim all) {
    sampler_.Begin();
    is_drawn_.resize(static_cast<std::size_t>(all));
    classes_.clear();
    std::uint64_t tries = 0;
    while (static_cast<Dim>(classes_.size()) < drawn_) {
      const std::int64_t drawn = sampler_.DrawLogUniform(tries++);
      if (std::exchange(is_drawn_[static_cast<std::size_t>(drawn)], 1) == 0) classes_.push_back(drawn);
    }
    for (const std::int64_t drawn : classes_) is_drawn_[static_cast<std::size_t>(drawn)] = 0;
    return tries;
  }
  // Returns the expected number of occurrences of a class among the samples.
  double Expected(double probability, std::uint64_t tries) const {
    if (static_cast<Dim>(tries) == drawn_) return probability * static_cast<double>(drawn_);
    return -std::expm1(static_cast<double>(tries) * std::log1p(-probability));
  }

  In<"Logits"> logits_;
  In<"Labels"> labels_;
  In<"CustomizedSamples"> given_samples_;
  In<"CustomizedProbabilities"> given_probabilities_;
  Out<"Samples"> samples_;
  Out<"Probabilities"> probabilities_;
  Out<"SampledLogits"> sampled_logits_;
  Out<"SampledLabels"> sampled_labels_;
  bool customized_ = false, removes_hits_ = true;
  Dim drawn_ = 0;
  ClassSampler sampler_;
  std::vector<std::int64_t> classes_;
  std::vector<char> is_drawn_;  // all 0 between runs
};

template <typename Device, typename T>
class SampleLogitsGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(samples_, dsampled_, dlogits_);
    const Shape& dim = k.Input("LogitsDim").shape;
    if (dim.rank() != 3 || k[samples_].shape.rank() != 2 || dim[0] != k[samples_].shape[0])
      return k.Error("Samples (", k[samples_].shape, ") must have the rows of Logits (LogitsDim ", dim, ")");
    return RequireShape(k, "SampledLogits@GRAD", k[samples_].shape);
  }
  Status Run(KernelRun& k) override {
    if (!dlogits_) return OkStatus();
    const auto samples = std::as_const(k[samples_]).template Span<std::int64_t>();
    const Dim classes = k[dlogits_].shape()[1], columns = k[samples_].shape()[1];
    PENSTOCK_RETURN_IF_ERROR(CheckSamples("sample_logits_grad", samples, classes));
    const T* const dsampled = std::as_const(k[dsampled_]).template Data<T>();
    T* const dlogits = k[dlogits_].template Data<T>();
    std::ranges::fill(k[dlogits_].template Span<T>(), T{0});
    const Dim count = k[samples_].count();
    for (Dim i = 0; i < count; ++i)
      dlogits[i / columns * classes + samples[static_cast<std::size_t>(i)]] += dsampled[i];
    return OkStatus();
  }

 private:
  In<"Samples"> samples_;
  In<"SampledLogits@GRAD"> dsampled_;
  Out<"Logits@GRAD"> dlogits_;
};

}  // namespace

void RegisterSampleLogits(OpRegistry& ops) {
  ops.Add("sample_logits")
      .Doc("The logits of the true classes and of a few sampled ones.", kDoc)
      .Input("Logits", "scores, [examples, classes]", Floats())
      .Input("Labels", "the true classes, [examples, truths]", Only(DType::kInt64))
      .Input("CustomizedSamples", "the samples, with use_customized_samples", Only(DType::kInt64), Optional())
      .Input("CustomizedProbabilities", "the probabilities of these samples", SameTypeAs("Logits"),
             Optional())
      .Output("Samples", "the true classes, then the sampled ones", Only(DType::kInt64), Intermediate())
      .Output("Probabilities", "the probability of each class to be sampled", SameTypeAs("Logits"),
              Intermediate())
      .Output("LogitsDim", "the shape of Logits, then 0", SameTypeAs("Logits"), Intermediate())
      .Output("LabelsDim", "the shape of Labels, then 0", SameTypeAs("Labels"), Intermediate())
      .Output("SampledLogits", "logits minus the logarithms of the probabilities", SameTypeAs("Logits"),
              Intermediate() | Apart())
      .Output("SampledLabels", "the positions of the true classes in Samples", Only(DType::kInt64), Apart())
      .Attr("use_customized_samples", false, "whether the samples are given as inputs")
      .Attr("uniq", true, "has no effect: each class is drawn at most once")
      .Attr("remove_accidental_hits", true, "whether to suppress sampled classes that are true classes")
      .RequiredAttr("num_samples", AttrKind::kInt, "the number of classes to sample", AtLeast(1))
      .Attr("seed", 0, "the seed; 0: a new seed for each run")
      .Affects({Effect::kRandom})
      .InferShape(InferSampleLogits)
      .Kernel<Cpu, SampleLogitsKernel, float, double>()
      .Grad({.reads_outputs = {"Samples", "LogitsDim", "LabelsDim"},
             .yields = {"Logits"},
             .of = {"SampledLogits"},
             .apart = {"Logits"}})
      .GradDef()
      .InferShape(InferSampleLogitsGrad)
      .KernelTypeFrom("SampledLogits@GRAD")
      .Kernel<Cpu, SampleLogitsGradKernel, float, double>();
}

}  // namespace penstock
