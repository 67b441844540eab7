// uniform_random, gaussian_random, truncated_gaussian_random: tensors of random numbers.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/philox.h"
#include "operators/common/shape_attr.h"
#include "operators/random/random_fill.h"

namespace penstock {
namespace {

constexpr char kSeedDoc[] = R"(
Element i depends on seed and i only, and, if Out is persistable, on the op's place among the ops of the block
that draw random numbers: not on the shape, the slice, names or the number of threads. An Out of selected rows
lists none of them; of a table that is dealt out, each row has these values from its first use on. Seed 0
takes a new seed from the process at every run. The numbers are not those that Fluid draws from the same
seed.)";

constexpr char kUniformDoc[] = R"(
Out has attribute shape and holds numbers drawn evenly from [min, max). If diag_num > 0, element i *
(diag_step + 1) is diag_val instead, for i < diag_num.)";

constexpr char kGaussianDoc[] = R"(
Out has attribute shape and holds numbers drawn from the normal distribution of that mean and standard
deviation.)";

constexpr char kTruncatedDoc[] = R"(
As gaussian_random, but a number further than 2 std from the mean is drawn again.)";

// In [0, 1), with 24 bits, so that a float holds it exactly and never becomes 1.
double Unit(std::uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

// Two normal numbers from two words (Box and Muller, 1958).
void NormalPair(std::uint32_t a, std::uint32_t b, double* out) {
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(b) * 0x1p-32;
  out[0] = radius * std::cos(angle);
  out[1] = radius * std::sin(angle);
}

std::array<double, 4> FourNormals(const PhiloxWords& words) {
  std::array<double, 4> normals;
  NormalPair(words[0], words[1], normals.data());
  NormalPair(words[2], words[3], normals.data() + 2);
  return normals;
}

class Uniform {
 public:
  Status Read(const KernelSetup& k) {
    min_ = k.Attr<float>("min");
    span_ = static_cast<double>(k.Attr<float>("max")) - min_;
    diagonal_count_ = k.Attr<std::int32_t>("diag_num");
    diagonal_step_ = k.Attr<std::int32_t>("diag_step");
    diagonal_value_ = k.Attr<float>("diag_val");
    if (span_ < 0)
      return k.Error("min (", k.Attr<float>("min"), ") must be at most max (", k.Attr<float>("max"), ")");
    return OkStatus();
  }
  std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) const {
    const PhiloxWords words = PhiloxBlock(key, block);
    return {At(words[0]), At(words[1]), At(words[2]), At(words[3])};
  }
  // The diagonal of the whole, as far as it runs through `out`, which begins at element `begin` of it.
  template <typename T>
  void Finish(T* out, std::int64_t count, std::int64_t begin) const {
    const std::int64_t step = std::int64_t{diagonal_step_} + 1;
    for (std::int64_t i = std::max<std::int64_t>(0, (begin + step - 1) / step);
         i < diagonal_count_ && i * step < begin + count; ++i)
      out[i * step - begin] = static_cast<T>(diagonal_value_);
  }

 private:
  double At(std::uint32_t word) const { return min_ + span_ * Unit(word); }
  double min_ = -1, span_ = 2;
  std::int32_t diagonal_count_ = 0, diagonal_step_ = 0;
  float diagonal_value_ = 1;
};

class Gaussian {
 public:
  Status Read(const KernelSetup& k) {
    mean_ = k.Attr<float>("mean");
    std_ = k.Attr<float>("std");
    return OkStatus();
  }
  std::array<double, 4> Draw(std::uint64_t key, std::uint64_t block) const {
    std::array<double, 4> four = FourNormals(PhiloxBlock(key, block));
    for (double& value : four) value = mean_ + std_ * value;
    return four;
  }
  template <typename T>
  void Finish(T*, std::int64_t, std::int64_t) const {}

 protected:
  double mean_ = 0, std_ = 1;
};

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
