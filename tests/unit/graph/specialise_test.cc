// The lists that a run reads: each step has its own part of them, and each type is stored once.
#include "executor/graph/specialise.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

std::shared_ptr<const Specialisation> SpecialiseToy(const test::ToyProgram& toy,
                                                    std::vector<std::string> feeds, Dim rows,
                                                    bool in_place = true) {
  auto block = CompileBlock(test::ToyOps(), toy.program, {.feeds = feeds, .fetches = {"out"}});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  std::vector<TensorDesc> known;
  for (const SlotInfo& slot : (*block)->slots) {
    known.push_back(DescOf(*slot.var));
    if (slot.home == Home::kFeed) known.back().shape.Set(0, rows);
  }
  auto made = Specialise(*block, std::move(known), Services(), in_place);
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  for (std::size_t i = 0; i < made->plan->steps.size(); ++i)
    EXPECT_EQ(made->kernels[i] != nullptr, made->plan->steps[i].has_kernel) << i;
  return made->plan;
}

template <typename Slots>
std::string Names(const Specialisation& made, const Slots& slots) {
  std::string names;
  for (const auto& each : slots) {
    names += StrCat(names.empty() ? "" : ", ", made.block->slots[static_cast<std::size_t>(each.slot)].name,
                    " : ", made.type(each.type).shape);
  }
  return names;
}

TEST(Specialise, EachStepHasItsRangeOfTheLists) {
  const auto made = SpecialiseToy(test::TwoAdds(), {"x", "y"}, 3);
  ASSERT_EQ(made->steps.size(), 2u);
  EXPECT_EQ(Names(*made, made->InputsOf(0)), "x : [3, 2], y : [3, 2]");
  EXPECT_EQ(Names(*made, made->OutputsOf(0)), "h : [3, 2]");
  EXPECT_EQ(Names(*made, made->InputsOf(1)), "h : [3, 2], x : [3, 2]");
  EXPECT_EQ(Names(*made, made->OutputsOf(1)), "out : [3, 2]");
}

TEST(Specialise, StoresEachTypeOnce) {
  const auto made = SpecialiseToy(test::TwoAdds(), {"x", "y"}, 3);
  ASSERT_EQ(made->types.size(), 1u);
  EXPECT_EQ(made->types.front().shape, Shape({3, 2}));
}

// a = x + y; b = a + x; c = b + a; d = c + x; out = d + x
TEST(Specialise, OutputsReuseMemoryOfDeadInputs) {
  test::ToyProgram toy;
  toy.Data("x", {-1, 16});
  toy.Data("y", {-1, 16});
  for (const char* name : {"a", "b", "c", "d", "out"}) toy.Temporary(name, {-1, 16});
  const auto add = [&toy](const char* out, const char* x, const char* y) {
    toy.Add("toy_add", {{"X", x}, {"Y", y}}, {{"Out", out}});
  };
  add("a", "x", "y");
  add("b", "a", "x");  // a is read again
  add("c", "b", "a");  // the memory of b, the first of two that end here
  add("d", "c", "x");
  add("out", "d", "x");  // is fetched
  const auto offsets = [](const Specialisation& made) {
    std::string all;
    for (const Place& place : made.places) {
      if (!place.own_buffer)
        all += StrCat(made.block->slots[static_cast<std::size_t>(place.slot)].name, " ", place.offset, " ");
    }
    return all;
  };
  const auto made = SpecialiseToy(toy, {"x", "y"}, 1);
  EXPECT_EQ(offsets(*made), "a 0 b 64 c 64 d 64 ");
  EXPECT_EQ(made->arena_bytes, 128u);
  const auto apart = SpecialiseToy(toy, {"x", "y"}, 1, /*in_place=*/false);
  EXPECT_EQ(offsets(*apart), "a 0 b 64 c 128 d 0 ");
  EXPECT_EQ(apart->arena_bytes, 192u);
}

TEST(Specialise, ALateStepHasAnEmptyRange) {
  test::ToyProgram toy;
  toy.Data("x", {-1, 2});
  toy.Temporary("positive", {-1});
  toy.Temporary("h", {-1});
  toy.Temporary("filled", {4});
  toy.Temporary("out", {4});
  toy.Add("toy_positive", {{"X", "x"}}, {{"Out", "positive"}});
  toy.Add("toy_add", {{"X", "positive"}, {"Y", "positive"}}, {{"Out", "h"}});
  toy.Add("toy_fill", {}, {{"Out", "filled"}}, 0, {{"shape", std::vector<std::int64_t>{4}}, {"value", 1.0f}});
  toy.Add("toy_add", {{"X", "filled"}, {"Y", "filled"}}, {{"Out", "out"}});
  const auto made = SpecialiseToy(toy, {"x"}, 3);
  ASSERT_EQ(made->steps.size(), 4u);
  EXPECT_TRUE(made->steps[0].has_kernel);
  EXPECT_EQ(Names(*made, made->InputsOf(0)), "x : [3, 2]");
  EXPECT_FALSE(made->steps[1].has_kernel);
  EXPECT_EQ(Names(*made, made->InputsOf(1)), "");
  EXPECT_EQ(Names(*made, made->OutputsOf(1)), "");
  EXPECT_EQ(Names(*made, made->InputsOf(3)), "filled : [4], filled : [4]");
  EXPECT_EQ(Names(*made, made->OutputsOf(3)), "out : [4]");
  EXPECT_EQ(made->steps_without_kernel, 1);
}

}  // namespace
}  // namespace penstock::exec
