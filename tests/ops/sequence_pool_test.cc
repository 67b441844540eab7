// sequence_pool and its gradient compared with the definition, for random sequences with ties and NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/run_one.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

struct PoolCase {
  std::string pool;
  Tensor x;
  std::size_t width = 1;
  std::vector<std::size_t> offsets;

  std::size_t sequences() const { return offsets.size() - 1; }
  float At(std::size_t row, std::size_t j) const { return x.Data<float>()[row * width + j]; }

  // The first NaN, otherwise the first of the largest.
  std::size_t RowOfMaximum(std::size_t s, std::size_t j) const {
    std::size_t best = offsets[s];
    for (std::size_t r = offsets[s]; r < offsets[s + 1]; ++r) {
      if (std::isnan(At(r, j))) return r;
      if (At(r, j) > At(best, j)) best = r;
    }
    return best;
  }
  double Factor(std::size_t s) const {
    const auto length = static_cast<double>(offsets[s + 1] - offsets[s]);
    return pool == "AVERAGE" ? 1 / length : pool == "SQRT" ? 1 / std::sqrt(length) : 1;
  }
  double Out(std::size_t s, std::size_t j) const {
    if (offsets[s] == offsets[s + 1]) return 0.5;
    if (pool == "MAX") return At(RowOfMaximum(s, j), j);
    if (pool == "FIRST") return At(offsets[s], j);
    if (pool == "LAST") return At(offsets[s + 1] - 1, j);
    double sum = 0;
    for (std::size_t r = offsets[s]; r < offsets[s + 1]; ++r) sum += At(r, j);
    return sum * Factor(s);
  }
  // The derivative of Out by element (row, j) of sequence s.
  double Share(std::size_t s, std::size_t row, std::size_t j) const {
    if (pool == "MAX") return row == RowOfMaximum(s, j) ? 1 : 0;
    if (pool == "FIRST") return row == offsets[s] ? 1 : 0;
    if (pool == "LAST") return row + 1 == offsets[s + 1] ? 1 : 0;
    return Factor(s);
  }
};

// Few distinct values, so that columns have ties; with a NaN now and then.
PoolCase RandomCase(const std::string& pool, std::mt19937& random) {
  PoolCase made;
  made.pool = pool;
  made.width = random() % 40 + 1;
  made.offsets = {0};
  LoDLevel level = {0};
  for (std::size_t s = random() % 6 + 1; s > 0; --s) {
    made.offsets.push_back(made.offsets.back() + random() % 4 * (random() % 5));
    level.push_back(made.offsets.back());
  }
  const auto rows = static_cast<Dim>(made.offsets.back());
  made.x = Tensor(DType::kFp32, {rows, static_cast<Dim>(made.width)});
  const bool with_nan = random() % 2 == 0;
  for (float& value : made.x.Span<float>())
    value = with_nan && random() % 16 == 0 ? kNoNumber : static_cast<float>(random() % 7) - 3;
  made.x.set_lod({level});
  return made;
}

void ExpectSame(double actual, double expected, const std::string& where) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << where;
  } else {
    EXPECT_NEAR(actual, expected, 1e-5) << where;
  }
}

void CheckForward(const PoolCase& c, const Tensors& made, bool is_test) {
  for (std::size_t s = 0; s < c.sequences(); ++s) {
    for (std::size_t j = 0; j < c.width; ++j) {
      const auto at = static_cast<std::int64_t>(s * c.width + j);
      ExpectSame(ElementAt(made.at("Out"), at), c.Out(s, j), c.pool);
      if (c.pool != "MAX" || is_test) continue;
      const bool empty = c.offsets[s] == c.offsets[s + 1];
      EXPECT_EQ(ElementAt(made.at("MaxIndex"), at), empty ? -1 : static_cast<double>(c.RowOfMaximum(s, j)));
    }
  }
}

void CheckBackward(const PoolCase& c, const Tensor& dout, const Tensor& dx) {
  for (std::size_t s = 0; s < c.sequences(); ++s) {
    for (std::size_t row = c.offsets[s]; row < c.offsets[s + 1]; ++row) {
      for (std::size_t j = 0; j < c.width; ++j) {
        const double expected =
            c.Share(s, row, j) * ElementAt(dout, static_cast<std::int64_t>(s * c.width + j));
        ExpectSame(ElementAt(dx, static_cast<std::int64_t>(row * c.width + j)), expected, c.pool);
      }
    }
  }
}

TEST(SequencePool, AgreesWithTheDefinition) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const char* const pools[] = {"AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX"};
    const PoolCase c = RandomCase(pools[i % 6], random);
    const bool is_test = random() % 3 == 0;
    Op op = WithSlots("sequence_pool", {"X"}, {"Out"})
                .Set("pooltype", c.pool)
                .Set("pad_value", 0.5f)
                .Set("is_test", is_test);
    if (c.pool == "MAX" && !is_test) op.AddOutput("MaxIndex", {"MaxIndex"});
    const Result<Tensors> made = RunOp(AllOps(), op, {{"X", c.x}});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    CheckForward(c, *made, is_test);

    Op grad = WithSlots("sequence_pool_grad", {"X", "Out@GRAD"}, {"X@GRAD"})
                  .Set("pooltype", c.pool)
                  .Set("is_test", is_test);
    Tensors inputs = {
        {"X", c.x},
        {"Out@GRAD",
         Scattered(DType::kFp32, {static_cast<Dim>(c.sequences()), static_cast<Dim>(c.width)}, -1, 1)}};
    if (c.pool == "MAX" && !is_test) {
      grad.AddInput("MaxIndex", {"MaxIndex"});
      inputs["MaxIndex"] = made->at("MaxIndex");
    }
    const Result<Tensors> grads = RunOp(AllOps(), grad, inputs);
    ASSERT_TRUE(grads.ok()) << grads.status().ToString();
    CheckBackward(c, inputs["Out@GRAD"], grads->at("X@GRAD"));
  }
}

TEST(SequencePool, RefusesAMaximumOutsideItsSequence) {
  Tensor x = TensorOf<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  x.set_lod({{0, 1, 3}});
  const Op grad =
      WithSlots("sequence_pool_grad", {"X", "MaxIndex", "Out@GRAD"}, {"X@GRAD"}).Set("pooltype", "MAX");
  Tensors inputs = {{"X", x},
                    {"MaxIndex", TensorOf<std::int32_t>({2, 2}, {0, 0, 1, 3})},
                    {"Out@GRAD", TensorOf<float>({2, 2}, {1, 1, 1, 1})}};
  ExpectError(grad, inputs, "sequence_pool_grad: MaxIndex names row 3 for sequence 1, which has rows [1, 3)");
  inputs["MaxIndex"] = TensorOf<std::int32_t>({2, 2}, {0, -1, 1, 2});
  ExpectError(grad, inputs,
              "sequence_pool_grad: MaxIndex names row -1 for sequence 0, which has rows [0, 1)");
  inputs["MaxIndex"] = TensorOf<std::int32_t>({1, 2}, {0, 0});
  ExpectError(grad, inputs, "sequence_pool_grad: MaxIndex ([1, 2]) must have 2 rows of 2 elements");
}

}  // namespace
}  // namespace penstock::test
