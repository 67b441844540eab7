// Which instructions and fetches concern the first of several places alone.
#include "executor/graph/first_place.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/graph/specialise.h"
#include "framework/roles/attr_names.h"
#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

using test::ToyProgram;

// w = w - scaled, with scaled = (x + x) + x; only the update is marked.
ToyProgram Updating() {
  ToyProgram p;
  p.Data("x", {2});
  p.Persistable("w", {2});
  for (const char* name : {"twice", "scaled", "shown", "of_w"}) p.Temporary(name, {2});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "twice"}});
  p.Add("toy_add", {{"X", "twice"}, {"Y", "x"}}, {{"Out", "scaled"}});
  p.Add("toy_step", {{"Param", "w"}, {"Grad", "scaled"}}, {{"ParamOut", "w"}}, 0,
        {{std::string(roles::attr::kFirstPlace), true}});
  p.Add("toy_add", {{"X", "w"}, {"Y", "x"}}, {{"Out", "of_w"}});
  return p;
}

std::shared_ptr<const CompiledBlock> Compiled(const ToyProgram& p, std::vector<std::string> fetches) {
  auto block = CompileBlock(test::ToyOps(), p.program, {.feeds = {"x"}, .fetches = std::move(fetches)});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  return *std::move(block);
}

// The outputs of the marked instructions.
std::string Marked(const CompiledBlock& block) {
  std::string names;
  for (const Instruction& instruction : block.instructions) {
    if (instruction.of_first_place) names += instruction.op->outputs().front().args.front() + " ";
  }
  return names;
}

TEST(FirstPlace, AloneComputesInputsOfItsUpdates) {
  EXPECT_EQ(Marked(*Compiled(Updating(), {"of_w"})), "twice scaled w ");
}

TEST(FirstPlace, FetchedOrSharedValuesAreComputedEverywhere) {
  EXPECT_EQ(Marked(*Compiled(Updating(), {"scaled"})), "w ");
  ToyProgram p = Updating();
  p.Add("toy_add", {{"X", "twice"}, {"Y", "x"}}, {{"Out", "shown"}});
  EXPECT_EQ(Marked(*Compiled(p, {"shown"})), "scaled w ");
  p.Add("toy_send", {{"X", "scaled"}}, {});
  EXPECT_EQ(Marked(*Compiled(p, {"shown"})), "w ");
}

TEST(FirstPlace, AloneComputesReadersOfItsTemporaries) {
  ToyProgram p;
  p.Data("x", {2});
  p.Temporary("rate", {2});
  p.Temporary("shown", {2});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "rate"}}, 0,
        {{std::string(roles::attr::kFirstPlace), true}});
  p.Add("toy_add", {{"X", "rate"}, {"Y", "x"}}, {{"Out", "shown"}});
  const auto block = Compiled(p, {"shown"});
  EXPECT_EQ(Marked(*block), "rate shown ");
  EXPECT_TRUE(FetchesOfLaterPlaces(*block).empty());
}

TEST(FirstPlace, LaterPlacesDoNotFetchItsOutputs) {
  const auto block = Compiled(Updating(), {"w", "x", "of_w", "scaled"});
  EXPECT_EQ(FetchesOfLaterPlaces(*block), (std::vector<int>{1, 2, 3}));
}

TEST(FirstPlace, NothingChangesWithoutMarks) {
  ToyProgram p;
  p.Data("x", {2});
  p.Temporary("out", {2});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "out"}});
  const auto block = Compiled(p, {"out"});
  EXPECT_EQ(MarkedOfFirstPlace(block), block);
}

std::vector<TensorDesc> KnownOf(const CompiledBlock& block) {
  std::vector<TensorDesc> known;
  for (const SlotInfo& slot : block.slots) known.push_back(DescOf(*slot.var));
  return known;
}

TEST(PrepareKernels, CreatesTheKernelsOfAnotherFrame) {
  const auto block = Compiled(Updating(), {"of_w"});
  auto made = Specialise(block, KnownOf(*block), Services());
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const int before = test::PrepareCount();
  auto again = PrepareKernels(*made->plan, Services());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(test::PrepareCount() - before, 3);  // of toy_add
  ASSERT_EQ(again->size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE((*again)[i], nullptr);
    EXPECT_NE((*again)[i], made->kernels[i]);
  }
}

TEST(PrepareKernels, OmitsKernelsOfTheFirstPlaceOnLaterPlaces) {
  const auto block = Compiled(Updating(), {"scaled", "of_w"});
  auto made = Specialise(block, KnownOf(*block), Services());
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  auto later = PrepareKernels(*made->plan, Services(), PlaceKind::kLater);
  ASSERT_TRUE(later.ok()) << later.status().ToString();
  const auto present = [](const Kernels& kernels) {
    std::string text;
    for (const auto& kernel : kernels) text += kernel == nullptr ? '-' : 'k';
    return text;
  };
  EXPECT_EQ(present(*later), "kk-k");
  RemoveKernelsOfFirstPlace(*made->plan, made->kernels);
  EXPECT_EQ(present(made->kernels), "kk-k");
}

}  // namespace
}  // namespace penstock::exec
