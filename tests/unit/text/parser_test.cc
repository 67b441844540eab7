#include "framework/text/parser.h"

#include <gtest/gtest.h>

#include "framework/text/printer.h"

namespace penstock {
namespace {

Program Parse(std::string_view text) {
  Result<Program> program = ParseText(text, "test.ir");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return program.ok() ? *std::move(program) : Program();
}

// The message of the error, without the file's name.
std::string ErrorOf(std::string_view text) {
  const Result<Program> program = ParseText(text, "f");
  return program.ok() ? "no error" : program.status().message().substr(2);
}
std::string ErrorIn(std::string_view statement) {
  return ErrorOf("program\nblock 0 {\n" + std::string(statement) + "\n}\n");
}

TEST(Parser, ReadsTheExampleOfTheStyleGuideAndPrintsItBack) {
  constexpr std::string_view kExample = R"(program "fit_a_line"
block 0 {
  data x : f32[?, 13]
  data y : f32[?, 1]
  param w : f32[13, 1]
  persist lr : f32[1]
  h : f32[?, 1] = mul(X=x, Y=w) at "train.py:12 in model"
  d : f32[?, 1] = elementwise_sub(X=h, Y=y)
  loss : f32[1] = mean(X=d) @forward|loss
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0} @backward|loss
  (X@GRAD=d@GRAD : f32[?, 1]) = mean_grad(X=d, Out@GRAD=loss@GRAD) @backward
  (X@GRAD=h@GRAD : f32[?, 1], Y@GRAD=[]) = elementwise_sub_grad(X=h, Y=y, Out@GRAD=d@GRAD) @backward
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[13, 1]) = mul_grad(X=x, Y=w, Out@GRAD=h@GRAD) @backward(w, w@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr) @optimize(w, w@GRAD)
}
)";
  const Program program = Parse(kExample);
  EXPECT_EQ(PrintProgram(program, PrintOptions::Everything()), kExample);
  const Block& main = program.main();
  ASSERT_EQ(main.ops().size(), 8u);
  EXPECT_EQ(main.ops()[0].op->location(), "train.py:12 in model");
  EXPECT_EQ(static_cast<int>(main.ops()[3].op->role()), 257);
  EXPECT_TRUE(main.ops()[5].op->HasOutputSlot("Y@GRAD"));
  EXPECT_EQ(main.ops()[7].op->RolePairs(),
            (std::vector<std::pair<std::string, std::string>>{{"w", "w@GRAD"}}));
  EXPECT_TRUE(main.FindVar("w")->facts.is_parameter);
  EXPECT_TRUE(main.FindVar("x")->facts.is_data);
  EXPECT_TRUE(main.FindVar("lr")->persistable);
  EXPECT_EQ(main.FindVar("w@GRAD")->type->shape, Shape({13, 1}));
}

