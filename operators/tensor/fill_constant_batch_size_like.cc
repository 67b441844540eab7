// fill_constant_batch_size_like: a tensor filled with one value, with one dimension taken from another
// tensor.
#include <algorithm>

#include "framework/op/op_registry.h"
#include "operators/common/batch_size_like.h"
#include "operators/common/fluid_attrs.h"
#include "operators/tensor/fill_value.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out has the shape in attribute shape, except that dimension output_dim_idx is dimension input_dim_idx of
Input. If Input has LoD and input_dim_idx is 0, it is the number of sequences of Input's innermost level
instead, and the shape of Out is known only when the op runs. The element type is dtype. Every element is
str_value if that is not empty, otherwise value.)";

template <typename Device, typename T>
class FillKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    shape_.Prepare(k);
    return ReadFillValue(k, value_);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(shape_.Make(k));
    std::ranges::fill(k[out_].template Span<T>(), value_);
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  BatchSizeLike shape_;
  T value_{};
};

}  // namespace

void RegisterFillConstantBatchSizeLike(OpRegistry& ops) {
  WithBatchSize(ops.Add("fill_constant_batch_size_like")
                    .Doc("A tensor filled with one value, with the batch size of another tensor.", kDoc))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid")
      .Attr("value", 0.0f, "the value")
      .Attr("str_value", "", "the value as text; replaces `value` if it is not empty")
      .Attr("force_cpu", false, kNoEffect)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, FillKernel, float, double, std::int32_t, std::int64_t, bool>()
      .NoGrad();
}

}  // namespace penstock
