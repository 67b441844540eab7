// uniform_random_batch_size_like, gaussian_random_batch_size_like: random numbers, with one extent taken from
// another tensor.
#include "operators/common/batch_size_like.h"

#include <string>

#include "framework/op/op_registry.h"
#include "operators/random/distributions.h"
#include "operators/random/random_fill.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out has the shape in attribute shape, except that extent output_dim_idx is Input's extent input_dim_idx. If
Input has LoD and input_dim_idx is 0, it is the number of sequences of Input's innermost level instead; Out's
shape is then known only when the op runs.)";

OpDef& AddLike(OpRegistry& ops, const std::string& type, std::string summary, const std::string& numbers) {
  return WithBatchSize(ops.Add(type).Doc(std::move(summary), StrCat(kDoc, "\n", numbers, "\n", kSeedDoc)))
      .Attr("seed", 0, "chooses the numbers; 0: a new seed at every run")
      .Attr("dtype", static_cast<std::int32_t>(DType::kFp32), "Out's element type, as Fluid numbers them")
      .KernelTypeFrom("Out")
      .Affects({Effect::kRandom})
      .NoGrad();
}

}  // namespace

void RegisterBatchSizeLike(OpRegistry& ops) {
  AddLike(ops, "uniform_random_batch_size_like",
          "Random numbers, even over an interval, one for each of a batch.",
          "The numbers are drawn evenly from [min, max). If diag_num > 0, element i * (diag_step + 1) is "
          "diag_val "
          "instead, for i < diag_num.")
      .Attr("min", -1.0f, "the least number")
      .Attr("max", 1.0f, "above all numbers")
      .Attr("diag_num", 0, "how many diagonal elements get diag_val", AtLeast(0))
      .Attr("diag_step", 0, "elements between two diagonal elements", AtLeast(0))
      .Attr("diag_val", 1.0f, "the diagonal's value")
      .Kernel<Cpu, RandomFill<Uniform, BatchSizeLike>::Fill, float, double>();
  AddLike(ops, "gaussian_random_batch_size_like",
          "Random numbers, normally distributed, one for each of a batch.",
          "The numbers are drawn from the normal distribution of that mean and standard deviation.")
      .Attr("mean", 0.0f, "the mean")
      .Attr("std", 1.0f, "the standard deviation", AtLeast(0))
      .Kernel<Cpu, RandomFill<Gaussian, BatchSizeLike>::Fill, float, double>();
}

}  // namespace penstock
