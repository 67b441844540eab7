// Each rule of a chain that runs by rows, broken by hand.
#include "executor/plan/verify_chain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/plan/plan.h"
#include "executor/plan/verify.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock::exec {
namespace {

// Step 1 is a chain with the inputs h and b, the output s, and the temporaries t and r.
constexpr char kProgram[] = R"(program
block 0 {
  data x : f32[512, 1024]
  param b : f32[1024]
  h : f32[512, 1024] = softmax(X=x)
  t : f32[512, 1024] = elementwise_add(X=h, Y=b)
  r : f32[512, 1024] = tanh(X=t)
  s : f32[512, 1024] = elementwise_mul(X=r, Y=h)
  m : f32[512, 1024] = softmax(X=s)
}
)";
constexpr std::size_t kStep = 1;

// The plan with its chain, to be broken.
struct Broken {
  std::unique_ptr<Specialisation> plan;
  std::shared_ptr<CompiledBlock> block;
  std::shared_ptr<RowChain> chain;

  Instruction& instruction() const { return block->instructions[kStep]; }
  Instruction& op(std::size_t i) const { return chain->block.instructions[i]; }
  int SlotOf(const std::string& name) const {
    const auto& slots = chain->block.slots;
    return static_cast<int>(std::ranges::find(slots, name, &SlotInfo::name) - slots.begin());
  }
  Place& PlaceOf(const std::string& name) const {
    return *std::ranges::find_if(plan->places, [&](const Place& place) {
      return block->slots[static_cast<std::size_t>(place.slot)].name == name;
    });
  }
  // The error of VerifyPlan.
  std::string Rule() const {
    const Status status = VerifyPlan(*plan);
    if (status.ok()) return "";
    EXPECT_EQ(status.id(), "E-exec-plan");
    return std::string(status.message());
  }
};

Broken ToBreak() {
  const Result<Program> program = ParseText(kProgram, "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  auto compiled = CompileBlock(AllOps(), *program, {.feeds = {"x"}, .fetches = {"m"}});
  PENSTOCK_CHECK(compiled.ok(), compiled.status().ToString());
  std::vector<TensorDesc> known;
  for (const SlotInfo& slot : (*compiled)->slots) known.push_back(DescOf(*slot.var));
  auto made = MakePlan(AllOps(), *std::move(compiled), std::move(known), Services(), {});
  PENSTOCK_CHECK(made.ok(), made.status().ToString());
  Broken broken;
  broken.plan = std::make_unique<Specialisation>(*made->plan);
  broken.block = std::make_shared<CompiledBlock>(*made->plan->block);
  broken.plan->block = broken.block;
  PENSTOCK_CHECK(broken.instruction().chain != nullptr, "step 1 is a chain");
  broken.chain = std::make_shared<RowChain>(*broken.instruction().chain);
  broken.instruction().chain = broken.chain;
  broken.instruction().def = &broken.chain->def;
  return broken;
}

void Expect(const Broken& broken, const std::string& rule) {
  EXPECT_NE(broken.Rule().find(rule), std::string::npos) << broken.Rule();
}

TEST(VerifyChain, AcceptsWhatThePassMakes) {
  const Broken whole = ToBreak();
  EXPECT_EQ(whole.Rule(), "");
  ASSERT_EQ(whole.chain->inputs, 2);
  ASSERT_EQ(whole.chain->outputs, 1);
  ASSERT_EQ(whole.chain->block.instructions.size(), 3U);
}

TEST(VerifyChain, ItsSlotsAreTheArguments) {
  const Broken fewer = ToBreak();
  fewer.chain->outputs = 0;
  Expect(fewer, "its chain has 2 inputs and 0 outputs, and the instruction 2 and 1");
  const Broken exchanged = ToBreak();
  std::swap(exchanged.instruction().inputs[0], exchanged.instruction().inputs[1]);
  Expect(exchanged, "b is h in its chain");
}

TEST(VerifyChain, AnOpReadsWhatOpsBeforeItWrite) {
  const Broken broken = ToBreak();
  std::swap(broken.op(0), broken.op(1));
  Expect(broken, "no op before tanh in its chain writes t");
}

TEST(VerifyChain, OneOpWritesAResult) {
  const Broken twice = ToBreak();
  twice.op(1).outputs[0][0] = twice.SlotOf("t");
  Expect(twice, "tanh in its chain writes t, which has a value");
  const Broken input = ToBreak();
  input.op(1).outputs[0][0] = input.SlotOf("h");
  Expect(input, "tanh in its chain writes h, which has a value");
}

TEST(VerifyChain, AnOpWritesEachOutput) {
  const Broken broken = ToBreak();
  broken.chain->block.instructions.pop_back();
  Expect(broken, "no op in its chain writes s");
}

TEST(VerifyChain, TheOpsRunOnTheSameRows) {
  const Broken broken = ToBreak();
  Op softmax("softmax");
  softmax.AddInput("X", {"t"}).AddOutput("Out", {"r"});
  broken.op(1).op = std::make_shared<const Op>(std::move(softmax));
  broken.op(1).def = AllOps().Find("softmax");
  Expect(broken, "the ops of its chain do not run on the same rows");
}

TEST(VerifyChain, TheOpsTakeTheirInputs) {
  const Broken broken = ToBreak();
  TensorDesc other = broken.plan->type(broken.plan->inputs[0].type);
  other.shape = Shape{7};
  broken.plan->types.push_back(other);
  broken.plan->inputs[broken.plan->steps[kStep - 1].inputs_end + 1].type =
      static_cast<int>(broken.plan->types.size()) - 1;
  Expect(broken, "in its chain: elementwise_add");
}

TEST(VerifyChain, TheOpsLeaveThePlannedTypes) {
  const Broken broken = ToBreak();
  Op cast("cast");
  cast.AddInput("X", {"r"}).AddOutput("Out", {"s"});
  cast.Set("in_dtype", 5).Set("out_dtype", 6);
  broken.op(2).op = std::make_shared<const Op>(std::move(cast));
  broken.op(2).def = AllOps().Find("cast");
  broken.op(2).inputs = {{broken.SlotOf("r")}};
  Expect(broken, "s is written as f64[512, 1024] by its chain and planned as f32[512, 1024]");
}

TEST(VerifyChain, AnOutputLiesInTheMemoryOfAnInputThatIsReadBefore) {
  const Broken broken = ToBreak();  // the last op reads h after the first one has begun to write
  ASSERT_NE(broken.PlaceOf("s").offset, broken.PlaceOf("h").offset);
  broken.PlaceOf("s").offset = broken.PlaceOf("h").offset;
  Expect(broken, "s lies in the memory of h, which is in use");
}

}  // namespace
}  // namespace penstock::exec
