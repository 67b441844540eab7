// uniform_random, gaussian_random, truncated_gaussian_random: tensors of random numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/philox.h"
#include "operators/common/shape_attr.h"
#include "operators/random/distributions.h"
#include "operators/random/random_fill.h"

namespace penstock {
namespace {

constexpr char kUniformDoc[] = R"(
Out has the shape in attribute shape and holds numbers of the uniform distribution over [min, max). If
diag_num > 0, element i * (diag_step + 1) is diag_val instead, for i < diag_num.)";

constexpr char kGaussianDoc[] = R"(
Out has attribute shape and holds numbers drawn from the normal distribution of that mean and standard
deviation.)";

constexpr char kTruncatedDoc[] = R"(
As gaussian_random, but a number more than 2 std away from the mean is drawn again.)";

class TruncatedGaussian : public Gaussian {
 public:
  std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) const {
    constexpr double kBound = 2.0;
    std::array<double, 4> four = FourNormals(PhiloxBlock(key, block));
    for (std::size_t i = 0; i < four.size(); ++i) {
      // Further draws for this place alone: one in 22 is needed.
      for (std::uint32_t attempt = 1; std::abs(four[i]) > kBound; ++attempt) {
        four[i] = FourNormals(PhiloxBlock(key, block, attempt))[i];
      }
      four[i] = mean_ + std_ * four[i];
    }
    return four;
  }
};

OpDef& Finish(OpDef& def) {
  return def.Output("Out", "the tensor", TypeFromAttr("dtype"), TensorOrRows())
      .Attr("seed", 0, "chooses the numbers; 0: a new seed at every run")
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "Out's element type, as Fluid numbers them")
      .KernelTypeFrom("Out")
      .Affects({Effect::kRandom})
      .NoGrad();
}

}  // namespace

void RegisterRandom(OpRegistry& ops) {
  Finish(WithShapeInputs(
             ops.Add("uniform_random")
                 .Doc("Random numbers, even over an interval.", std::string(kUniformDoc) + "\n" + kSeedDoc)))
      .Attr("shape", std::vector<std::int64_t>(), "Out's shape; -1 where it comes from tensors", AtLeast(-1))
      .Attr("min", -1.0f, "the least number")
      .Attr("max", 1.0f, "above all numbers")
      .Attr("diag_num", 0, "how many diagonal elements get diag_val", AtLeast(0))
      .Attr("diag_step", 0, "elements between two diagonal elements", AtLeast(0))
      .Attr("diag_val", 1.0f, "the diagonal's value")
      .InferShape(InferGivenShape)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, RandomFill<Uniform>::Fill, float, double>();
  Finish(WithShapeInputs(
             ops.Add("gaussian_random")
                 .Doc("Random numbers, normally distributed.", std::string(kGaussianDoc) + "\n" + kSeedDoc)))
      .Attr("shape", std::vector<std::int64_t>(), "Out's shape; -1 where it comes from tensors", AtLeast(-1))
      .Attr("mean", 0.0f, "the mean")
      .Attr("std", 1.0f, "the standard deviation", AtLeast(0))
      .Attr("use_mkldnn", false, kNoEffect)
      .InferShape(InferGivenShape)
      .KernelTypeFrom("Out")
      .Kernel<Cpu, RandomFill<Gaussian>::Fill, float, double>();
  Finish(ops.Add("truncated_gaussian_random")
             .Doc("Random numbers, normally distributed within two standard deviations.",
                  std::string(kTruncatedDoc) + "\n" + kSeedDoc))
      .RequiredAttr("shape", AttrKind::kInts, "Out's shape", AtLeast(0))
      .Attr("mean", 0.0f, "the mean")
      .Attr("std", 1.0f, "the standard deviation", AtLeast(0))
      .InferShape(InferShapeFromAttr<std::int32_t>)
      .Kernel<Cpu, RandomFill<TruncatedGaussian>::Fill, float, double>();
}

}  // namespace penstock
