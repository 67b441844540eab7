// c_share_of_elements: which part of all ranks' elements this rank has in a step.
#include "framework/op/op_registry.h"
#include "operators/common/ring.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = (elements of X, or 0 where Live is 0) / (those of all ranks of ring `ring_id`), and 0 where nobody has
any. The mean over all ranks' elements is the sum of the ranks' means, each times its share: so ranks train
with batches of different sizes, and one that has no more batches takes part with share 0. Ranks exchange one
integer; the op waits for them.)";

template <typename Device, typename T>
class ShareKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    live_ = k.Input("Live");
    out_ = k.Output("Out");
    return ring_.Prepare(k, RingUse::Order::kInPlace);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
    const bool live = !live_ || *k[live_].template Data<float>() != 0.0f;
    const std::int64_t own = live ? k[x_].count() : 0;
    std::int64_t all = own;
    PENSTOCK_RETURN_IF_ERROR(ring_.Wait(group->AllReduce(
        {reinterpret_cast<std::byte*>(&all), 1, ElementType::kInt64}, Reduction::kSum, ring_.options())));
    *k[out_].template Data<T>() =
        all == 0 ? T{0} : static_cast<T>(static_cast<double>(own) / static_cast<double>(all));
    return OkStatus();
  }

 private:
  RingUse ring_;
  Operand x_, live_, out_;
};

Status InferShare(InferContext& c) {
  if (c.HasInput("Live") && !Compatible(c.ShapeOf("Live").Count(), 1))
    return c.Error("Live (", c.ShapeOf("Live"), ") must hold one element");
  return c.SetShape("Out", {1});
}

}  // namespace

void RegisterShare(OpRegistry& ops) {
  ops.Add("c_share_of_elements")
      .Doc("Which part of all ranks' elements this rank has.", kDoc)
      .Input("X", "what is counted; any shape", Floats())
      .Input("Live", "0: this rank's elements do not count; one element", Only(DType::kFp32), Optional())
      .Output("Out", "from 0 to 1; one element", SameTypeAs("X"))
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .InferShape(InferShare)
      .SideEffect()
      .Kernel<Cpu, ShareKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
