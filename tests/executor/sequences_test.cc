// Programs whose sequence lengths change from run to run: shapes that depend on the lengths are determined at
// run time.
#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock {
namespace {

using test::Tensors;

// One row for each sequence, a layer on these rows, and its result expanded to all rows.
constexpr char kText[] = R"(program
block 0 {
  data x : f32[?, 2] lod=1
  data w : f32[2, 3]
  var turned : f32[?, 2] lod=1
  var spread : f32[?, 3] lod=1
  (Y=turned) = sequence_reverse(X=x)
  pooled : f32[?, 2] = sequence_pool(X=turned) {pooltype="LAST", pad_value=0.5} at "train.py:7 in model"
  layer : f32[?, 3] = mul(X=pooled, Y=w)
  spread = sequence_expand_as(X=layer, Y=turned)
  loss : f32[1] = mean(X=spread)
}
)";

Program Model() {
  Result<Program> program = ParseText(kText, "model");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

Tensor Sequences(const std::vector<Dim>& lengths, unsigned seed) {
  LoDLevel offsets = {0};
  for (const Dim length : lengths) offsets.push_back(offsets.back() + static_cast<std::uint64_t>(length));
  Tensor x = test::Scattered(DType::kFp32, {static_cast<Dim>(offsets.back()), 2}, -1, 1, seed);
  x.set_lod({offsets});
  return x;
}

// Runs the program op by op, without an executor.
Tensors Expected(const Program& program, Tensors known) {
  for (const OpEntry& entry : program.main().ops()) {
    const Result<Tensors> made = test::RunOp(AllOps(), *entry.op, known);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) break;
    for (const auto& [name, tensor] : *made) known[name] = tensor;
  }
  return known;
}

TEST(SequencesOfEachRun, EqualOpByOpExecutionAndKeepTheirInputs) {
  const Program program = Model();
  const Tensor w = test::Scattered(DType::kFp32, {2, 3}, -1, 1, 7);
  const std::vector<std::string> fetches = {"layer", "spread", "loss"};
  // The same rows in other sequences, other rows, empty sequences, and the first ones again.
  const std::vector<std::vector<Dim>> runs = {{2, 3}, {5},    {1, 1, 3}, {0, 5, 0}, {2, 3}, {4, 4},
                                              {2, 3}, {1, 0}, {2, 3},    {2, 3},    {7, 1}};
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  std::vector<std::vector<Variable>> got;
  std::vector<Tensors> expected;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Tensor x = Sequences(runs[i], static_cast<unsigned>(i));
    auto out = executor.Run(program, scope, {{{"x", x}, {"w", w}}}, fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    got.push_back(*std::move(out));
    expected.push_back(Expected(program, {{"x", x}, {"w", w}}));
  }
  // Compares after all runs, because a later run must not overwrite results of an earlier one.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t f = 0; f < fetches.size(); ++f) {
      const Tensor& theirs = expected[i].at(fetches[f]);
      const Tensor& ours = *got[i][f].If<Tensor>();
      const Status near = test::Near(ours, theirs, 1e-6, 1e-7);
      EXPECT_TRUE(near.ok()) << "run " << i << ", " << fetches[f] << ": " << near.ToString();
      EXPECT_EQ(ours.lod(), theirs.lod()) << "run " << i << ", " << fetches[f];
    }
  }
  // One specialisation for each number of rows, whatever the sequences are.
  EXPECT_EQ(executor.stats().specialised_count, 3);
}

// Fluid declares the length of sequence_pad's output as 1. The sum over the sequences then seems to have a
// known shape, but has another one.
TEST(SequencesOfEachRun, OverrideDeclaredLengths) {
  const Result<Program> program = ParseText(R"(program
block 0 {
  data x : f32[?, 2] lod=1
  data zero : f32[1]
  var more : f32[?, 2] lod=1
  more = sequence_expand(X=x, Y=x)
  (Out=padded : f32[?, 1, 2], Length=lengths : i64[?]) = sequence_pad(X=more, PadValue=zero)
  total : f32[1, 2] = reduce_sum(X=padded) {dim=[0]}
  scaled : f32[1, 2] = scale(X=total) {scale=2.0}
}
)",
                                            "guess");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const Tensor zero = test::TensorOf<float>({1}, {0});
  for (const std::vector<Dim>& lengths : {std::vector<Dim>{2, 3}, {1, 1}, {4}}) {
    const Tensor x = Sequences(lengths, 3);
    auto out = executor.Run(*program, scope, {{{"x", x}, {"zero", zero}}}, {{"scaled"}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const Tensors expected = Expected(*program, {{"x", x}, {"zero", zero}});
    const Status near = test::Near(*(*out)[0].If<Tensor>(), expected.at("scaled"), 1e-6, 1e-7);
    EXPECT_TRUE(near.ok()) << near.ToString();
  }
}

TEST(SequencesOfEachRun, CacheABoundedNumberOfShapes) {
  const Program program = Model();
  const Tensor w = test::Scattered(DType::kFp32, {2, 3}, -1, 1, 7);
  exec::Executor executor(AllOps(), {.threads = 1, .specialisations_max = 2});
  Scope scope;
  constexpr Dim kShapes = 6;
  for (int round = 0; round < 2; ++round) {
    for (Dim rows = 1; rows <= kShapes; ++rows) {
      auto out = executor.Run(program, scope, {{{"x", Sequences({rows, 1}, 1)}, {"w", w}}}, {{"loss"}});
      ASSERT_TRUE(out.ok()) << out.status().ToString();
    }
  }
  EXPECT_EQ(executor.stats().specialised_count, 2 * kShapes) << "the older ones were let go of";
}

TEST(SequencesOfEachRun, AMissingLoDIsReportedWithNameAndLine) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  Tensor x = Sequences({2, 3}, 1);
  x.set_lod({{0, 2, 4}});
  const Tensor w = test::Scattered(DType::kFp32, {2, 3}, -1, 1, 7);
  const auto bad = executor.Run(Model(), scope, {{{"x", x}, {"w", w}}}, {{"loss"}});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(),
            "sequence_reverse: X: level 0 of its sequences ends at 4; it must end at 5, the number of rows");
  x.set_lod({});
  const auto none = executor.Run(Model(), scope, {{{"x", x}, {"w", w}}}, {{"loss"}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "sequence_pool: X must have a level of sequences");
  EXPECT_NE(none.status().ToString().find("train.py:7 in model"), std::string::npos)
      << none.status().ToString();
}

}  // namespace
}  // namespace penstock
