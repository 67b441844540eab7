// ctc_align: removes blanks and repetitions from sequences of labels.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/token_sequences.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output is Input without repetitions of the previous element (if merge_repeated) and without blanks.

Sequences are given by LoD; if no element remains in any of them, Output is a single row of -1 without LoD.
With InputLength, sequences are rows of a padded matrix; Output is then padded with padding_value, and
OutputLength is the number of elements that remain in each row.)";

Status InferCtcAlign(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  const Shape& input = c.ShapeOf("Input");
  if (c.HasInput("InputLength")) {
    PENSTOCK_RETURN_IF_ERROR(c.SetShape("OutputLength", {input[0], 1}));
    return c.SetShape("Output", input);
  }
  if (!Compatible(input[1], 1)) return c.Error("a row of Input (", input, ") must have one element");
  c.SetLodLevel("Output", 1);
  return c.SetShape("Output", {kUnknownDim, 1});
}

template <typename Device, typename T>
class CtcAlignKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(input_.Prepare(k, "Input", "InputLength"));
    k.Bind(output_, length_);
    blank_ = k.Attr<std::int32_t>("blank");
    merge_ = k.Attr<bool>("merge_repeated");
    padding_ = static_cast<T>(k.Attr<std::int32_t>("padding_value"));
    return rows_.Prepare(k, "Output", k.Input("Input").dtype, {0, 1});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(input_.Find(k));
    const T* const input = std::as_const(k[input_.operand()]).template Data<T>();
    return input_.padded() ? RunPadded(k, input) : RunSequences(k, input);
  }

 private:
  // Writes the remaining elements of a sequence, if `to` is not null, and returns their number.
  Dim Align(const T* from, Dim length, T* to) const {
    Dim left = 0;
    for (Dim i = 0; i < length; ++i) {
      if (from[i] == static_cast<T>(blank_) || (merge_ && i > 0 && from[i] == from[i - 1])) continue;
      if (to != nullptr) to[left] = from[i];
      ++left;
    }
    return left;
  }

  Status RunPadded(KernelRun& k, const T* input) {
    T* const output = k[output_].template Data<T>();
    for (Dim s = 0; s < input_.count(); ++s) {
      T* const row = output + s * input_.padded_length();
      const Dim left = Align(input + input_.begin(s), input_.length(s), row);
      std::fill(row + left, row + input_.padded_length(), padding_);
      if (length_) k[length_].template Data<std::int64_t>()[s] = left;
    }
    return OkStatus();
  }

  Status RunSequences(KernelRun& k, const T* input) {
    lod_.Start(1);
    Dim rows = 0;
    for (Dim s = 0; s < input_.count(); ++s) {
      const Dim left = Align(input + input_.begin(s), input_.length(s), nullptr);
      lod_.Add(0, left);
      rows += left;
    }
    Tensor& out = rows_.Make(k, std::max<Dim>(rows, 1));
    T* to = out.Data<T>();
    if (rows == 0) {
      *to = T{-1};
      return OkStatus();
    }
    for (Dim s = 0; s < input_.count(); ++s) to += Align(input + input_.begin(s), input_.length(s), to);
    lod_.Set(out);
    return OkStatus();
  }

  TokenSequences input_;
  Out<"Output"> output_;
  Out<"OutputLength"> length_;
  RowsOutput rows_;
  MadeLod lod_;
  std::int32_t blank_ = 0;
  bool merge_ = true;
  T padding_ = 0;
};

}  // namespace

void RegisterCtcAlign(OpRegistry& ops) {
  ops.Add("ctc_align")
      .Doc("Removes blanks and repetitions from sequences of labels.", kDoc)
      .Input("Input", "labels in sequences, or a padded matrix of labels", Integers())
      .Input("InputLength", "the lengths of padded sequences", Integers(), Optional())
      .Output("Output", "the remaining labels of each sequence", SameTypeAs("Input"), Apart())
      .Output("OutputLength", "the number of remaining labels of each padded sequence", Only(DType::kInt64),
              Optional())
      .Attr("blank", 0, "the blank label")
      .Attr("merge_repeated", true, "whether adjacent equal labels are merged")
      .Attr("padding_value", 0, "the padding of Output")
      .InferShape(InferCtcAlign)
      .Kernel<Cpu, CtcAlignKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
