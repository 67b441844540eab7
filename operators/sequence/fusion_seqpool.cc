// fusion_seqpool_concat, fusion_seqpool_cvm_concat: pool the sequences of several inputs and concatenate the
// rows.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"
#include "operators/sequence/recurrent.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[s] = (pool(rows of X[0]'s innermost sequence s), pool(those of X[1]), ...), concatenated

pool is the sum of the rows, divided by their number (pooltype AVERAGE), by its square root (SQRT), or not
divided (SUM). An empty sequence yields zeros. Each row of Out is a sequence. Inference programs use this op
in place of several sequence_pool and a concat, so it has no gradient.)";

constexpr char kCvmDoc[] = R"(
Like fusion_seqpool_concat, but each pooled row (show, click, ...) becomes

(log(show + 1), log(click + 1) - log(show + 1), ...)

as in cvm. CVM is not read. Inference programs use this op in place of several sequence_pool and cvm and a
concat, so it has no gradient.)";

Status InferPoolConcat(InferContext& c) {
  const int count = c.InputCount("X");
  const bool with_cvm = c.op().type() == "fusion_seqpool_cvm_concat";
  if (count == 0) return c.Error("X must have at least 1 argument");
  if (c.Attr<std::int32_t>("axis") != 1)
    return c.Error("axis (", c.Attr<std::int32_t>("axis"), ") must be 1");
  const Shape& first = c.ShapeOf("X");
  for (int i = 0; i < count; ++i) {
    const Shape& x = c.ShapeOf("X", i);
    if (x.rank() != 2 || !Compatible(x[1], first[1]))
      return c.Error("X[", i, "] (", x, ") must be a matrix as wide as X[0] (", first, ")");
    if (with_cvm && x[1] != kUnknownDim && x[1] < 2)
      return c.Error("X[", i, "] (", x, ") must have at least 2 columns");
  }
  if (with_cvm && !c.Attr<bool>("use_cvm")) return c.Error("use_cvm must be true");
  c.SetLodLevel("Out", 1);
  return c.SetShape("Out", {kUnknownDim, first[1] == kUnknownDim ? kUnknownDim : first[1] * count});
}

template <typename Device, typename T>
class PoolConcatKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const auto inputs = k.Inputs("X");
    xs_.resize(inputs.size());
    for (std::size_t i = 0; i < xs_.size(); ++i) xs_[i].Prepare(k, "X", static_cast<int>(i));
    pool_ = k.Attr<std::string>("pooltype");
    with_cvm_ = k.op().type() == "fusion_seqpool_cvm_concat";
    width_ = inputs[0].shape[1];
    return out_.Prepare(k, "Out", DTypeOfT<T>::kValue, {0, width_ * static_cast<Dim>(xs_.size())});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets first, xs_[0].Innermost(k));
    Tensor& made = out_.Make(k, first.count());
    T* out = made.Data<T>();
    lod_.Start(1);
    for (Dim s = 0; s < first.count(); ++s) lod_.Add(0, 1);
    lod_.Set(made);
    for (const SequenceInput& x : xs_) {
      PENSTOCK_ASSIGN_OR_RETURN(const Offsets sequences, x.Innermost(k));
      if (sequences.count() != first.count())
        return LodError(x.what(), " has ", sequences.count(), " sequences; X[0] has ", first.count());
      const T* const from = std::as_const(k[x.operand()]).template Data<T>();
      for (Dim s = 0; s < sequences.count(); ++s)
        Pool(from + sequences.begin(s) * width_, sequences.length(s), out + s * out_.width());
      out += width_;
    }
    return OkStatus();
  }

 private:
  void Pool(const T* rows, Dim count, T* out) const {
    SumRows(rows, count, width_, out);
    const T size = static_cast<T>(std::max<Dim>(count, 1));
    const T factor = pool_ == "AVERAGE" ? T{1} / size : pool_ == "SQRT" ? T{1} / std::sqrt(size) : T{1};
    for (Dim j = 0; j < width_; ++j) out[j] *= factor;
    if (!with_cvm_) return;
    out[0] = std::log(out[0] + T{1});
    out[1] = std::log(out[1] + T{1}) - out[0];
  }

  std::vector<SequenceInput> xs_;
  RowsOutput out_;
  MadeLod lod_;
  std::string pool_;
  bool with_cvm_ = false;
  Dim width_ = 0;
};

AttrCheck Pools() { return OneOf({"AVERAGE", "SUM", "SQRT"}); }

}  // namespace

void RegisterFusionSeqpool(OpRegistry& ops) {
  ops.Add("fusion_seqpool_concat")
      .Doc("Pools the sequences of several inputs and concatenates the rows.", kDoc)
      .Input("X", "rows in sequences, all of one width", Floats(), Repeated())
      .Output("Out", "[sequences, number of arguments * width]", SameTypeAs("X"), Apart())
      .Attr("pooltype", "SUM", "how the rows of a sequence are pooled", Pools())
      .Attr("axis", 1, "1: concatenate along the width")
      .InferShape(InferPoolConcat)
      .Kernel<Cpu, PoolConcatKernel, float, double>()
      .NoGrad();
  ops.Add("fusion_seqpool_cvm_concat")
      .Doc(
          "Pools the sequences of several inputs, takes logarithms of shows and clicks, and concatenates the "
          "rows.",
          kCvmDoc)
      .Input("X", "rows in sequences, all of one width of at least 2", Floats(), Repeated())
      .Input("CVM", "not read", SameTypeAs("X"))
      .Output("Out", "[sequences, number of arguments * width]", SameTypeAs("X"), Apart())
      .Attr("pooltype", "SUM", "how the rows of a sequence are pooled", Pools())
      .Attr("use_cvm", true, "must be true: shows and clicks are kept, as logarithms")
      .Attr("axis", 1, "1: concatenate along the width")
      .InferShape(InferPoolConcat)
      .Kernel<Cpu, PoolConcatKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
