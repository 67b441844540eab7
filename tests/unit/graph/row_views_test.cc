// Which temporaries of a block are views, as derived from the declarations of its ops; runs no kernel.
#include "executor/graph/row_views.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"

namespace penstock::exec {
namespace {

void Declare(OpRegistry& ops) {
  ops.Add("make")
      .Doc("Makes.", "")
      .Input("X", "", AnyType(), Optional())
      .Output("Out", "", AnyType())
      .NoGrad();
  ops.Add("cut")
      .Doc("Cuts.", "")
      .Input("X", "", AnyType())
      .Output("Out", "", AnyType(), Repeated())
      .Attr("columns", false, "")
      .PartsAreRows({.whole = "X",
                     .parts = "Out",
                     .when = [](const Op& op) { return !op.GetOr<bool>("columns", false); }})
      .NoGrad();
  ops.Add("join")
      .Doc("Joins.", "")
      .Input("X", "", AnyType(), Repeated())
      .Output("Out", "", AnyType())
      .PartsAreRows({.whole = "Out", .parts = "X"})
      .NoGrad();
  ops.Add("send").Doc("Sends.", "").Input("X", "", AnyType(), Repeated()).Affects({Effect::kStep}).NoGrad();
  ops.Add("recv")
      .Doc("Receives.", "")
      .Output("Out", "", AnyType(), Repeated())
      .Affects({Effect::kStep})
      .NoGrad();
  ops.Add("loop").Doc("Runs a block.", "").Attr("sub_block", BlockRef{}, "").NoGrad();
}

const OpRegistry& Ops() {
  static const OpRegistry* ops = [] {
    auto* made = new OpRegistry;
    Declare(*made);
    PENSTOCK_CHECK(made->Finish().ok(), "the declarations are right");
    return made;
  }();
  return *ops;
}

std::shared_ptr<const CompiledBlock> Compile(const std::string& ops, std::vector<std::string> fetches = {}) {
  const std::string text =
      StrCat("program\nblock 0 {\n  param w : f32[4, 2]\n  var g : f32[4, 2]\n  var g0 : f32[2, 2]\n",
             "  var g1 : f32[2, 2]\n  var w0 : f32[2, 2]\n  var w1 : f32[2, 2]\n  var a : f32[2, 2]\n", ops);
  const Result<Program> program =
      ParseText(StrCat(text, ops.find("block 1") < ops.size() ? "" : "}\n"), "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  auto block = CompileBlock(Ops(), *program, {.fetches = std::move(fetches)});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  return *std::move(block);
}

// "g0 of g, g1 of g"
std::string Views(const std::string& ops, std::vector<std::string> fetches = {}) {
  const auto block = Compile(ops, std::move(fetches));
  std::vector<std::string> views;
  for (const SlotInfo& slot : block->slots) {
    if (slot.view_of < 0) continue;
    views.push_back(StrCat(slot.name, " of ", block->slots[static_cast<std::size_t>(slot.view_of)].name));
  }
  return Join(views, ", ");
}

const SlotInfo& SlotNamed(const CompiledBlock& block, const std::string& name) {
  return *std::ranges::find(block.slots, name, &SlotInfo::name);
}

constexpr char kCut[] = "  g = make()\n  [g0, g1] = cut(X=g)\n";
constexpr char kSend[] = "  send(X=[g0, g1])\n";
constexpr char kJoin[] = "  w = join(X=[w0, w1])\n";
constexpr char kRecv[] = "  [w0, w1] = recv()\n";

TEST(RowViews, SlicesAreViewsOfTheWhole) { EXPECT_EQ(Views(StrCat(kCut, kSend)), "g0 of g, g1 of g"); }

TEST(RowViews, ViewsKeepTheWholeAlive) {
  const auto block = Compile(StrCat(kCut, "  a = make(X=g0)\n", kSend));
  EXPECT_EQ(SlotNamed(*block, "g").last_use, 3);
  EXPECT_TRUE(SlotNamed(*block, "g").kept);
  const auto unsent = Compile(StrCat(kCut, "  a = make(X=g0)\n"));
  EXPECT_EQ(SlotNamed(*unsent, "g").last_use, 2);
  EXPECT_FALSE(SlotNamed(*unsent, "g").kept);
}

TEST(RowViews, APartMayBeReadAndSentSeveralTimes) {
  EXPECT_EQ(Views(StrCat(kCut, kSend, "  a = make(X=g1)\n", kSend)), "g0 of g, g1 of g");
}

TEST(RowViews, AnOverwrittenPartIsACopy) {
  EXPECT_EQ(Views(StrCat(kCut, "  g0 = make(X=g0)\n", kSend)), "g1 of g");
}

TEST(RowViews, SlicesOfALaterOverwrittenTensorAreCopies) {
  EXPECT_EQ(Views(StrCat(kCut, kSend, "  g = make()\n")), "");
}

TEST(RowViews, SlicesOfAParameterAreCopies) {
  EXPECT_EQ(Views(StrCat("  [g0, g1] = cut(X=w)\n", kSend)), "");
}

TEST(RowViews, FetchedVariablesAreCopies) {
  EXPECT_EQ(Views(StrCat(kCut, kSend), {"g0"}), "g1 of g");
  EXPECT_EQ(Views(StrCat(kCut, kSend), {"g"}), "");
  EXPECT_EQ(Views(StrCat(kRecv, kJoin), {"w1"}), "w0 of w");
}

TEST(RowViews, SplitsAlongOtherAxesAreCopies) {
  EXPECT_EQ(Views(StrCat("  g = make()\n  [g0, g1] = cut(X=g) {columns=true}\n", kSend)), "");
}

TEST(RowViews, ReceivedSlicesAreViewsOfTheParameter) {
  EXPECT_EQ(Views(StrCat(kRecv, kJoin)), "w0 of w, w1 of w");
  EXPECT_EQ(Views(StrCat(kRecv, kRecv, kJoin, "  a = make(X=w)\n")), "w0 of w, w1 of w")
      << "fetch_barrier names what recv does";
}

TEST(RowViews, AReceivedPartUsedByAnotherOpIsACopy) {
  EXPECT_EQ(Views(StrCat(kRecv, "  a = make(X=w0)\n", kJoin)), "w1 of w");
  EXPECT_EQ(Views(StrCat(kRecv, kJoin, "  a = make(X=w0)\n")), "w1 of w");
  EXPECT_EQ(Views(StrCat(kRecv, "  w0 = make()\n", kJoin)), "w1 of w");
  EXPECT_EQ(Views(StrCat(kRecv, kJoin, kRecv)), "");
  EXPECT_EQ(Views(StrCat(kRecv, "  w = join(X=[w0, w0])\n")), "");
}

TEST(RowViews, AParameterUsedBeforeConcatIsNotReceivedInto) {
  EXPECT_EQ(Views(StrCat("  w0 = recv()\n  g = make(X=w)\n  w1 = recv()\n", kJoin)), "w1 of w");
  EXPECT_EQ(Views(StrCat(kRecv, "  w = make()\n", kJoin)), "");
  EXPECT_EQ(Views(StrCat("  w = make()\n  g = make(X=w)\n", kRecv, kJoin)), "w0 of w, w1 of w");
}

TEST(RowViews, ASentParameterIsNotReceivedInto) {
  EXPECT_EQ(Views(StrCat(kRecv, kJoin, "  send(X=w)\n")), "");
}

TEST(RowViews, ABlockRunBetweenReceiveAndConcatPreventsViews) {
  EXPECT_EQ(Views(StrCat(kRecv, "  loop() {sub_block=^1}\n", kJoin, "}\nblock 1 in 0 {\n}\n")), "");
  EXPECT_EQ(Views(StrCat("  loop() {sub_block=^1}\n", kRecv, kJoin, "}\nblock 1 in 0 {\n}\n")),
            "w0 of w, w1 of w");
}

TEST(RowViews, VariablesUsedByABlockAreCopies) {
  const std::string block = "}\nblock 1 in 0 {\n  g0 = make(X=g0)\n}\n";
  EXPECT_EQ(Views(StrCat(kCut, "  loop() {sub_block=^1}\n", kSend, block)), "g1 of g");
}

TEST(RowViews, ASliceOfAViewIsACopy) {
  EXPECT_EQ(Views(StrCat(kCut, kSend, "  [w0, w1] = cut(X=g0)\n  send(X=w0)\n")), "g0 of g, g1 of g");
}

}  // namespace
}  // namespace penstock::exec
