#include "framework/text/printer.h"

#include <gtest/gtest.h>

#include "framework/text/describe.h"
#include "framework/text/json.h"
#include "framework/text/parser.h"

namespace penstock {
namespace {

TEST(Printer, OmitsDefaultsAndLocationsUnlessRequested) {
  Op op("mul");
  op.AddInput("X", {"x"}).AddOutput("Out", {"h"}).Set("axis", 1).SetRole(OpRole::kForward);
  op.Set(kRoleVarAttr, std::vector<std::string>()).Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
  op.Set(kCallstackAttr, std::vector<std::string>{"train.py"})
      .SetLocation("train.py:1 in f")
      .SetMadeBy("fuse");
  EXPECT_EQ(PrintOp(op), "h = mul(X=x) {axis=1}");
  EXPECT_EQ(PrintOp(op, PrintOptions::Everything()),
            "h = mul(X=x) {axis=1, op_role_var=[]:strings, op_namescope=\"/\", op_device=\"\", "
            "op_callstack=[\"train.py\"]} @forward at \"train.py:1 in f\" by \"fuse\"");
  PrintOptions no_axis;
  no_axis.is_default = [](const Op&, const NamedAttr& attr) { return attr.name == "axis"; };
  EXPECT_EQ(PrintOp(op, no_axis), "h = mul(X=x)");
}

TEST(Printer, AnUnnamedRoleIsPrintedAsAnAttribute) {
  Op op("op");
  op.Set(kRoleAttr, 512).Set(kRoleVarAttr, std::vector<std::string>{"a", "b"});
  EXPECT_EQ(PrintOp(op), "op() {op_role=512, op_role_var=[\"a\", \"b\"]}");
  op.SetRole(OpRole::kOptimize | OpRole::kLrSched).Set(kRoleVarAttr, std::vector<std::string>{"a", "b", "c"});
  EXPECT_EQ(PrintOp(op), "op() {op_role_var=[\"a\", \"b\", \"c\"]} @optimize|lr_sched");
  op.SetRole(OpRole::kForward).SetRolePair("@p", "g 1");
  EXPECT_EQ(PrintOp(op), "op() @forward(\"@p\", \"g 1\")");
}

TEST(Printer, ATypeIsPrintedAtTheFirstWrite) {
  Program program;
  Block& main = program.MutableBlock(0);
  main.SetVar(TensorVar("a", DType::kFp32, {2}));
  main.SetVar(TensorVar("b", DType::kFp32, {2}, 1));
  main.SetVar(TensorVar("never", DType::kInt64, {-1}));
  for (int i = 0; i < 2; ++i) main.Append(Op("op").AddOutput("Out", {"a", "b", "a"}));
  EXPECT_EQ(PrintProgram(program),
            "program\nblock 0 {\n  var b : f32[2] lod=1\n  var never : i64[?]\n"
            "  [a : f32[2], b, a] = op()\n  [a, b, a] = op()\n}\n");
  EXPECT_EQ(PrintOp(program, 0, *main.ops()[1].op), "[a : f32[2], b : f32[2], a : f32[2]] = op()");
}

TEST(Printer, FloatsAlwaysLookLikeFloats) {
  Op op("op");
  op.Set("v", std::vector<float>{1.0f, 0.1f, 1e-8f, 3e38f, -0.0f, 16777216.0f});
  EXPECT_EQ(PrintOp(op), "op() {v=[1.0, 0.1, 1e-08, 3e+38, -0.0, 16777216.0]}");
}

TEST(Describe, LongListsOfArgumentsAreCut) {
  Program program;
  Op op("sum");
  op.AddInput("X", std::vector<std::string>(500, "x"));
  const Status status = AtOp(InvalidArgument("E-x", "wrong"), program, 0, 0, op);
  EXPECT_LE(status.details().size(), 14u);
  EXPECT_TRUE(AtOp(OkStatus(), program, 0, 0, op).ok());
}

TEST(Json, KeepsWideIntegersFloatsAndBytesThatAreNotText) {
  Program program;
  Op op("op");
  op.Set("l", std::int64_t{9007199254740993})
      .Set("f", 0.1f)
      .Set("inf", -std::numeric_limits<float>::infinity());
  op.Set("s", "\xff\xfe").Set("big", 16777217.0f).Set("tiny", 1e-45f);
  program.MutableBlock(0).Append(op);
  program.MutableBlock(0).SetVar(TensorVar("x", DType::kFp32, {-1, 3}));
  program.mutable_meta().policies["a b"] = "c";
  const std::string json = ProgramToJson(program);
  EXPECT_NE(json.find("9007199254740993"), std::string::npos);
  EXPECT_NE(json.find("\"f\": 0.1"), std::string::npos);
  EXPECT_NE(json.find("\"hex\": \"fffe\""), std::string::npos);
  const Result<Program> back = ProgramFromJson(json, "test.json");
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(back->main().ops()[0].op->SameAs(op));
  EXPECT_EQ(back->meta().policies.at("a b"), "c");
  EXPECT_EQ(ProgramToJson(*back), json);
}

TEST(Json, ErrorsNameTheFileAndThePlace) {
  const auto error = [](std::string_view text) { return ProgramFromJson(text, "p.json").status().message(); };
  EXPECT_EQ(error("{\n  \"blocks\": [}"), "p.json:2:14: not JSON");
  EXPECT_EQ(error(""), "p.json:1:1: not JSON");
  EXPECT_EQ(error("[]"), "p.json: the document: expected an object");
  EXPECT_EQ(error("{\"loss\": 1}"), "p.json: loss: a ProgramDesc has no such field");
  EXPECT_EQ(error("{\"blocks\": [{\"idx\": 4294967296}]}"),
            "p.json: blocks[0].idx: 4294967296 does not fit in 32 bits");
  EXPECT_EQ(error("{\"blocks\": [{\"idx\": 0}]}"), "p.json: fields are missing: blocks[0].parent_idx");
  EXPECT_EQ(error("{\"blocks\": [{\"idx\": 0, \"parent_idx\": -1, \"vars\": [{\"name\": 3}]}]}"),
            "p.json: blocks[0].vars[0].name: expected a string, or {\"hex\": ...}");
  EXPECT_EQ(error("{\"version\": {\"version\": 1e999}}"), "p.json: not JSON that can be read");
  EXPECT_EQ(error("{}"), "p.json: the program is empty");
}

}  // namespace
}  // namespace penstock
