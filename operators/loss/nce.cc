// nce: noise-contrastive estimation, which compares the true classes with a few randomly sampled ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/runtime/random.h"
#include "operators/common/remote_rows.h"
#include "operators/common/require_shape.h"
#include "operators/loss/class_sampler.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
For each example, uses the classes in Label and num_neg_samples sampled classes (or custom_neg_classes):

o    = sigmoid(Weight[class] . Input + Bias[class])    stored in SampleLogits, the classes in SampleLabels
b    = probability of the class in the sampler * num_neg_samples
Cost = SampleWeight * (sum over Label of -log(o / (o + b)) + sum over the sampled of -log(b / (o + b)))

sampler 0 is uniform; 1 has probabilities proportional to log(1 + 1 / (class + 1)), but never draws the last
class; 2 has the probabilities CustomDistProbs, with CustomDistAlias and CustomDistAliasProbs as the tables of
the alias method. Samples depend only on seed and position, so all runs draw the same; if seed is 0, each run
draws a new seed from the process. With is_sparse, the gradient of Weight is selected rows, one for each class
of each example. With remote_prefetch, Weight is range-sliced over pservers (table_names, height_sections,
epmap), from which the op fetches the rows of the classes that it uses.
Gutmann, Hyvarinen: "Noise-contrastive estimation", AISTATS 2010.)";

Status InferNce(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Weight", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Label", 0));
  const Shape &input = c.ShapeOf("Input"), &weight = c.ShapeOf("Weight"), &label = c.ShapeOf("Label");
  const Dim classes = c.Attr<int>("num_total_classes");
  if (!Compatible(label[0], input[0]))
    return c.Error("rows of Label (", label[0], ") must equal rows of Input (", input[0], ")");
  if (label.rank() > 2) return c.Error("rank of Label (", label.rank(), ") must be 1 or 2");
  if (!Compatible(weight[1], input[1]))
    return c.Error("width of Weight (", weight[1], ") must equal width of Input (", input[1], ")");
  if (!Compatible(weight[0], classes))
    return c.Error("rows of Weight (", weight[0], ") must equal num_total_classes (", classes, ")");
  if (c.HasInput("Bias") && !Compatible(c.ShapeOf("Bias").Count(), classes))
    return c.Error("Bias (", c.ShapeOf("Bias"), ") must hold num_total_classes (", classes, ") elements");
  if (c.HasInput("SampleWeight") && !Compatible(c.ShapeOf("SampleWeight").Count(), input[0]))
    return c.Error("SampleWeight (", c.ShapeOf("SampleWeight"),
                   ") must hold one element for each row of Input (", input[0], ")");
  const auto custom = c.Attr<std::vector<std::int32_t>>("custom_neg_classes");
  const int drawn = c.Attr<int>("num_neg_samples");
  if (!custom.empty() && static_cast<int>(custom.size()) != drawn)
    return c.Error("custom_neg_classes has ", custom.size(), " entries; num_neg_samples is ", drawn);
  if (c.Attr<int>("sampler") == 2) {
    for (const char* slot : {"CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"}) {
      if (!c.HasInput(slot)) return c.Error("sampler 2 needs input ", slot);
      if (!Compatible(c.ShapeOf(slot).Count(), classes))
        return c.Error(slot, " (", c.ShapeOf(slot), ") must hold num_total_classes (", classes, ") elements");
    }
  }
  const Dim truths = label.rank() == 2 ? label[1] : 1;
  const Dim columns = truths == kUnknownDim ? kUnknownDim : truths + drawn;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SampleLogits", {input[0], columns}));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SampleLabels", {input[0], columns}));
  return c.SetShape("Cost", {input[0], 1});
}

Status InferNceGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Input", "Input@GRAD"));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("Weight", "Weight@GRAD"));
  c.SetKind("Weight@GRAD", c.Attr<bool>("is_sparse") ? VarKind::kSelectedRows : VarKind::kTensor);
  if (c.HasInput("Bias")) return c.ShareAll("Bias", "Bias@GRAD");
  return c.HasOutput("Bias@GRAD") ? c.Error("Bias@GRAD needs the input Bias") : OkStatus();
}

