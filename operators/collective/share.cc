// c_share_of_elements: this rank's share of the elements of all ranks in a step.
#include "framework/op/op_registry.h"
#include "framework/runtime/uneven_steps.h"
#include "operators/common/ring.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = scale * (number of elements of X, or 0 if Live is 0) / (the sum of these numbers over all ranks of ring
`ring_id`), and 0 if that sum is 0. With Count, Count is the number instead, for instance of several steps.
The mean over all ranks' elements is the sum of the ranks' means, each times its share. Ranks can therefore
train with batches of different sizes, and a rank without further batches takes part with share 0. Ranks
exchange one integer; the op waits for them.)";

template <typename Device, typename T>
class ShareKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, live_, count_, out_);
    scale_ = static_cast<double>(k.Attr<float>("scale"));
    return ring_.Prepare(k, RingUse::Order::kInPlace);
  }

  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, ring_.Open());
    const bool live = !live_ || *k[live_].template Data<float>() != 0.0f;
    const std::int64_t counted = count_ ? *k[count_].template Data<std::int64_t>() : k[x_].count();
    const std::int64_t own = live ? counted : 0;
    std::int64_t all = own;
    PENSTOCK_RETURN_IF_ERROR(ring_.Wait(group->AllReduce(
        {reinterpret_cast<std::byte*>(&all), 1, ElementType::kInt64}, Reduction::kSum, ring_.options())));
    *k[out_].template Data<T>() = static_cast<T>(scale_ * ShareOfExamples(own, all));
    return OkStatus();
  }

 private:
  RingUse ring_;
  In<"X"> x_;
  In<"Live"> live_;
  In<"Count"> count_;
  Out<"Out"> out_;
  double scale_ = 1;
};

Status InferShare(InferContext& c) {
  for (const char* slot : {"Live", "Count"}) {
    if (c.HasInput(slot) && !Compatible(c.ShapeOf(slot).Count(), 1))
      return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
  }
  return c.SetShape("Out", {1});
}

}  // namespace

void RegisterShare(OpRegistry& ops) {
  ops.Add("c_share_of_elements")
      .Doc("Which part of all ranks' elements this rank has.", kDoc)
      .Input("X", "what is counted, and the type of Out; any shape", Floats())
      .Input("Live", "0: this rank's elements do not count; one element", Only(DType::kFp32), Optional())
      .Input("Count", "in place of the number of X's elements; one element", Only(DType::kInt64), Optional())
      .Output("Out", "from 0 to `scale`; one element", SameTypeAs("X"))
      .Attr("scale", 1.0f, "what the share is multiplied by")
      .Attr("ring_id", 0, "which communicator", AtLeast(0))
      .InferShape(InferShare)
      .Affects({Effect::kRing})
      .Kernel<Cpu, ShareKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
