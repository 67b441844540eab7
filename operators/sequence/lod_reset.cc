// lod_reset: the same rows with another LoD.
#include <cstring>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/copy.h"
#include "operators/common/lod.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is X with another LoD: the LoD of Y; if Y has none, one level with the offsets that Y holds; without Y,
one level with the offsets in target_lod.

The last offset must be the number of rows. With `append`, X keeps its levels, and the new level is added
below them: its offsets divide the rows into sequences, and the innermost level of X, which divided rows
before, must end at the number of sequences of the new level. The gradient has the LoD of X.)";

Status InferLodReset(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  const bool append = c.Attr<bool>("append");
  if (c.HasInput("Y")) {
    c.SetLodLevel("Out", (append ? c.Input("X").lod_level : 0) + std::max(c.Input("Y").lod_level, 1));
  } else if (c.Attr<std::vector<std::int32_t>>("target_lod").empty()) {
    return c.Error("target_lod must not be empty if Y is not given");
  } else {
    c.SetLodLevel("Out", append ? c.Input("X").lod_level + 1 : 1);
  }
  return OkStatus();
}

class LodResetKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    append_ = k.Attr<bool>("append");
    target_ = k.Attr<std::vector<std::int32_t>>("target_lod");
    what_ = StrCat(k.op().type(), ": Out");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor& x = k[x_];
    PENSTOCK_RETURN_IF_ERROR(MakeLevels(k, x));
    PENSTOCK_RETURN_IF_ERROR(CheckLod(what_, lod_, x.shape().rank() == 0 ? 0 : x.shape()[0], 1));
    Tensor& out = k[out_];
    if (out.raw() != x.raw() && x.bytes() > 0) std::memcpy(out.raw(), x.raw(), x.bytes());
    made_.Set(out, lod_);
    return OkStatus();
  }

 private:
  Status MakeLevels(KernelRun& k, const Tensor& x) {
    const LoD& kept = x.lod();
    const std::size_t above = append_ ? kept.size() : 0;
    const LoD* const given = y_ && !k[y_].lod().empty() ? &k[y_].lod() : nullptr;
    lod_.resize(above + (given == nullptr ? 1 : given->size()));
    for (std::size_t l = 0; l < above; ++l) lod_[l] = kept[l];
    if (given != nullptr) {
      for (std::size_t l = 0; l < given->size(); ++l) lod_[above + l] = (*given)[l];
      return OkStatus();
    }
    if (!y_) return SetOffsets(std::span<const std::int32_t>(target_), lod_.back());
    const Tensor& y = k[y_];
    if (y.dtype() == DType::kInt32) return SetOffsets(y.Span<std::int32_t>(), lod_.back());
    if (y.dtype() == DType::kInt64) return SetOffsets(y.Span<std::int64_t>(), lod_.back());
    return LodError(what_, ": Y has no level of sequences, so it must hold offsets, as i32 or i64, not ",
                    DTypeName(y.dtype()));
  }

  template <typename T>
  Status SetOffsets(std::span<const T> from, LoDLevel& level) const {
    level.clear();
    for (const T offset : from) {
      if (offset < 0) return LodError(what_, ": offset ", offset, " must not be negative");
      level.push_back(static_cast<std::uint64_t>(offset));
    }
    return OkStatus();
  }

  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  bool append_ = false;
  std::vector<std::int32_t> target_;
  std::string what_;
  LoD lod_;
  MadeLod made_;
};

}  // namespace

void RegisterLodReset(OpRegistry& ops) {
  OpDef& def = ops.Add("lod_reset");
  def.Doc("Replaces the LoD of rows.", kDoc)
      .Input("X", "rows", AnyType())
      .Input("Y", "provides the LoD, or holds the offsets", AnyType(), Optional())
      .Output("Out", "X with the new LoD", SameTypeAs("X"))
      .Attr("target_lod", std::vector<std::int32_t>(),
            "the offsets of one level, from 0 to the number of rows")
      .Attr("append", false, "whether X keeps its levels, above the new one")
      .InferShape(InferLodReset)
      .KernelForAnyType<Cpu, LodResetKernel>()
      .Grad({.reads = {"X"}, .yields = {"X"}});
  def.GradDef().KernelForAnyType<Cpu, CopyGradKernel>();
}

}  // namespace penstock
