// warpctc: connectionist temporal classification: the negative log-probability of a label over all
// alignments.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/loss/ctc_lattice.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Loss = -log(sum of the probabilities of all alignments of a sequence with its Label)

An alignment has one class per step. It matches a label if removing repetitions and then `blank` yields the
label. Its probability is the product of the softmax of Logits at its classes. A label without an alignment,
because there are too few steps, costs 0 and has no gradient. Sequences are given by the LoD of Logits and
Label or, with LogitsLength and LabelLength, Logits is [steps, sequences, classes] and Label is
[sequences, elements]. WarpCTCGrad, [steps, sequences, classes], is the gradient of each Loss; with
norm_by_times, Logits@GRAD is divided by the number of steps of the sequence.)";

Status InferWarpCtc(InferContext& c) {
  const Shape &logits = c.ShapeOf("Logits"), &label = c.ShapeOf("Label");
  const bool padded = c.HasInput("LogitsLength");
  if (padded != c.HasInput("LabelLength"))
    return c.Error("LogitsLength and LabelLength must be given both or neither");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Logits", padded ? 3 : 2));
  const Dim classes = logits[logits.rank() - 1], blank = c.Attr<int>("blank");
  if (classes != kUnknownDim && blank >= classes)
    return c.Error("blank (", blank, ") must be below the ", classes, " classes of Logits");
  if (!padded) {
    PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Label", 0));
    if (!Compatible(label.RowWidth(), 1))
      return c.Error("a row of Label (", label, ") must have one element");
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("WarpCTCGrad", {kUnknownDim, kUnknownDim, classes}));
    return c.SetShape("Loss", {kUnknownDim, 1});
  }
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Label", 2));
  if (!Compatible(label[0], logits[1]))
    return c.Error("Label (", label, ") must have one row for each of the ", logits[1],
                   " sequences of Logits");
  for (const char* slot : {"LogitsLength", "LabelLength"}) {
    if (!Compatible(c.ShapeOf(slot).Count(), logits[1]))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must have one element for each of the ", logits[1],
                     " sequences of Logits");
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("WarpCTCGrad", logits));
  return c.SetShape("Loss", {logits[1], 1});
}

Status InferWarpCtcGrad(InferContext& c) { return c.ShareAll("Logits", "Logits@GRAD"); }

// The positions of the sequences of Logits or Label: rows of a LoD tensor, or a padded tensor.
class PaddedOrLod {
 public:
  // `sequences` and `steps` are those of the padded form.
  void Prepare(const KernelSetup& k, std::string_view slot, std::string_view length, Dim sequences,
               Dim steps) {
    input_.Prepare(k, slot);
    length_ = k.Input(length);
    what_ = StrCat(k.op().type(), ": ", length);
    sequences_ = sequences;
    steps_ = steps;
  }
  Status Find(KernelRun& k) {
    if (!length_) {
      PENSTOCK_ASSIGN_OR_RETURN(offsets_, input_.Innermost(k));
      return OkStatus();
    }
    lengths_ = std::as_const(k[length_]).Data<std::int64_t>();
    for (Dim s = 0; s < sequences_; ++s) {
      if (lengths_[s] >= 0 && lengths_[s] <= steps_) continue;
      return InvalidArgument("E-op-index", what_, ": sequence ", s, " has length ", lengths_[s],
                             "; it must be in [0, ", steps_, "]");
    }
    return OkStatus();
  }
  const Operand& operand() const { return input_.operand(); }
  bool padded() const { return static_cast<bool>(length_); }
  Dim count() const { return padded() ? sequences_ : offsets_.count(); }
  Dim length(Dim s) const { return padded() ? lengths_[s] : offsets_.length(s); }
  Dim begin(Dim s) const { return offsets_.begin(s); }  // a row of the LoD form
  Dim longest() const { return padded() ? steps_ : offsets_.longest(); }

 private:
  SequenceInput input_;
  Operand length_;
  std::string what_;
  Dim sequences_ = 0, steps_ = 0;
  Offsets offsets_;
  const std::int64_t* lengths_ = nullptr;
};

// The steps of logits, in either form: those of sequence s start at `first` and are `stride` elements apart.
struct StepsOf {
  StepsOf(const PaddedOrLod& logits, Dim s, Dim classes)
      : first((logits.padded() ? s : logits.begin(s)) * classes),
        stride(logits.padded() ? logits.count() * classes : classes) {}
  Dim first, stride;
};

