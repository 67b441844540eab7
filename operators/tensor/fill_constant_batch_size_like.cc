// fill_constant_batch_size_like: one value everywhere, with one extent taken from another tensor.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/tensor/fill_value.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out has attribute shape, but for extent output_dim_idx, which is Input's extent input_dim_idx (the number of
its sequences on the innermost level, if it has any and that is extent 0; then Out's shape is known when the
op runs). Its element type is dtype, and it holds value everywhere, or str_value if that is not empty.)";

Status InferFill(InferContext& c) {
  Shape shape;
  for (const std::int32_t extent : c.Attr<std::vector<std::int32_t>>("shape")) shape.Append(extent);
  const int from = c.Attr<int>("input_dim_idx"), to = c.Attr<int>("output_dim_idx");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", from));
  if (to >= shape.rank()) {
    return c.Error("output_dim_idx (", to, ") must be within the rank of shape ", shape);
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != to && shape[i] < 0) return c.Error("shape ", shape, " must say every extent but the batch's");
  }
  const bool counts_sequences = from == 0 && c.Input("Input").lod_level > 0;
  shape.Set(to, counts_sequences ? kUnknownDim : c.ShapeOf("Input")[from]);
  return c.SetShape("Out", shape);
}

template <typename Device, typename T>
class FillKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_.Prepare(k, "Input");
    out_ = k.Output("Out");
    shape_ = out_.shape;
    counts_sequences_ = !shape_.IsKnown();
    to_ = k.Attr<int>("output_dim_idx");
    return ReadFillValue(k, value_);
  }
  Status Run(KernelRun& k) override {
    if (counts_sequences_) {
      PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, input_.Levels(k, 0));
      shape_.Set(to_, lod->empty() ? k[input_.operand()].shape()[0] : Offsets(lod->back()).count());
      MakeShaped(k[out_], out_.dtype, shape_);
    }
    std::ranges::fill(k[out_].template Span<T>(), value_);
    return OkStatus();
  }

 private:
  SequenceInput input_;
  Operand out_;
  Shape shape_;
  int to_ = 0;
  bool counts_sequences_ = false;
  T value_{};
};

}  // namespace

void RegisterFillConstantBatchSizeLike(OpRegistry& ops) {
  ops.Add("fill_constant_batch_size_like")
      .Doc("One value, with another tensor's batch size.", kDoc)
      .Input("Input", "gives one extent", AnyType())
      .Output("Out", "the tensor", TypeFromAttr("dtype"))
      .RequiredAttr("shape", AttrKind::kInts, "Out's shape; the extent that Input gives may be anything")
      .Attr("input_dim_idx", 0, "the extent of Input", AtLeast(0))
      .Attr("output_dim_idx", 0, "the extent of Out that it gives", AtLeast(0))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "Out's element type, as Fluid numbers them")
      .Attr("value", 0.0f, "the value")
      .Attr("str_value", "", "the value as text; used instead of `value` if it is not empty")
      .Attr("force_cpu", false, kNoEffect)
      .InferShape(InferFill)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, FillKernel, float, double, std::int32_t, std::int64_t, bool>()
      .NoGrad();
}

}  // namespace penstock
