// shape, is_empty: what is known of a tensor without reading it.
#include <limits>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kShapeDoc[] = R"(
Out[i] is extent i of Input, as it is when the op runs.)";

constexpr char kEmptyDoc[] = R"(
Out[0] says whether X has no elements.)";

Status InferShapeOp(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Input", 0));
  return c.SetShape("Out", {c.ShapeOf("Input").rank()});
}

Status RequireDense(const KernelSetup& k, const Operand& operand) {
  if (operand.kind == VarKind::kTensor) return OkStatus();
  return Unimplemented("E-op-rows", k.op().type(), ": ", operand.name, " must be a dense tensor");
}

class ShapeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    input_ = k.Input("Input");
    out_ = k.Output("Out");
    for (int i = 0; i < input_.shape.rank(); ++i) {
      if (input_.shape[i] > std::numeric_limits<std::int32_t>::max())
        return k.Error("extent ", i, " of Input (", input_.shape, ") does not fit 32 bits");
    }
    return RequireDense(k, input_);
  }
  Status Run(KernelRun& k) override {
    std::int32_t* const out = k[out_].Data<std::int32_t>();
    for (int i = 0; i < input_.shape.rank(); ++i) out[i] = static_cast<std::int32_t>(input_.shape[i]);
    return OkStatus();
  }

 private:
  Operand input_, out_;
};

class IsEmptyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    return RequireDense(k, x_);
  }
  Status Run(KernelRun& k) override {
    *k[out_].Data<bool>() = k[x_].count() == 0;
    return OkStatus();
  }

 private:
  Operand x_, out_;
};

}  // namespace

void RegisterShape(OpRegistry& ops) {
  ops.Add("shape")
      .Doc("The extents of a tensor.", kShapeDoc)
      .Input("Input", "rank 1 or more", AnyType())
      .Output("Out", "as many elements as Input has extents", Only(DType::kInt32))
      .InferShape(InferShapeOp)
      .KernelForAnyType<Cpu, ShapeKernel>()
      .NoGrad();
  ops.Add("is_empty")
      .Doc("Whether a tensor has no elements.", kEmptyDoc)
      .Input("X", "any shape", AnyType())
      .Output("Out", "one truth value", Only(DType::kBool))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, IsEmptyKernel>()
      .NoGrad();
}

}  // namespace penstock