// The rows of Weight, local or on pservers.
template <typename T>
class ClassRows {
 public:
  Status Prepare(KernelSetup& k) {
    k.Bind(weight_);
    remote_ = k[weight_].kind != VarKind::kTensor;
    width_ = k.Input("Input").shape[1];
    if (!remote_) return OkStatus();
    if (!roles::PrefetchesRows(k.op()))
      return Unimplemented("E-op-rows-kind", k.op().type(), ": Weight must be a dense tensor");
    PENSTOCK_RETURN_IF_ERROR(rows_.Declare(k, roles::LookupView(k.op()), DTypeOfT<T>::kValue, width_));
    if (rows_.height() == k.Attr<int>("num_total_classes")) return OkStatus();
    return k.Error("the servers hold ", rows_.height(), " rows of Weight for num_total_classes ",
                   k.Attr<int>("num_total_classes"));
  }
  // Each class is below num_total_classes.
  Status Load(KernelRun& k, std::span<const std::int64_t> classes) {
    if (remote_) return rows_.Fetch(classes);
    local_ = k[weight_].template Data<T>();
    return OkStatus();
  }
  // The row of the class at position `at` of the loaded classes.
  const T* Row(Dim at, std::int64_t label) const {
    return remote_ ? reinterpret_cast<const T*>(rows_.Row(static_cast<std::size_t>(at)))
                   : local_ + label * width_;
  }

 private:
  In<"Weight"> weight_;
  bool remote_ = false;
  Dim width_ = 0;
  RemoteRows rows_;
  const T* local_ = nullptr;
};

template <typename Device, typename T>
class NceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, label_, bias_, sample_weight_, cost_, logits_, labels_);
    custom_ = k.Attr<std::vector<std::int32_t>>("custom_neg_classes");
    drawn_ = k.Attr<int>("num_neg_samples");
    truths_ = k[label_].shape.rank() == 2 ? k[label_].shape[1] : 1;
    PENSTOCK_RETURN_IF_ERROR(weight_.Prepare(k));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "SampleLogits"));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "SampleLabels"));
    return sampler_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(Choose(k));
    const Dim width = k[input_].shape()[1], columns = truths_ + drawn_;
    PENSTOCK_RETURN_IF_ERROR(weight_.Load(k, k[labels_].template Span<std::int64_t>()));
    const T* const bias = bias_ ? k[bias_].template Data<T>() : nullptr;
    const T* const example_weight = sample_weight_ ? k[sample_weight_].template Data<T>() : nullptr;
    const std::int64_t* const labels = k[labels_].template Data<std::int64_t>();
    T* const logits = k[logits_].template Data<T>();
    for (Dim i = 0; i < k[input_].shape()[0]; ++i) {
      const T* const input = k[input_].template Data<T>() + i * width;
      T cost = 0;
      for (Dim j = 0; j < columns; ++j) {
        const std::int64_t label = labels[i * columns + j];
        T z = bias == nullptr ? T{0} : bias[label];
        const T* const weight = weight_.Row(i * columns + j, label);
        for (Dim d = 0; d < width; ++d) z += weight[d] * input[d];
        const T o = T{1} / (T{1} + std::exp(-z));
        const T b = static_cast<T>(sampler_.Probability(k, label)) * static_cast<T>(drawn_);
        logits[i * columns + j] = o;
        cost -= j < truths_ ? std::log(o / (o + b)) : std::log(b / (o + b));
      }
      k[cost_].template Data<T>()[i] = cost * (example_weight == nullptr ? T{1} : example_weight[i]);
    }
    return OkStatus();
  }

 private:
  // Fills SampleLabels.
  Status Choose(KernelRun& k) {
    sampler_.Begin();
    const std::int64_t* label = k[label_].template Data<std::int64_t>();
    std::int64_t* to = k[labels_].template Data<std::int64_t>();
    for (Dim i = 0; i < k[input_].shape()[0]; ++i) {
      for (Dim j = 0; j < truths_; ++j) *to++ = *label++;
      for (Dim j = 0; j < drawn_; ++j) {
        if (custom_.empty()) {
          PENSTOCK_ASSIGN_OR_RETURN(*to++, sampler_.Draw(k, static_cast<std::uint64_t>(i * drawn_ + j)));
        } else {
          *to++ = custom_[static_cast<std::size_t>(j)];
        }
      }
    }
    for (const std::int64_t at : k[labels_].template Span<std::int64_t>()) {
      if (at < 0 || at >= sampler_.classes())
        return InvalidArgument("E-op-label", "nce: class ", at, " must be in [0, ", sampler_.classes(), ")");
    }
    return OkStatus();
  }

  In<"Input"> input_;
  In<"Label"> label_;
  In<"Bias"> bias_;
  In<"SampleWeight"> sample_weight_;
  Out<"Cost"> cost_;
  Out<"SampleLogits"> logits_;
  Out<"SampleLabels"> labels_;
  ClassRows<T> weight_;
  std::vector<std::int32_t> custom_;
  Dim drawn_ = 0, truths_ = 0;
  ClassSampler sampler_;
};