template <typename Device, typename T>
class WarpCtcKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Shape &logits = k.Input("Logits").shape, &label = k.Input("Label").shape;
    classes_ = logits[logits.rank() - 1];
    lattice_.emplace(classes_, k.Attr<int>("blank"));
    const bool padded = logits.rank() == 3;
    logits_.Prepare(k, "Logits", "LogitsLength", padded ? logits[1] : 0, logits[0]);
    label_.Prepare(k, "Label", "LabelLength", label[0], padded ? label[1] : 1);
    k.Bind(gradient_);
    shape_ = {0, 0, classes_};
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "WarpCTCGrad"));
    return loss_.Prepare(k, "Loss", DTypeOfT<T>::kValue, {0, 1});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(logits_.Find(k));
    PENSTOCK_RETURN_IF_ERROR(label_.Find(k));
    if (logits_.count() != label_.count())
      return LodError("warpctc: Logits has ", logits_.count(), " sequences, Label has ", label_.count());
    const T* const logits = std::as_const(k[logits_.operand()]).template Data<T>();
    const std::int32_t* const labels = std::as_const(k[label_.operand()]).template Data<std::int32_t>();
    Tensor& gradient = k[gradient_];
    const Dim count = logits_.count();
    shape_.Set(0, logits_.longest());
    shape_.Set(1, count);
    gradient.Refit(DTypeOfT<T>::kValue, shape_);
    std::ranges::fill(gradient.template Span<T>(), T{0});
    T* const loss = loss_.Make(k, count).template Data<T>();
    for (Dim s = 0; s < count; ++s) {
      const Dim length = label_.length(s), steps = logits_.length(s);
      const std::int32_t* const label = labels + (label_.padded() ? s * label_.longest() : label_.begin(s));
      for (Dim i = 0; i < length; ++i) {
        if (label[i] < 0 || label[i] >= classes_)
          return InvalidArgument("E-op-label", "warpctc: class ", label[i], " must be in [0, ", classes_,
                                 ")");
      }
      const StepsOf from(logits_, s, classes_);
      loss[s] = lattice_->CostOf({logits + from.first, from.stride},
                                 {gradient.template Data<T>() + s * classes_, count * classes_}, steps, label,
                                 length);
    }
    return OkStatus();
  }

 private:
  PaddedOrLod logits_, label_;
  Out<"WarpCTCGrad"> gradient_;
  RowsOutput loss_;
  Shape shape_;
  Dim classes_ = 0;
  std::optional<CtcLattice<T>> lattice_;
};

template <typename Device, typename T>
class WarpCtcGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Shape& logits = k.Input("Logits").shape;
    const bool padded = static_cast<bool>(k.Input("LogitsLength"));
    if (logits.rank() != (padded ? 3 : 2))
      return k.Error("Logits (", logits, ") must have rank ", padded ? 3 : 2);
    classes_ = logits[logits.rank() - 1];
    logits_.Prepare(k, "Logits", "LogitsLength", padded ? logits[1] : 0, logits[0]);
    if (padded) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "LogitsLength", logits[1]));
    k.Bind(gradient_, dloss_);
    dloss_name_ = StrCat(k.op().type(), ": Loss@GRAD");
    expected_ = {0, 0, classes_};
    k.Bind(dlogits_);
    norm_ = k.Attr<bool>("norm_by_times");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dlogits_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(logits_.Find(k));
    const Dim count = logits_.count();
    PENSTOCK_RETURN_IF_ERROR(CheckRows(dloss_name_, k[dloss_], count, 1));
    expected_.Set(0, logits_.longest());
    expected_.Set(1, count);
    if (k[gradient_].shape() != expected_)
      return InvalidArgument("E-op-value", "warpctc_grad: shape of WarpCTCGrad (", k[gradient_].shape(),
                             ") must be ", expected_);
    const T* const gradient = std::as_const(k[gradient_]).template Data<T>();
    const T* const dloss = std::as_const(k[dloss_]).template Data<T>();
    T* const dlogits = k[dlogits_].template Data<T>();
    std::ranges::fill(k[dlogits_].template Span<T>(), T{0});
    for (Dim s = 0; s < count; ++s) {
      const StepsOf to(logits_, s, classes_);
      const Dim steps = logits_.length(s);
      const T scale = norm_ && steps > 0 ? dloss[s] / static_cast<T>(steps) : dloss[s];
      for (Dim t = 0; t < steps; ++t) {
        for (Dim c = 0; c < classes_; ++c)
          dlogits[to.first + t * to.stride + c] = scale * gradient[(t * count + s) * classes_ + c];
      }
    }
    return OkStatus();
  }

 private:
  PaddedOrLod logits_;
  In<"WarpCTCGrad"> gradient_;
  In<"Loss@GRAD"> dloss_;
  Out<"Logits@GRAD"> dlogits_;
  std::string dloss_name_;
  Shape expected_;
  Dim classes_ = 0;
  bool norm_ = false;
};

}  // namespace

void RegisterWarpCtc(OpRegistry& ops) {
  ops.Add("warpctc")
      .Doc("The connectionist temporal classification loss.", kDoc)
      .Input("Logits", "the scores of each class, in sequences", Floats())
      .Input("Label", "the classes of each label", Only(DType::kInt32))
      .Input("LogitsLength", "the lengths of padded sequences", Only(DType::kInt64), Optional())
      .Input("LabelLength", "the lengths of padded labels", Only(DType::kInt64), Optional())
      .Output("WarpCTCGrad", "the gradient of each loss", SameTypeAs("Logits"), Intermediate() | Apart())
      .Output("Loss", "the cost of each sequence, [sequences, 1]", SameTypeAs("Logits"), Apart())
      .Attr("blank", 0, "the blank class", AtLeast(0))
      .Attr("norm_by_times", false, "whether the gradient is divided by the number of steps")
      .InferShape(InferWarpCtc)
      .Kernel<Cpu, WarpCtcKernel, float, double>()
      .Grad({.reads = {"Logits", "LogitsLength"},
             .reads_outputs = {"WarpCTCGrad"},
             .yields = {"Logits"},
             .apart = {"Logits"}})
      .GradKernel<Cpu, WarpCtcGradKernel, float, double>()
      .GradDef()
      .InferShape(InferWarpCtcGrad);
}

}  // namespace penstock
