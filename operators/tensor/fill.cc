// fill: a tensor whose elements are an attribute.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out has the shape in attribute shape and element type dtype; its elements are those of `value`, converted.
Integers beyond 2^24 are not exact, because the attribute holds floats.)";

// The shape of Out, after checking that it has as many elements as value.
Status InferFill(InferContext& c) {
  const auto extents = c.Attr<std::vector<std::int32_t>>("shape");
  const Shape shape(std::vector<Dim>(extents.begin(), extents.end()));
  const auto count = static_cast<Dim>(c.Attr<std::vector<float>>("value").size());
  if (shape.Count() != count) return c.Error("value holds ", count, " elements for a shape of ", shape);
  return c.SetShape("Out", shape);
}

template <typename Device, typename T>
class GivenValuesKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    for (const float value : k.Attr<std::vector<float>>("value")) {
      if constexpr (std::is_integral_v<T>) {
        // A conversion that does not fit is undefined.
        constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());
        if (!(value >= -kMost && value < kMost))
          return k.Error("value (", value, ") is not a valid ", DTypeName(k[out_].dtype));
      }
      values_.push_back(static_cast<T>(value));
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::copy(values_, k[out_].template Data<T>());
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  std::vector<T> values_;
};

}  // namespace

void RegisterFill(OpRegistry& ops) {
  ops.Add("fill")
      .Doc("A tensor of given elements.", kDoc)
      .Output("Out", "the tensor", TypeFromAttr("dtype"))
      .RequiredAttr("value", AttrKind::kFloats, "the elements in row-major order")
      .RequiredAttr("shape", AttrKind::kInts, "Out's shape", AtLeast(0))
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "the element type of Out, numbered as in Fluid")
      .Attr("force_cpu", false, kNoEffect)
      .InferShape(InferFill)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, GivenValuesKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
}

}  // namespace penstock