// d(-log(o / (o + b))) / dz = -(1 - o) * b / (o + b);  d(-log(b / (o + b))) / dz = o * (1 - o) / (o + b)
template <typename Device, typename T>
class NceGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, logits_, labels_, sample_weight_, dcost_, dinput_, dweight_, dbias_);
    const Shape& label = k.Input("Label").shape;
    const Argument& weight = k.Input("Weight");
    classes_ = k.Attr<int>("num_total_classes");
    const bool fits = weight.kind != VarKind::kTensor ||
                      (k[input_].shape.rank() == 2 && weight.shape == Shape{classes_, k[input_].shape[1]});
    if (k[input_].shape.rank() != 2 || !fits)
      return k.Error("Input (", k[input_].shape, ") must have rank 2, and Weight (", weight.shape,
                     ") one row as wide for each class");
    PENSTOCK_RETURN_IF_ERROR(weight_.Prepare(k));
    if (k.Input("Bias")) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Bias", classes_));
    if (sample_weight_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "SampleWeight", k[input_].shape[0]));
    drawn_ = k.Attr<int>("num_neg_samples");
    truths_ = label.rank() == 2 ? label[1] : 1;
    const Shape chosen = {k[input_].shape[0], truths_ + drawn_};
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "SampleLogits", chosen));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "SampleLabels", chosen));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Cost@GRAD", k[input_].shape[0]));
    lists_rows_ = k[dweight_].kind == VarKind::kSelectedRows;
    rows_shape_ = {chosen.Count(), k[input_].shape[1]};
    return sampler_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const Dim width = k[input_].shape()[1];
    const bool sparse = dweight_ && lists_rows_;
    const auto labels = k[labels_].template Span<std::int64_t>();
    for (const std::int64_t at : labels) {
      if (at < 0 || at >= classes_)
        return InvalidArgument("E-op-label", "nce_grad: class ", at, " must be in [0, ", classes_, ")");
    }
    if (dinput_) PENSTOCK_RETURN_IF_ERROR(weight_.Load(k, labels));
    T* const dinput = Cleared(k, dinput_);
    T* const dbias = Cleared(k, dbias_);
    T* const dweight = sparse ? ListRows(k, labels) : Cleared(k, dweight_);
    for (Dim i = 0, at = 0; i < k[input_].shape()[0]; ++i) {
      const T* const input = k[input_].template Data<T>() + i * width;
      for (Dim j = 0; j < truths_ + drawn_; ++j, ++at) {
        const Dim label = labels[static_cast<std::size_t>(at)];
        const T dz = Slope(k, i, at, j < truths_, label);
        if (dbias != nullptr) dbias[label] += dz;
        const T* const weight = dinput == nullptr ? nullptr : weight_.Row(at, label);
        for (Dim d = 0; weight != nullptr && d < width; ++d) dinput[i * width + d] += dz * weight[d];
        T* const row = dweight == nullptr ? nullptr : dweight + (sparse ? at : label) * width;
        for (Dim d = 0; row != nullptr && d < width; ++d) row[d] = (sparse ? T{0} : row[d]) + dz * input[d];
      }
    }
    return OkStatus();
  }

 private:
  T Slope(KernelRun& k, Dim example, Dim at, bool is_truth, Dim label) {
    const T o = k[logits_].template Data<T>()[at];
    const T b = static_cast<T>(sampler_.Probability(k, label)) * static_cast<T>(drawn_);
    const T slope = is_truth ? (o - T{1}) * b / (o + b) : o * (T{1} - o) / (o + b);
    const T share = sample_weight_ ? k[sample_weight_].template Data<T>()[example] : T{1};
    return slope * share * k[dcost_].template Data<T>()[example];
  }
  static T* Cleared(KernelRun& k, const Operand& operand) {
    if (!operand) return nullptr;
    std::ranges::fill(k[operand].template Span<T>(), T{0});
    return k[operand].template Data<T>();
  }
  T* ListRows(KernelRun& k, std::span<const std::int64_t> labels) {
    auto& rows = k.Var(dweight_).template As<SelectedRows>();
    rows.height = classes_;
    rows.rows.assign(labels.begin(), labels.end());
    rows.ResetValue(DTypeOfT<T>::kValue, rows_shape_);
    return rows.value.template Data<T>();
  }

  In<"Input"> input_;
  In<"SampleLogits"> logits_;
  In<"SampleLabels"> labels_;
  In<"SampleWeight"> sample_weight_;
  In<"Cost@GRAD"> dcost_;
  Out<"Input@GRAD"> dinput_;
  Out<"Weight@GRAD"> dweight_;
  bool lists_rows_ = false;
  Out<"Bias@GRAD"> dbias_;
  ClassRows<T> weight_;
  Dim classes_ = 0, drawn_ = 0, truths_ = 0;
  Shape rows_shape_;
  ClassSampler sampler_;
};

}  // namespace

