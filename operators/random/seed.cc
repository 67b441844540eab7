// seed: a seed that several ops of a run share.
#include "framework/op/op_registry.h"
#include "operators/random/draws.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out holds attribute seed, or, if that is 0, a random number that is different in each run. Ops that take it as
their Seed draw the same numbers, as a dropout and its recomputation must.)";

class SeedKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    seed_ = k.Attr<std::int32_t>("seed");
    draws_.Prepare(k);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::int32_t seed = seed_;
    if (seed == 0) {
      draws_.Start();
      seed = static_cast<std::int32_t>(draws_.Word() >> 33) | 1;  // 0 would mean chance again
    }
    *k[out_].Data<std::int32_t>() = seed;
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  std::int32_t seed_ = 0;
  Draws draws_;
};

}  // namespace

void RegisterSeed(OpRegistry& ops) {
  ops.Add("seed")
      .Doc("A seed for several ops.", kDoc)
      .Output("Out", "one element", Only(DType::kInt32))
      .Attr("seed", 0, "the seed; 0: one of chance")
      .Affects({Effect::kRandom})
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, SeedKernel>()
      .NoGrad();
}

}  // namespace penstock
