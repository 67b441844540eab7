// sequence_erase, sequence_enumerate: remove tokens from sequences, or list their windows.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kEraseDoc[] = R"(
Out is X without the elements listed in `tokens`; the innermost sequences become shorter accordingly.)";

constexpr char kEnumerateDoc[] = R"(
Out[i, j] = X[i + j] for j < win_size; pad_value where i + j is beyond the end of the sequence of i)";

Status RequireOneColumn(const InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  if (x.rank() == 2 && Compatible(x[1], 1)) return OkStatus();
  return c.Error("X (", x, ") must have rank 2 and rows of one element");
}

Status InferSequenceErase(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireOneColumn(c));
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return c.SetShape("Out", {kUnknownDim, 1});
}

Status InferSequenceEnumerate(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireOneColumn(c));
  c.ShareLod("X", "Out");
  return c.SetShape("Out", {c.ShapeOf("X")[0], c.Attr<std::int32_t>("win_size")});
}

template <typename Device, typename T>
class SequenceEraseKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    tokens_ = k.Attr<std::vector<std::int32_t>>("tokens");
    std::ranges::sort(tokens_);
    return out_.Prepare(k, "Out", k.Input("X").dtype, {0, 1});
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, x_.Levels(k, 1));
    const Offsets x(lod->back());
    const T* const from = k[x_.operand()].template Data<T>();
    const std::size_t inner = lod->size() - 1;
    lod_.Start(lod->size());
    for (std::size_t l = 0; l < inner; ++l) lod_.CopyLevel(l, (*lod)[l]);
    Dim rows = 0;
    for (Dim s = 0; s < x.count(); ++s) {
      const Dim kept = std::count_if(from + x.begin(s), from + x.end(s), [this](T one) { return Kept(one); });
      lod_.Add(inner, kept);
      rows += kept;
    }
    Tensor& out = out_.Make(k, rows);
    lod_.Set(out);
    std::copy_if(from, from + x.total(), out.Data<T>(), [this](T one) { return Kept(one); });
    return OkStatus();
  }

 private:
  bool Kept(T token) const { return !std::binary_search(tokens_.begin(), tokens_.end(), token); }

  SequenceInput x_;
  RowsOutput out_;
  MadeLod lod_;
  std::vector<std::int32_t> tokens_;
};

template <typename Device, typename T>
class SequenceEnumerateKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(out_);
    window_ = k.Attr<std::int32_t>("win_size");
    pad_ = static_cast<T>(k.Attr<std::int32_t>("pad_value"));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));
    const T* const from = k[x_.operand()].template Data<T>();
    T* to = k[out_].template Data<T>();
    for (Dim s = 0; s < x.count(); ++s) {
      for (Dim i = x.begin(s); i < x.end(s); ++i) {
        const Dim real = std::min(window_, x.end(s) - i);
        to = std::copy_n(from + i, real, to);
        to = std::fill_n(to, window_ - real, pad_);
      }
    }
    return OkStatus();
  }

 private:
  SequenceInput x_;
  Out<"Out"> out_;
  Dim window_ = 1;
  T pad_ = 0;
};

}  // namespace

void RegisterSequenceErase(OpRegistry& ops) {
  ops.Add("sequence_erase")
      .Doc("Removes the given tokens from sequences.", kEraseDoc)
      .Input("X", "one token per row, in sequences", Integers())
      .Output("Out", "the remaining tokens", SameTypeAs("X"))
      .RequiredAttr("tokens", AttrKind::kInts, "the tokens to remove")
      .InferShape(InferSequenceErase)
      .Kernel<Cpu, SequenceEraseKernel, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("sequence_enumerate")
      .Doc("Lists the window of tokens that begins at each token.", kEnumerateDoc)
      .Input("X", "one token per row, in sequences", Integers())
      .Output("Out", "one window per row", SameTypeAs("X"), Apart())
      .RequiredAttr("win_size", AttrKind::kInt, "the number of tokens per window", AtLeast(2))
      .Attr("pad_value", 0, "the value beyond the end of a sequence")
      .Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", true, kNoEffect)
      .InferShape(InferSequenceEnumerate)
      .Kernel<Cpu, SequenceEnumerateKernel, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
