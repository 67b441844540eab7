// ref_by_trainer_id: selects one of several variables by the id of the trainer whose gradient is being
// applied.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X[n], where n is the one element of TrainerId.)";

// Which of X it is shows only in Run: Out has the extents that all of them have.
Status InferRef(InferContext& c) {
  if (!Compatible(c.ShapeOf("TrainerId").Count(), 1))
    return c.Error("TrainerId (", c.ShapeOf("TrainerId"), ") must hold one element");
  Shape out = c.ShapeOf("X");
  for (int i = 1; i < c.InputCount("X"); ++i) {
    const Shape& next = c.ShapeOf("X", i);
    if (next.rank() != out.rank())
      return c.Error("rank of X[", i, "] (", next.rank(), ") must equal that of X[0] (", out.rank(), ")");
    for (int d = 0; d < out.rank(); ++d) {
      if (out[d] != next[d]) out.Set(d, kUnknownDim);
    }
  }
  return c.SetShape("Out", out);
}

class RefByTrainerIdKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
    k.Bind(out_);
    id_ = k.Input("TrainerId");
    type_ = k.op().type();
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::int64_t id = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadInteger(type_, k, id_, 0, id));
    if (id < 0 || id >= static_cast<std::int64_t>(x_.size())) {
      return InvalidArgument("E-op-index", type_, ": TrainerId holds ", id, "; there are ", x_.size(),
                             " variables in X");
    }
    const Operand x = x_[static_cast<std::size_t>(id)];
    if (x.index == out_.index) return OkStatus();
    MakeShaped(k[out_], k[x].dtype(), k[x].shape());
    if (k[x].bytes() > 0) k[out_].CopyFrom(k[x]);
    return OkStatus();
  }

 private:
  std::string type_;
  std::vector<Operand> x_;
  NamedOperand id_;
  Out<"Out"> out_;
};

}  // namespace

void RegisterRefByTrainerId(OpRegistry& ops) {
  ops.Add("ref_by_trainer_id")
      .Doc("The variable of one trainer.", kDoc)
      .Input("X", "one variable a trainer", AnyType(), Repeated())
      .Input("TrainerId", "one element: which", Integers())
      .Output("Out", "that one", SameTypeAs("X"))
      .InferShape(InferRef)
      .KernelForAnyType<Cpu, RefByTrainerIdKernel>()
      .NoGrad()
      .Elementwise();
}

}  // namespace penstock
