// is_empty: whether a tensor has no elements.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is true if X has no elements.)";

class IsEmptyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    *k[out_].Data<bool>() = k[x_].count() == 0;
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

}  // namespace

void RegisterIsEmpty(OpRegistry& ops) {
  ops.Add("is_empty")
      .Doc("Whether a tensor has no elements.", kDoc)
      .Input("X", "any dense tensor", AnyType())
      .Output("Out", "one boolean", Only(DType::kBool))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, IsEmptyKernel>()
      .NoGrad();
}

}  // namespace penstock