void RegisterNce(OpRegistry& ops) {
  ops.Add("nce")
      .Doc("Noise-contrastive estimation: the true classes against a few sampled ones.", kDoc)
      .Input("Input", "one row per example", Floats())
      .Input("Label", "the true classes of each example", Only(DType::kInt64))
      .Input("Weight", "one row per class", SameTypeAs("Input"), TensorOrRows())
      .Input("Bias", "one element per class", SameTypeAs("Input"), Optional())
      .Input("SampleWeight", "the weight of each example", SameTypeAs("Input"), Optional())
      .Input("CustomDistProbs", "the probability of each class", Only(DType::kFp32), Optional())
      .Input("CustomDistAlias", "the alternative class of each entry of the alias method",
             Only(DType::kInt32), Optional())
      .Input("CustomDistAliasProbs", "the probability of each entry's own class in the alias method",
             Only(DType::kFp32), Optional())
      .Output("Cost", "one loss per example", SameTypeAs("Input"), Apart())
      .Output("SampleLogits", "the sigmoids", SameTypeAs("Input"), Intermediate())
      .Output("SampleLabels", "the classes, the true ones first", Only(DType::kInt64), Intermediate())
      .RequiredAttr("num_total_classes", AttrKind::kInt, "the number of classes", AtLeast(1))
      .Attr("num_neg_samples", 10, "the number of samples per example", AtLeast(1))
      .Attr("sampler", 0, "the distribution of the samples", OneOf({"0", "1", "2"}))
      .Attr("seed", 0, "the seed; 0: a new seed for each run")
      .Affects({Effect::kRandom})
      .Attr("is_sparse", false, "whether the gradient of Weight is selected rows")
      .Attr("remote_prefetch", false, "whether the transpiled program keeps Weight on pservers")
      .Attr("trainer_id", 0, "the number of the trainer that fetches rows")
      .Attr("height_sections", std::vector<std::int64_t>(), "the number of rows of each slice of Weight")
      .Attr("epmap", std::vector<std::string>(), "the pserver of each slice")
      .Attr("table_names", std::vector<std::string>(), "the name of each slice")
      .Attr("custom_neg_classes", std::vector<std::int32_t>(), "classes to use instead of sampled ones")
      .InferShape(InferNce)
      .Kernel<Cpu, NceKernel, float, double>()
      .Grad({.reads = {"Input", "Label", "Bias", "Weight", "SampleWeight", "CustomDistProbs",
                       "CustomDistAlias", "CustomDistAliasProbs"},
             .reads_outputs = {"SampleLogits", "SampleLabels"},
             .yields = {"Input", "Weight", "Bias"},
             .sparse = {"Weight"},
             .apart = {"Input", "Weight", "Bias"}})
      .GradKernel<Cpu, NceGradKernel, float, double>()
      .GradDef()
      .InferShape(InferNceGrad);
}

}  // namespace penstock