TEST(Parser, AStatementMayContinueInsideBrackets) {
  const Program program = Parse(R"(program
block 0 {
  # a comment
  a = op(
    X=[x,   # the first
       y],
    Z=z
  ) {
    k=[1,
       2]
  } @optimize(
    p, g)(q, h)
})");
  const Op& op = *program.main().ops()[0].op;
  EXPECT_EQ(op.Input("X"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(op.RolePairs().size(), 2u);
}

TEST(Parser, EveryKindOfAttribute) {
  const Program program = Parse(R"(program
block 0 {
  op() {i=-3, l=9223372036854775807l, f=1e-08, g=-inf, n=inf, s="a\"\n\u00e9\xff", t=true, b=^0,
        is=[1, 2], ls=[1l], fs=[0.5, -2.0], ss=["x", ""], bs=[true, false], ks=[^0, ^1],
        e1=[]:ints, e2=[]:longs, e3=[]:floats, e4=[]:strings, e5=[]:bools, e6=[]:blocks, "odd name"=1}
})");
  const Op& op = *program.main().ops()[0].op;
  EXPECT_EQ(*op.Get<std::int32_t>("i"), -3);
  EXPECT_EQ(*op.Get<std::int64_t>("l"), INT64_MAX);
  EXPECT_EQ(*op.Get<float>("f"), 1e-08f);
  EXPECT_EQ(*op.Get<std::string>("s"), "a\"\n\xc3\xa9\xff");
  EXPECT_EQ(op.Get<std::vector<BlockRef>>("ks")->at(1).index, 1);
  EXPECT_TRUE(op.Get<std::vector<std::int64_t>>("e2")->empty());
  EXPECT_NE(op.FindAttr("odd name"), nullptr);
  EXPECT_EQ(op.attrs().size(), 21u);
}

TEST(Parser, EveryKindOfVariableAndFlag) {
  constexpr std::string_view kText =
      R"(program "p" {version=1008005l, random_seed=7l, policies=["clip", "global"]}
block 0 {
  var c : control
  var r : rows<f32[?, 16]>
  persist t : rows
  var a : array<i64[?, 1]> lod=1
  var raw0 : raw
  var ss : step_scopes
  persist feed : feed
  persist fetch : fetch
  var table : rank_table
  var places : place_list
  var rd : reader of [f32[?, 3] lod=1, i64[?, 1]]
  var tup : tuple of [f32, i64, 7]
  data "w:0" : f32[?, 3, 0] lod=2 stop_gradient need_check_feed
  param w.block0 : f32[7, 2048] trainable=false learning_rate=0.5 distributed rows=[0, 7) of w[13, 2048]
  persist kept : f32[1] data
  var temporary : f32[1] parameter
}
block 1 in 0 {
}
block 2 in 0 forward 1 {
}
)";
  const Program program = Parse(kText);
  EXPECT_EQ(PrintProgram(program, PrintOptions::Everything()), kText);
  const VarFacts& facts = program.main().FindVar("w.block0")->facts;
  EXPECT_FALSE(facts.trainable);
  EXPECT_EQ(facts.learning_rate, 0.5f);
  EXPECT_EQ(facts.slice->row_end, 7);
  EXPECT_EQ(facts.slice->whole_shape, Shape({13, 2048}));
  EXPECT_EQ(program.block(2).forward_block(), 1);
  EXPECT_EQ(program.meta().policies.at("clip"), "global");
}

TEST(Parser, JobFactsAndChunksRoundTrip) {
  constexpr std::string_view kText =
      R"(program {job_facts="has random seed 1\n", chunk_rows=["a b", "1", "w.block1", "300"]}
block 0 {
}
)";
  const Program program = Parse(kText);
  EXPECT_EQ(program.meta().job_facts, "has random seed 1\n");
  EXPECT_EQ(program.meta().chunk_rows.at("w.block1"), 300);
  EXPECT_EQ(PrintProgram(program, PrintOptions::Everything()), kText);
  EXPECT_EQ(PrintProgram(program), "program\nblock 0 {\n}\n");
  for (const char* broken : {R"(["w"])", R"(["w", "1x"])", R"(["w", ""])", "3"}) {
    const std::string text = StrCat("program {chunk_rows=", broken, "}\nblock 0 {\n}\n");
    EXPECT_FALSE(ParseText(text, "test").ok()) << text;
  }
}

TEST(Parser, WordsOfTheGrammarAreNamesElsewhere) {
  const Program program = Parse(R"(program
block 0 {
  var var : f32[1]
  data : f32[1] = block(program=param, at=at) {target=1} target at "x" by "pass"
  persist(in=data)
})");
  EXPECT_EQ(program.main().ops().size(), 2u);
  EXPECT_EQ(program.main().ops()[0].op->type(), "block");
  EXPECT_TRUE(program.main().ops()[0].op->is_target());
  EXPECT_EQ(program.main().ops()[0].op->made_by(), "pass");
}

TEST(Parser, ErrorsShowPositionLineAndMarker) {
  const Result<Program> program = ParseText("program\nblock 0 {\n  data x : f32[?,, 3]\n}\n", "main.ir");
  EXPECT_EQ(program.status().ToString(),
            "main.ir:3:18: expected an extent or ?, found \",\"   [E-text-syntax]\n"
            "    data x : f32[?,, 3]\n"
            "                   ^");
}

