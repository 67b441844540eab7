// shape, size: the shape of a tensor and its number of elements, as tensors.
#include <limits>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kShapeDoc[] = R"(
Out[i] is dimension i of Input when the op runs.)";

constexpr char kSizeDoc[] = R"(
Out holds the number of elements of Input when the op runs.)";

Status InferShapeOp(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", 0));
  return c.SetShape("Out", {c.ShapeOf("Input").rank()});
}

class ShapeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, out_);
    for (int i = 0; i < k[input_].shape.rank(); ++i) {
      if (k[input_].shape[i] > std::numeric_limits<std::int32_t>::max())
        return k.Error("extent ", i, " of Input (", k[input_].shape, ") does not fit 32 bits");
    }
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::int32_t* const out = k[out_].Data<std::int32_t>();
    for (int i = 0; i < k[input_].shape().rank(); ++i)
      out[i] = static_cast<std::int32_t>(k[input_].shape()[i]);
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  Out<"Out"> out_;
};

class SizeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    *k[out_].Data<std::int64_t>() = k[input_].shape().Count();
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  Out<"Out"> out_;
};

}  // namespace

void RegisterShape(OpRegistry& ops) {
  ops.Add("shape")
      .Doc("The shape of a tensor.", kShapeDoc)
      .Input("Input", "of rank 1 or more", AnyType())
      .Output("Out", "one element for each dimension of Input", Only(DType::kInt32))
      .InferShape(InferShapeOp)
      .KernelForAnyType<Cpu, ShapeKernel>()
      .NoGrad();
  ops.Add("size")
      .Doc("The number of elements of a tensor.", kSizeDoc)
      .Input("Input", "any shape", AnyType())
      .Output("Out", "[1]", Only(DType::kInt64))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, SizeKernel>()
      .NoGrad();
}

}  // namespace penstock
