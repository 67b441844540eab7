// reduce_all, reduce_any: logical reductions over some axes.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/math/reduce_walk.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The dimensions in `dim` (negative values count from the end) are removed, or become 1 with keep_dim. With
reduce_all, all dimensions are reduced, and the result has shape [1].)";

struct All {
  static constexpr bool kStart = true;
  static bool Step(bool so_far, bool x) { return so_far && x; }
};
struct Any {
  static constexpr bool kStart = false;
  static bool Step(bool so_far, bool x) { return so_far || x; }
};

template <typename Math>
class ReduceTruthKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return walk_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const bool* const x = k[x_].Data<bool>();
    bool* const out = k[out_].Data<bool>();
    std::fill_n(out, walk_.outputs(), Math::kStart);
    walk_.ForEach([&](Dim i, Dim o) { out[o] = Math::Step(out[o], x[i]); });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  ReduceWalk walk_;
};

template <typename Math>
void AddReduction(OpRegistry& ops, const std::string& type, std::string summary, const std::string& formula) {
  ops.Add(type)
      .Doc(std::move(summary), formula + "\n" + kDoc)
      .Input("X", "any shape", Only(DType::kBool))
      .Output("Out", "the result of the reduction", SameTypeAs("X"), Apart())
      .Attr("dim", std::vector<std::int32_t>{0}, "the dimensions to reduce")
      .Attr("keep_dim", false, "whether the dimensions become 1 instead of being removed")
      .Attr("reduce_all", false, "whether to reduce all dimensions and ignore `dim`")
      .Attr("in_dtype", -1, "used by other reductions of Fluid; kept with the op, has no effect here")
      .Attr("out_dtype", -1, "used by other reductions of Fluid; kept with the op, has no effect here")
      .InferShape(InferReducedShape)
      .template KernelForAnyType<Cpu, ReduceTruthKernel<Math>>()
      .NoGrad();
}

}  // namespace

void RegisterReduceTruth(OpRegistry& ops) {
  AddReduction<All>(ops, "reduce_all", "The logical and over the given dimensions.",
                    "Out = X and X and ... over `dim`");
  AddReduction<Any>(ops, "reduce_any", "The logical or over the given dimensions.",
                    "Out = X or X or ... over `dim`");
}

}  // namespace penstock
