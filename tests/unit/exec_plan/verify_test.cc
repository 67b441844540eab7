// Each rule of a plan, broken by hand.
#include "executor/plan/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/plan/plan.h"
#include "framework/op/tensor_desc.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock::exec {
namespace {

std::unique_ptr<Specialisation> PlanOf(const std::string& ops, std::vector<std::string> feeds,
                                       std::vector<std::string> fetches) {
  std::string text = "program\nblock 0 {\n";
  for (const char* name : {"x", "a", "b", "c", "d"}) text += StrCat("  var ", name, " : f32[64, 64]\n");
  const Result<Program> program = ParseText(text + ops + "}\n", "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  auto block = CompileBlock(AllOps(), *program, {.feeds = std::move(feeds), .fetches = std::move(fetches)});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  std::vector<TensorDesc> known;
  for (const SlotInfo& slot : (*block)->slots) known.push_back(DescOf(*slot.var));
  auto made = Specialise(*std::move(block), std::move(known), Services());
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  return std::make_unique<Specialisation>(*made->plan);  // to be broken
}

constexpr char kChain[] =
    "  a = softmax(X=x)\n  b = softmax(X=a)\n  c = matmul(X=a, Y=b)\n  d = softmax(X=c)\n";

std::unique_ptr<Specialisation> Chain() { return PlanOf(kChain, {"x"}, {"d"}); }

std::string Rule(const Specialisation& plan) {
  const Status status = VerifyPlan(plan);
  if (status.ok()) return "";
  EXPECT_EQ(status.id(), "E-exec-plan");
  return std::string(status.message());
}

Place& PlaceNamed(Specialisation& plan, const std::string& name) {
  const auto found = std::ranges::find_if(plan.places, [&](const Place& place) {
    return plan.block->slots[static_cast<std::size_t>(place.slot)].name == name;
  });
  PENSTOCK_CHECK(found != plan.places.end(), StrCat(name, " has a place"));
  return *found;
}

TEST(VerifyPlan, AcceptsPlansOfTheExecutor) {
  EXPECT_EQ(Rule(*Chain()), "");
  EXPECT_EQ(Rule(*PlanOf("  a = relu(X=x)\n  b = relu(X=a)\n  c = relu(X=b)\n", {"x"}, {"c"})), "")
      << "each in the memory of the one before";
}

TEST(VerifyPlan, LiveTemporariesMustNotOverlap) {
  const auto plan = Chain();
  ASSERT_NE(PlaceNamed(*plan, "a").offset, PlaceNamed(*plan, "b").offset);
  PlaceNamed(*plan, "b").offset = PlaceNamed(*plan, "a").offset;
  EXPECT_NE(Rule(*plan).find("b lies in the memory of a, which is in use"), std::string::npos) << Rule(*plan);
}

TEST(VerifyPlan, PartialOverlapsAreFoundFromBothSides) {
  for (const bool before : {false, true}) {
    const auto plan = Chain();
    Place &a = PlaceNamed(*plan, "a"), &b = PlaceNamed(*plan, "b");
    a.offset = before ? 64 : 0;
    b.offset = before ? 0 : 64;
    plan->arena_bytes = a.bytes + b.bytes + 64;
    EXPECT_NE(Rule(*plan).find("which is in use"), std::string::npos) << before;
  }
}

TEST(VerifyPlan, BuffersMustFitTheArenaAndTheirValues) {
  const auto behind = Chain();
  PlaceNamed(*behind, "b").offset = behind->arena_bytes;
  EXPECT_NE(Rule(*behind).find("b ends behind the arena"), std::string::npos);
  const auto small = Chain();
  PlaceNamed(*small, "b").bytes /= 2;
  EXPECT_NE(Rule(*small).find("b : f32[64, 64] is larger than its place"), std::string::npos);
}

TEST(VerifyPlan, ReadAndWriteTypesMustMatch) {
  const auto plan = Chain();
  const auto first = plan->OutputsOf(0).front();
  TensorDesc other = plan->type(first.type);
  other.shape = Shape{64, 32};
  plan->types.push_back(other);
  plan->inputs[plan->steps[0].inputs_end].type = static_cast<int>(plan->types.size()) - 1;
  EXPECT_NE(Rule(*plan).find("a is read as f32[64, 32] and written as f32[64, 64]"), std::string::npos)
      << Rule(*plan);
}

TEST(VerifyPlan, TemporariesMustBeWrittenBeforeReads) {
  const auto plan = Chain();
  auto block = std::make_shared<CompiledBlock>(*plan->block);
  block->instructions[1].inputs.front().front() = block->instructions[2].outputs.front().front();
  plan->block = block;
  EXPECT_NE(Rule(*plan).find("no step before writes c"), std::string::npos) << Rule(*plan);
}

TEST(VerifyPlan, PendingOperationsMustBeAwaited) {
  const auto begun = [] {
    auto plan = Chain();
    // As if the first step were a collective op.
    auto block = std::make_shared<CompiledBlock>(*plan->block);
    block->instructions[0].def = AllOps().Find("c_allreduce_sum");
    plan->block = block;
    plan->awaits = FindAwaits(*block);
    return plan;
  };
  EXPECT_EQ(Rule(*begun()), "");
  const auto never = begun();
  never->awaits.clear();
  EXPECT_NE(Rule(*never).find("a is in use by an operation: ring 0"), std::string::npos) << Rule(*never);
  const auto late = begun();
  late->awaits.front().step = 2;
  EXPECT_NE(Rule(*late).find("a is in use by an operation: ring 0"), std::string::npos) << Rule(*late);
}

TEST(VerifyPlan, NoOperationMayBePendingAtTheEnd) {
  const auto plan = Chain();
  auto block = std::make_shared<CompiledBlock>(*plan->block);
  block->instructions[3].def = AllOps().Find("c_allreduce_sum");
  plan->block = block;
  EXPECT_NE(Rule(*plan).find("an operation is in progress when the run has ended: ring 0"), std::string::npos)
      << Rule(*plan);
}

}  // namespace
}  // namespace penstock::exec