// The error is the first one in the text, lexical or syntactic.
TEST(Parser, TheFirstErrorIsReported) {
  EXPECT_EQ(ParseText("program\nblock 0 {\n  a(\n$\n", "t").status().message(),
            "t:4:1: character \"$\" has no meaning here");
  EXPECT_EQ(ParseText("program\nblock 1 {\n  $\n", "t").status().message(),
            "t:2:7: this is block 0, but it says 1");
  EXPECT_EQ(ParseText("program\nblock 0 { }\n$", "t").status().message(),
            "t:3:1: character \"$\" has no meaning here");
}

TEST(Parser, ErrorsNameTheExpectedToken) {
  EXPECT_EQ(ErrorOf(""), "1:1: expected \"program\", found the end of the text");
  EXPECT_EQ(ErrorOf("program\n"), "2:1: expected \"block\", found the end of the text");
  EXPECT_EQ(ErrorOf("program {speed=1}\n"), "1:9: a program has no attribute speed of kind int");
  EXPECT_EQ(ErrorOf("program\nblock 1 {\n}\n"), "2:7: this is block 0, but it says 1");
  EXPECT_EQ(ErrorOf("program\nblock 0 in 0 {\n}\n"), "2:12: the parent's index is 0, not from -1 to -1");
  EXPECT_EQ(ErrorOf("program\nblock 0 {\n"), "3:1: block 0 has no closing \"}\"");
  EXPECT_EQ(ErrorIn("x : g32[1] = op()"), "3:5: expected a type, found \"g32\"");
  EXPECT_EQ(ErrorIn("var x : f32"), "3:12: expected \"[\", found the end of the line");
  EXPECT_EQ(ErrorIn("var x : control<f32[1]>"), "3:16: a control variable has no type");
  EXPECT_EQ(ErrorIn("var x : f32[1] blue"), "3:16: there is no flag blue");
  EXPECT_EQ(ErrorIn("var x : f32[1]\nx : f32[1] = op()"), "4:3: block 0 declares x twice");
  EXPECT_EQ(ErrorIn("var x : f32[1]\nvar x : f32[1]"), "4:1: block 0 declares x twice");
  EXPECT_EQ(ErrorIn("op(X=x : f32[1])"), "3:8: a type stands only where an op writes the variable");
  EXPECT_EQ(ErrorIn("op(X=x, X=y)"), "3:9: slot X is given twice");
  EXPECT_EQ(ErrorIn("op() {a=1, a=2}"), "3:12: attribute a is given twice");
  EXPECT_EQ(ErrorIn("op() {a=[1, 0.5]}"), "3:13: a list of ints cannot hold this float");
  EXPECT_EQ(ErrorIn("op() {a=[]}"), "3:9: an empty list needs its kind, as in []:ints");
  EXPECT_EQ(ErrorIn("op() {a=3000000000}"),
            "3:9: 3000000000 does not fit in an int; a long is written 3000000000l");
  EXPECT_EQ(ErrorIn("op() {a=99999999999999999999l}"), "3:9: 99999999999999999999 does not fit in 64 bits");
  EXPECT_EQ(ErrorIn("op() {a=1e99}"), "3:9: 1e99 does not fit in a float");
  EXPECT_EQ(ErrorIn("op() {a=12x}"), "3:9: a number cannot be read at \"12x\"");
  EXPECT_EQ(ErrorIn("op() {a=\"x}"), "3:9: the string has no closing quote on its line");
  EXPECT_EQ(ErrorIn("op() @sideways"),
            "3:7: expected forward, backward, optimize, rpc, dist, lr_sched or loss, found \"sideways\"");
  EXPECT_EQ(ErrorIn("op() {op_role=1} @backward"), "3:18: op_role is given as an attribute and after @");
  EXPECT_EQ(ErrorIn("op() op()"), "3:6: expected the end of the line, found \"op\"");
  EXPECT_EQ(ErrorIn("a = op(;)"), "3:8: character \";\" has no meaning here");
}

}  // namespace
}  // namespace penstock
