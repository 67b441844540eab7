// Gradients through blocks and arrays in the corpus's programs: the ops that Fluid 1.8.5 appends, its
// numbers, and finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "framework/text/printer.h"
#include "tests/executor/control_gradients.h"
#include "tests/support/corpus.h"
#include "tests/support/run_program.h"

namespace penstock::test {
namespace {

// Cases in which Fluid is wrong: an output of cond that only the gradient op `scale` reads loses its
// gradient.
const std::set<std::string> kWrongThere = {"cond_tuple"};
// Cases in which Fluid raises: an array in which only some elements have a gradient cannot be joined.
const std::set<std::string> kRaisesThere = {"lod_rank_table"};

Program WithGradient(const ControlCase& c) { return ProgramOf(ControlFolder() + c.name + ".grad.pb"); }

void ExpectSameBlocks(const ControlCase& c, const Program& made, const Program& expected) {
  SCOPED_TRACE(c.name);
  ASSERT_EQ(made.block_count(), expected.block_count());
  for (int b = 0; b < made.block_count(); ++b) {
    const Block &ours = made.block(b), &theirs = expected.block(b);
    EXPECT_EQ(ours.parent(), theirs.parent()) << "block " << b;
    EXPECT_EQ(ours.forward_block(), theirs.forward_block()) << "block " << b;
    for (std::size_t i = 0; i < std::min(ours.ops().size(), theirs.ops().size()); ++i) {
      ASSERT_TRUE(ours.ops()[i].op->SameAs(*theirs.ops()[i].op))
          << "block " << b << " op " << i << "\n  made     "
          << PrintOp(*ours.ops()[i].op, PrintOptions::Everything()) << "\n  expected "
          << PrintOp(*theirs.ops()[i].op, PrintOptions::Everything());
    }
    EXPECT_EQ(ours.ops().size(), theirs.ops().size()) << "block " << b;
    for (const VarRef& var : theirs.vars()) {
      const Var* own = ours.FindVar(var->name);
      ASSERT_NE(own, nullptr) << "block " << b << ": " << var->name << " is missing";
      EXPECT_TRUE(own->SameAs(*var)) << "block " << b << ": made " << PrintVar(*own) << ", expected "
                                     << PrintVar(*var);
    }
    for (const VarRef& var : ours.vars())
      EXPECT_NE(theirs.FindVar(var->name), nullptr)
          << "block " << b << ": " << var->name << " is not in Fluid's";
  }
}

TEST(ControlGradient, OpsAreAppendedAsByFluid) {
  const std::vector<std::string> names = ControlCases(".grad.pb");
  for (const std::string& name : names) {
    if (kWrongThere.contains(name)) continue;
    const ControlCase c = LoadControlCase(name);
    const Program whole = WithGradient(c);
    ExpectSameBlocks(c, Differentiated(c, whole), whole);
  }
  EXPECT_GE(names.size(), CorpusFolder().empty() ? 1u : 10u);
}

TEST(ControlGradient, GradientsMatchFluid) {
  for (const std::string& name : ControlCases(".grad.pb")) {
    if (kWrongThere.contains(name) || kRaisesThere.contains(name)) continue;
    const ControlCase c = LoadControlCase(name);
    ExpectRuns(c, WithGradient(c), "g", c.json["grads"].get<std::vector<std::string>>());
  }
}

TEST(ControlGradient, AgreesWithDifferencesWhereFluidIsWrong) {
  for (const char* name : {"cond_tuple", "lod_rank_table", "dynamic_rnn", "while_param"}) {
    if (CorpusFolder().empty() && std::string(name) != "while_param") continue;  // not in the selection
    const ControlCase c = LoadControlCase(name);
    const bool told = !kWrongThere.contains(name);
    const Program made = Differentiated(c, told ? std::optional(WithGradient(c)) : std::nullopt);
    std::vector<std::string> of;
    for (const auto& grad : c.json["grads"]) {
      const std::string text = grad.get<std::string>();
      of.push_back(text.substr(0, text.size() - std::string(kGradSuffix).size()));
    }
    if (of.empty()) of = {"x"};
    for (int k = 0; k < c.json["feeds"].get<int>(); ++k) ExpectDifferences(c, made, k, of);
  }
}

// Fluid's while_loop has no gradient: it returns the incoming gradient.
TEST(ControlGradient, LoopCarriedVariablesPropagateGradients) {
  const ControlCase c = LoadControlCase("while_loop_fn");
  const Program made = Differentiated(c, std::nullopt);
  for (int k = 0; k < c.json["feeds"].get<int>(); ++k) ExpectDifferences(c, made, k, {"x"});
}

}  // namespace
}  // namespace penstock::test
