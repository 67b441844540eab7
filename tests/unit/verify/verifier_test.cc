#include "framework/verify/verifier.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"
#include "framework/verify/show_options.h"

namespace penstock {
namespace {

Program Parse(std::string_view text) {
  Result<Program> program = ParseText(text, "test");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return program.ok() ? *std::move(program) : Program();
}

// `text` with its only `from` replaced by `to`.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  return StrCat(text.substr(0, at), to, text.substr(at + from.size()));
}

// A registry of one op: Out has X's shape and type.
const OpRegistry& Squares() {
  static const OpRegistry* ops = [] {
    auto* registry = new OpRegistry();
    registry->Add("square")
        .Doc("The square of each element.", "")
        .Input("X", "any shape", Floats())
        .Output("Out", "X * X", SameTypeAs("X"))
        .Attr("times", 1, "how often", AtLeast(1))
        .InferShape(SameShape("X", "Out"));
    EXPECT_TRUE(registry->Finish().ok());
    return registry;
  }();
  return *ops;
}

TEST(Verifier, ProgramsOfUnknownOpsAreAccepted) {
  EXPECT_TRUE(
      VerifyProgram(Parse("program\nblock 0 {\n  data x : f32[?, 3]\n  y : f32[?] = strange(X=x)\n}\n"))
          .ok());
}

TEST(Verifier, AnErrorHasTheOpItsArgumentsAndTheUsersLine) {
  const Program program = Parse(R"(program
block 0 {
  data x : f32[?, 3]
  y : f32[?, 3] = square(X=nowhere, Y=x) {times=2} at "train.py:12 in model"
}
)");
  EXPECT_EQ(VerifyProgram(program).ToString(),
            "square: input X (nowhere) is not declared in block 0 or around it   [E-verify-undeclared]\n"
            "  op 0 of block 0:  y = square(X=nowhere, Y=x) {times=2}\n"
            "    X = nowhere : not declared\n"
            "    Y = x       : f32[?, 3]\n"
            "  written at train.py:12 in model");
}

TEST(Verifier, AGradientBlockSeesItsForwardBlock) {
  const Program program = Parse(R"(program
block 0 {
  data x : f32[3]
}
block 1 in 0 {
  h : f32[3] = square(X=x)
}
block 2 in 0 forward 1 {
  g : f32[3] = square_grad(X=h)
}
)");
  EXPECT_TRUE(VerifyProgram(program).ok()) << VerifyProgram(program).ToString();
}

// Fluid's recurrent_grad puts the gradient of a state into the step before.
TEST(Verifier, OpCreatedGradientsNeedNoDeclaration) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[3]
  run_grad() {sub_block=^2, states=["STATE"]}
}
block 1 in 0 {
  h : f32[3] = square(X=x)
}
block 2 in 0 forward 1 {
  g : f32[3] = square_grad(X=h@GRAD)
}
)";
  const Program of_h = Parse(Replaced(kText, "STATE", "h"));
  EXPECT_TRUE(VerifyProgram(of_h).ok()) << VerifyProgram(of_h).ToString();
  EXPECT_EQ(VerifyProgram(Parse(kText)).id(), "E-verify-undeclared");
}

// Fluid's recomputation declares a temporary as bool if it cannot infer its element type.
TEST(Verifier, BoolTemporariesMayHoldOtherTypes) {
  constexpr char kText[] = R"(program
block 0 {
  data x : f32[3]
  y : bool[3] = square(X=x)
  z : f32[3] = square(X=y)
}
)";
  EXPECT_TRUE(VerifyProgram(Parse(kText), {.ops = &Squares()}).ok())
      << VerifyProgram(Parse(kText), {.ops = &Squares()}).ToString();
  const Program before = Parse(kText);
  Program after = before;
  after.MutableBlock(0).RenameVar("z", "renamed");  // the op that makes y is not checked
  EXPECT_TRUE(VerifyProgram(after, {.ops = &Squares(), .before = &before}).ok());
  const Program kept = Parse(Replaced(kText, "  y : bool[3] =", "  persist y : bool[3]\n  y ="));
  EXPECT_EQ(VerifyProgram(kept, {.ops = &Squares()}).id(), "E-shape-square");
}

TEST(Verifier, CyclicForwardBlocksTerminate) {
  Program program = Parse("program\nblock 0 {\n}\nblock 1 in 0 forward 1 {\n  y : f32[1] = square(X=x)\n}\n");
  EXPECT_EQ(VerifyProgram(program).id(), "E-verify-undeclared");
  program.MutableBlock(0).set_forward_block(1);
  EXPECT_EQ(VerifyProgram(program).id(), "E-verify-undeclared");
}

TEST(Verifier, InvalidParentBlocksAreReportedFirst) {
  Program program = Parse("program\nblock 0 {\n}\nblock 1 in 0 {\n}\n");
  program.MutableBlock(1).set_parent(1);
  const std::vector<Status> found = FindViolations(program);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message(), "block 1 has parent 1; it must be one of 0 to 0");
}

TEST(Verifier, OnlyChangedOpsAreCheckedAgainstTheSchema) {
  Program before = Parse("program\nblock 0 {\n  data x : f32[3]\n  y : f32[3] = square(X=x) {times=0}\n}\n");
  Program after = before;
  after.MutableBlock(0).Append(Op("square").AddInput("X", {"x"}).AddOutput("Out", {"y"}).Set("times", 3));
  EXPECT_EQ(FindViolations(after, {.ops = &Squares()}).size(), 1u);
  EXPECT_TRUE(VerifyProgram(after, {.ops = &Squares(), .before = &before}).ok());
  after.MutableBlock(0).Append(Op("square").AddInput("X", {"x"}).AddOutput("Out", {"y"}).Set("times", -1));
  EXPECT_EQ(FindViolations(after, {.ops = &Squares(), .before = &before}).size(), 1u);
}

TEST(Verifier, UnreachableBlocksKeepTheirNames) {
  const Program before = Parse(
      "program\nblock 0 {\n  data x : f32[3]\n  g : f32[3] = square(X=x)\n}\n"
      "block 1 in 0 {\n  g = square(X=x)\n}\n");
  const Program after = Parse(
      "program\nblock 0 {\n  data x : f32[3]\n  g.trainer_0 : f32[3] = square(X=x)\n}\n"
      "block 1 in 0 {\n  g = square(X=x)\n}\n");
  EXPECT_TRUE(VerifyProgram(after, {.before = &before}).ok());
  EXPECT_EQ(FindViolations(after).size(), 1u);
}

TEST(Verifier, StopsAtTheGivenNumberOfFindings) {
  const Program program = Parse("program\nblock 0 {\n  a(X=b)\n  a(X=c)\n  a(X=d)\n}\n");
  EXPECT_EQ(FindViolations(program).size(), 3u);
  EXPECT_EQ(FindViolations(program, {.findings_max = 2}).size(), 2u);
}

TEST(ShowOptions, OmitSchemaDefaults) {
  const Program program =
      Parse("program\nblock 0 {\n  a = square(X=x) {times=1, other=1}\n  a = square(X=x) {times=2}\n}\n");
  EXPECT_EQ(PrintProgram(program, ShowOptions(Squares())),
            "program\nblock 0 {\n  a = square(X=x) {other=1}\n  a = square(X=x) {times=2}\n}\n");
}

}  // namespace
}  // namespace penstock
