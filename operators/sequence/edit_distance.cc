// edit_distance: the number of insertions, deletions and replacements that turn one sequence into another.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/sequence/token_sequences.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[s] is the smallest number of insertions, deletions and replacements that turn sequence s of Hyps into
sequence s of Refs.

With `normalized` it is divided by the length of the reference, which must then not be empty. SequenceNum is
the number of sequences. Sequences are given by LoD or, with HypsLength and RefsLength, are rows of padded
matrices.)";

Status InferEditDistance(InferContext& c) {
  const Shape& hyps = c.ShapeOf("Hyps");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Hyps", 0));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Refs", 0));
  if (c.HasInput("HypsLength") != c.HasInput("RefsLength"))
    return c.Error("HypsLength and RefsLength must be given both or neither");
  if (c.HasInput("HypsLength") && !Compatible(hyps[0], c.ShapeOf("Refs")[0]))
    return c.Error("Refs (", c.ShapeOf("Refs"), ") must have the ", hyps[0], " sequences of Hyps");
  const Dim sequences = c.HasInput("HypsLength") ? hyps[0] : kUnknownDim;
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SequenceNum", {1}));
  return c.SetShape("Out", {sequences, 1});
}

template <typename Device, typename T>
class EditDistanceKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    what_ = k.op().type();
    normalized_ = k.Attr<bool>("normalized");
    k.Bind(count_);
    PENSTOCK_RETURN_IF_ERROR(hyps_.Prepare(k, "Hyps", "HypsLength"));
    PENSTOCK_RETURN_IF_ERROR(refs_.Prepare(k, "Refs", "RefsLength"));
    return out_.Prepare(k, "Out", DType::kFp32, {0, 1});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(hyps_.Find(k));
    PENSTOCK_RETURN_IF_ERROR(refs_.Find(k));
    if (hyps_.count() != refs_.count())
      return LodError(what_, ": Hyps has ", hyps_.count(), " sequences, Refs has ", refs_.count());
    float* const out = out_.Make(k, hyps_.count()).Data<float>();
    const T* const hyps = std::as_const(k[hyps_.operand()]).template Data<T>();
    const T* const refs = std::as_const(k[refs_.operand()]).template Data<T>();
    for (Dim s = 0; s < hyps_.count(); ++s) {
      const Dim length = refs_.length(s);
      if (normalized_ && length == 0)
        return InvalidArgument("E-op-value", what_, ": reference ", s,
                               " is empty, so the distance cannot be divided by its length");
      const Dim distance = Distance(hyps + hyps_.begin(s), hyps_.length(s), refs + refs_.begin(s), length);
      out[s] = normalized_ ? static_cast<float>(distance) / static_cast<float>(length)
                           : static_cast<float>(distance);
    }
    if (count_) *k[count_].template Data<std::int64_t>() = hyps_.count();
    return OkStatus();
  }

 private:
  // line_[j] is the distance between the part of `a` seen so far and the first j elements of `b`.
  Dim Distance(const T* a, Dim a_length, const T* b, Dim b_length) {
    line_.resize(static_cast<std::size_t>(b_length) + 1);
    std::iota(line_.begin(), line_.end(), Dim{0});
    for (Dim i = 0; i < a_length; ++i) {
      Dim diagonal = line_[0];  // of the previous line
      line_[0] = i + 1;
      for (std::size_t j = 1; j < line_.size(); ++j) {
        const Dim replaced = diagonal + (a[i] == b[j - 1] ? 0 : 1);
        diagonal = line_[j];
        line_[j] = std::min({replaced, line_[j] + 1, line_[j - 1] + 1});
      }
    }
    return line_.back();
  }

  TokenSequences hyps_, refs_;
  RowsOutput out_;
  Out<"SequenceNum"> count_;
  std::string what_;
  bool normalized_ = false;
  std::vector<Dim> line_;
};

}  // namespace

void RegisterEditDistance(OpRegistry& ops) {
  ops.Add("edit_distance")
      .Doc("The edit distance between sequences of tokens.", kDoc)
      .Input("Hyps", "tokens in sequences", Integers())
      .Input("Refs", "the references", SameTypeAs("Hyps"))
      .Input("HypsLength", "the lengths of padded sequences", Only(DType::kInt64), Optional())
      .Input("RefsLength", "the lengths of padded references", Only(DType::kInt64), Optional())
      .Output("SequenceNum", "the number of sequences", Only(DType::kInt64), Optional())
      .Output("Out", "the distances, [sequences, 1]", Only(DType::kFp32))
      .Attr("normalized", false, "whether the distance is divided by the length of the reference")
      .InferShape(InferEditDistance)
      .Kernel<Cpu, EditDistanceKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
