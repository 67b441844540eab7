#include "framework/ir/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "extra.pb.h"
#include "framework/ir/unique_name.h"

namespace penstock {
namespace {

Program Sample() {
  Program program;
  program.mutable_meta().version = 1008005;
  Block& main = program.MutableBlock(0);
  main.SetVar(TensorVar("x", DType::kFp32, {kUnknownDim, 13}));
  Var w = TensorVar("w", DType::kFp32, {13, 1});
  w.persistable = true;
  main.SetVar(w);
  main.SetVar(ControlVar("done"));
  Op op("mul");
  op.AddInput("X", {"x"}).AddInput("Y", {"w"}).AddOutput("Out", {"h"});
  op.Set("axis", std::int32_t{-1})
      .Set("eps", 0.5f)
      .Set("name", "text")
      .Set("ints", std::vector<std::int32_t>{1, -2});
  op.Set("floats", std::vector<float>{0.25f})
      .Set("strings", std::vector<std::string>{"a", ""})
      .Set("flag", true);
  op.Set("flags", std::vector<bool>{true, false}).Set("body", BlockRef{1}).Set("long", std::int64_t{1} << 40);
  op.Set("blocks", std::vector<BlockRef>{{1}, {2}}).Set("longs", std::vector<std::int64_t>{-1, 5});
  main.Append(std::move(op));
  return program;
}

TEST(WireTest, EveryKindOfAttributeComesBack) {
  const Program program = Sample();
  const Result<Program> back = ParseProgram(SerializeProgram(program));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(back->main().ops()[0].op->SameAs(*program.main().ops()[0].op));
  for (const VarRef& var : program.main().vars()) {
    ASSERT_NE(back->main().FindVar(var->name), nullptr) << var->name;
    EXPECT_TRUE(back->main().FindVar(var->name)->SameAs(*var)) << var->name;
  }
}

TEST(WireTest, UnknownFieldsOfAnUntouchedOpArePutBack) {
  std::string bytes = SerializeProgram(Sample());
  Result<Program> program = ParseProgram(bytes);
  ASSERT_TRUE(program.ok());
  // An op with an unknown field 99 (varint 7) at its end.
  Op op = *program->main().ops()[0].op;
  op.set_wire_bytes(SerializeOp(op) + std::string("\x98\x06\x07", 3));
  program->MutableBlock(0).Replace(program->main().ops()[0].id, op);
  bytes = SerializeProgram(*program);
  const Result<Program> back = ParseProgram(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(SerializeProgram(*back), bytes);
}

TEST(WireTest, FactsTravelInTheExtensionAndOnlyIfThereAreAny) {
  Program program = Sample();
  const std::string plain = SerializeProgram(program);
  EXPECT_EQ(plain, SerializeProgram(program, {.extra = false}));
  Var w = *program.main().FindVar("w");
  w.facts.is_parameter = true;
  w.facts.learning_rate = 0.5f;
  w.facts.slice = InitialSlice{"whole", {26, 1}, 13, 26};
  program.MutableBlock(0).SetVar(w);
  Op op = *program.main().ops()[0].op;
  op.SetLocation("train.py:12 in model").SetMadeBy("pass");
  program.MutableBlock(0).Replace(program.main().ops()[0].id, op);
  program.mutable_meta().policies["bn_sync"] = "none";
  const Result<Program> back = ParseProgram(SerializeProgram(program));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->main().FindVar("w")->facts, w.facts);
  EXPECT_EQ(back->main().ops()[0].op->location(), "train.py:12 in model");
  EXPECT_EQ(back->main().ops()[0].op->made_by(), "pass");
  EXPECT_EQ(back->meta().policies.at("bn_sync"), "none");
  EXPECT_EQ(SerializeProgram(*back, {.extra = false}), plain);
}

TEST(WireTest, FactsAreWrittenAsProtobufWritesThem) {
  Program program;
  Var var = TensorVar("w", DType::kFp32, {3, 5});
  var.facts = {.is_parameter = true,
               .trainable = false,
               .is_distributed = true,
               .learning_rate = 0.5f,
               .stop_gradient = true,
               .is_data = true,
               .slice = InitialSlice{"whole", {300, 5}, 150, 153}};
  program.MutableBlock(0).SetVar(var);
  program.MutableBlock(0).SetVar(TensorVar("plain", DType::kFp32, {1}));
  program.MutableBlock(0).Append(Op("plain"));
  program.MutableBlock(0).Append(
      Op("marked").SetLocation(std::string(200, 'x')).SetMadeBy("a_pass_with_a_name"));
  program.AddBlock(0);
  program.mutable_meta().plan = std::string(70000, 'p');
  program.mutable_meta().name = "n";
  program.mutable_meta().random_seed = -3;
  program.mutable_meta().policies = {{"bn_sync", "average"}, {"a", ""}};
  proto::ProgramDesc desc;
  const std::string bytes = SerializeProgram(program);
  ASSERT_TRUE(desc.ParseFromString(bytes));
  const proto::ProgramExtra& extra = desc.GetExtension(proto::extra);
  EXPECT_EQ(extra.blocks(0).vars(0).slice().row_end(), 153);
  EXPECT_EQ(extra.blocks(0).ops(0).index(), 1);
  std::string again;
  {
    google::protobuf::io::StringOutputStream stream(&again);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    ASSERT_TRUE(desc.SerializeToCodedStream(&out));
  }
  EXPECT_EQ(again, bytes);
}

TEST(WireTest, EveryTruncationIsAnErrorOrAnotherProgramNeverACrash) {
  const std::string bytes = SerializeProgram(Sample());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const Result<Program> program = ParseProgram(std::string_view(bytes).substr(0, n));
    if (!program.ok()) {
      EXPECT_FALSE(program.status().id().empty());
    }
  }
}

TEST(WireTest, ABlockThatIsItsOwnParentIsRefused) {
  Program program = Sample();
  program.AddBlock(0).set_parent(1);
  const Result<Program> back = ParseProgram(SerializeProgram(program));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.status().message(), "block 1 has parent 1; a parent comes before its block");
}

TEST(UniqueNamesTest, CountsEachKeyByItself) {
  UniqueNames names;
  EXPECT_EQ(names.Generate("fc"), "fc_0");
  EXPECT_EQ(names.Generate("fc"), "fc_1");
  EXPECT_EQ(names.Generate("conv2d"), "conv2d_0");
  names.Set("fc", 7);
  EXPECT_EQ(names.Generate("fc"), "fc_7");
}

}  // namespace
}  // namespace penstock
