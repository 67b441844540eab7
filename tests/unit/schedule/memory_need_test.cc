#include "executor/schedule/memory_need.h"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

using test::ToyOps;
using test::ToyProgram;

// out = ((x + x) + x) + x over rows of two floats; w -= g.
ToyProgram Chain() {
  ToyProgram p;
  p.Data("x", {-1, 2});
  p.Data("g", {16});
  p.Persistable("w", {16});
  std::string last = "x";
  for (const std::string name : {"a", "b", "c"}) {
    p.Temporary(name, {-1, 2});
    p.Add("toy_add", {{"X", last}, {"Y", "x"}}, {{"Out", name}});
    last = name;
  }
  p.Add("toy_step", {{"Param", "w"}, {"Grad", "g"}}, {{"ParamOut", "w"}});
  return p;
}

TEST(MemoryNeed, EqualsThePlanForTheBatch) {
  const auto need = MemoryNeedOf(ToyOps(), Chain().program, {.batch = 32});
  ASSERT_TRUE(need.ok()) << need.status().ToString();
  EXPECT_EQ(need->persistable, 16 * sizeof(float));
  EXPECT_EQ(need->fed, (32 * 2 + 16) * sizeof(float));
  // Three temporaries of 256 bytes, each computed in the memory of the one before.
  EXPECT_EQ(need->temporaries, 3u * 256);
  EXPECT_EQ(need->arena, 256u);
  EXPECT_EQ(need->workspace, 64u);  // of toy_step
  EXPECT_EQ(need->Planned(), 64u + 320 + 256 + 64);
  EXPECT_EQ(need->Unshared(), 64u + 320 + 768 + 64);
  EXPECT_EQ(need->late_ops, 0);
}

TEST(MemoryNeed, CountsOpsWhoseSizesDependOnValues) {
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("y", {-1});
  p.Temporary("z", {-1});
  p.Add("toy_positive", {{"X", "x"}}, {{"Out", "y"}});
  p.Add("toy_add", {{"X", "y"}, {"Y", "y"}}, {{"Out", "z"}});
  const auto need = MemoryNeedOf(ToyOps(), p.program, {.batch = 8});
  ASSERT_TRUE(need.ok()) << need.status().ToString();
  EXPECT_EQ(need->late_ops, 1);
}

TEST(MemoryNeed, OneUnknownExtentIsTheBatch) {
  EXPECT_EQ(MemoryNeedOf(ToyOps(), Chain().program, {.batch = 0}).status().id(), "E-memory-batch");
  ToyProgram p;
  p.Data("x", {-1, -1});
  p.Temporary("y", {-1, -1});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "y"}});
  const Status status = MemoryNeedOf(ToyOps(), p.program, {.batch = 4}).status();
  EXPECT_EQ(status.id(), "E-memory-batch");
  EXPECT_NE(status.ToString().find("x : f32[?, ?] has 2 unknown extents"), std::string::npos);
}

TEST(MemoryNeed, AFeedMayHaveAShapeOfItsOwn) {
  ToyProgram p;
  p.Data("x", {-1, -1});
  p.Temporary("y", {-1, -1});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "y"}});
  const auto need = MemoryNeedOf(ToyOps(), p.program, {.batch = 4, .shapes = {{"x", {4, 8}}}});
  ASSERT_TRUE(need.ok()) << need.status().ToString();
  EXPECT_EQ(need->fed, 4u * 8 * sizeof(float));
  EXPECT_EQ(need->arena, 4u * 8 * sizeof(float));
  for (const Shape& wrong : {Shape{4}, Shape{4, -1}}) {
    const Status status = MemoryNeedOf(ToyOps(), p.program, {.batch = 4, .shapes = {{"x", wrong}}}).status();
    EXPECT_EQ(status.id(), "E-memory-feed") << status.ToString();
  }
  const Status status =
      MemoryNeedOf(ToyOps(), Chain().program, {.batch = 4, .shapes = {{"w", {16}}}}).status();
  EXPECT_EQ(status.message(), "memory: \"w\" is not fed; the program's feeds are x, g");
}

}  // namespace
}  // namespace penstock::exec
