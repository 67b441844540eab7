#include "framework/text/round_trip.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"

namespace penstock {
namespace {

Program Sample() {
  return *ParseText(R"(
program "sample" {random_seed=3}
block 0 {
  data x : f32[?, 4]
  persist w : f32[4]
  h : f32[?, 4] = elementwise_add(X=x, Y=w) {axis=1} at "train.py:3 in net"
  y : f32[?, 4] = relu(X=h)
}
)",
                    "sample");
}

TEST(RoundTrip, GivesTheSameProgramUnderTheSameIds) {
  const Program program = Sample();
  const Result<Program> back = RoundTrip(program);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(PrintProgram(*back, PrintOptions::Everything()),
            PrintProgram(program, PrintOptions::Everything()));
  for (std::size_t i = 0; i < program.main().ops().size(); ++i) {
    EXPECT_EQ(back->main().ops()[i].id, program.main().ops()[i].id);
    EXPECT_NE(back->main().ops()[i].op, program.main().ops()[i].op) << "the op that was read";
  }
}

TEST(RoundTrip, DetectsLossyForms) {
  Program program = Sample();
  Var other = TensorVar("h", DType::kFp32, {4});
  other.wire_bytes = SerializeVar(TensorVar("z", DType::kFp32, {4}));
  program.MutableBlock(0).SetVar(std::move(other));
  const Result<Program> back = RoundTrip(program);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.status().id(), "E-round-trip");
}

}  // namespace
}  // namespace penstock
