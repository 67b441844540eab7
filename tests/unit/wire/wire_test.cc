#include "framework/wire/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "extra.pb.h"
#include "framework.pb.h"
#include "framework/ir/unique_name.h"
#include "framework/wire/write.h"

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

TEST(WireTest, EveryKindOfAttributeRoundTrips) {
  const Program program = Sample();
  const Result<Program> back = ParseProgram(SerializeProgram(program));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(back->main().ops()[0].op->SameAs(*program.main().ops()[0].op));
  for (const VarRef& var : program.main().vars()) {
    ASSERT_NE(back->main().FindVar(var->name), nullptr) << var->name;
    EXPECT_TRUE(back->main().FindVar(var->name)->SameAs(*var)) << var->name;
  }
}

TEST(WireTest, UnknownAttributeKindsAreReported) {
  proto::ProgramDesc later;
  ASSERT_TRUE(later.ParseFromString(SerializeProgram(Sample())));
  auto& op = *later.mutable_blocks(0)->mutable_ops(0);
  op.set_type("assign_value");
  auto& attr = *op.add_attrs();
  attr.set_name("fp64_values");
  attr.GetReflection()->MutableUnknownFields(&attr)->AddVarint(2, 12);  // the field `type`
  const Result<Program> read = ParseProgram(later.SerializePartialAsString());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().id(), "E-program-attr");
  EXPECT_NE(read.status().message().find("attribute \"fp64_values\" of op \"assign_value\" has a kind (12)"),
            std::string::npos)
      << read.status().message();
}

TEST(WireTest, UnknownFieldsOfUnchangedOpsArePreserved) {
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

std::string Field(int number, std::string_view bytes) {
  std::string field;
  wire::AppendTextField(number, bytes, field);
  return field;
}

// A program with one item, as field `number` of its block.
std::string ProgramOf(int number, const std::string& item) {
  return Field(1,
               std::string("\x08\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13) + Field(number, item));
}

// Fields in canonical form need not be kept; others are written back unchanged.
TEST(WireTest, NonCanonicalBytesArePreserved) {
  constexpr int kVars = 3, kOps = 4;
  const std::string x = Field(1, "X"), a = Field(2, "a"), type = Field(3, "mul");
  const std::string attr = Field(1, "n") + "\x10" + '\0';  // an int, without its value
  const struct {
    const char* what;
    int number;
    std::string item;
    bool kept;
  } cases[] = {
      {"an op", kOps, Field(1, x + a + a) + Field(2, x) + type + Field(4, attr + "\x18\x05") + "\x28\x01",
       false},
      {"the type before the slots", kOps, type + Field(1, x + a), true},
      {"two types", kOps, Field(3, "add") + type, true},
      {"an argument before the slot's name", kOps, Field(1, a + x) + type, true},
      {"a slot with two names", kOps, Field(1, Field(1, "Y") + x + a) + type, true},
      {"a slot that comes twice", kOps, Field(1, x) + Field(1, x + a) + type, true},
      {"an attribute that comes twice", kOps,
       type + Field(4, attr + "\x18\x05") + Field(4, attr + "\x18\x06"), true},
      {"an attribute with two values", kOps, type + Field(4, attr + "\x18\x05\x18\x06"), true},
      {"an attribute without a value", kOps, type + Field(4, attr), true},
      {"a number with a byte more than it needs", kOps,
       type + Field(4, attr + "\x18" + std::string("\x85\x00", 2)), true},
      {"an int of more than 32 bits", kOps, type + Field(4, attr + "\x18\xff\xff\xff\xff\x0f"), true},
      {"a negative int", kOps, type + Field(4, attr + "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false},
      {"a flag that is 2", kOps, type + Field(4, Field(1, "n") + "\x10\x06" + "\x50\x02"), true},
      {"a list of flags, one of them 2", kOps,
       type + Field(4, Field(1, "n") + "\x10\x07" + "\x58\x01\x58\x02"), true},
      {"a list of longs", kOps, type + Field(4, Field(1, "n") + "\x10\x0b" + "\x78\x01\x78\x02"), false},
      {"no target, and said so", kOps, type + std::string("\x28\x00", 2), true},
      {"a target twice", kOps, type + "\x28\x01\x28\x01", true},
      {"a variable", kVars,
       Field(1, "v") + Field(2, "\x08\x07" + Field(3, Field(1, "\x08\x05\x10\x03"))) + "\x18\x01", false},
      {"a control variable", kVars, Field(1, "v") + Field(2, "\x08\x07"), false},
      {"the type before the name", kVars, Field(2, "\x08\x07") + Field(1, "v"), true},
      {"two names", kVars, Field(1, "u") + Field(1, "v") + Field(2, "\x08\x07"), true},
      {"extents before the element type", kVars,
       Field(1, "v") + Field(2, "\x08\x07" + Field(3, Field(1, "\x10\x03\x08\x05"))), true},
      {"two element types", kVars,
       Field(1, "v") + Field(2, "\x08\x07" + Field(3, Field(1, "\x08\x05\x08\x05"))), true},
      {"two LoD levels", kVars,
       Field(1, "v") + Field(2, "\x08\x07" + Field(3, Field(1, "\x08\x05") + "\x10\x01\x10\x01")), true},
      {"an array's description on a tensor", kVars,
       Field(1, "v") + Field(2, "\x08\x07" + Field(4, Field(1, "\x08\x05"))), true},
      {"persistable, as 2", kVars, Field(1, "v") + Field(2, "\x08\x07") + "\x18\x02", true},
      {"persistable twice", kVars, Field(1, "v") + Field(2, "\x08\x07") + "\x18\x01\x18\x01", true},
      {"fed before persistable", kVars, Field(1, "v") + Field(2, "\x08\x07") + "\x20\x01\x18\x01", true},
  };
  for (const auto& item : cases) {
    const std::string bytes = ProgramOf(item.number, item.item);
    const Result<Program> program = ParseProgram(bytes);
    ASSERT_TRUE(program.ok()) << item.what << ": " << program.status().ToString();
    EXPECT_TRUE(SerializeProgram(*program) == bytes) << item.what;
    const std::string& kept = item.number == kOps ? program->main().ops()[0].op->wire_bytes()
                                                  : program->main().vars()[0]->wire_bytes.str();
    EXPECT_EQ(kept, item.kept ? item.item : "") << item.what;
  }
}

TEST(WireTest, FactsUseTheExtensionOnlyIfPresent) {
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

TEST(WireTest, FactsEncodeLikeProtobuf) {
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
  program.mutable_meta().job_facts = "has random seed 1\n";
  program.mutable_meta().chunk_rows = {{"w.block1", 300}, {"a b", 1}};
  proto::ProgramDesc desc;
  const std::string bytes = SerializeProgram(program);
  ASSERT_TRUE(desc.ParseFromString(bytes));
  const proto::ProgramExtra& extra = desc.GetExtension(proto::extra);
  EXPECT_EQ(extra.blocks(0).vars(0).slice().row_end(), 153);
  EXPECT_EQ(extra.blocks(0).ops(0).index(), 1);
  const Result<Program> back = ParseProgram(bytes);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->meta().job_facts, program.meta().job_facts);
  EXPECT_EQ(back->meta().chunk_rows, program.meta().chunk_rows);
  std::string again;
  {
    google::protobuf::io::StringOutputStream stream(&again);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    ASSERT_TRUE(desc.SerializeToCodedStream(&out));
  }
  EXPECT_EQ(again, bytes);
}

// Fluid keeps unknown fields unchanged.
TEST(WireTest, FactsOfRemovedItemsAreDropped) {
  Program program;
  Var kept = TensorVar("kept", DType::kFp32, {1}), gone = TensorVar("gone", DType::kFp32, {1});
  kept.facts.stop_gradient = gone.facts.stop_gradient = true;
  program.MutableBlock(0).SetVar(kept);
  program.MutableBlock(0).SetVar(gone);
  for (const char* type : {"first", "second", "third"}) {
    program.MutableBlock(0).Append(Op(type).SetLocation(StrCat("train.py: ", type)));
  }
  program.AddBlock(0);
  program.MutableBlock(1).Append(Op("inner").SetLocation("train.py: inner"));
  proto::ProgramDesc desc;
  ASSERT_TRUE(desc.ParseFromString(SerializeProgram(program)));
  desc.mutable_blocks(0)->mutable_ops()->DeleteSubrange(1, 1);
  desc.mutable_blocks(0)->mutable_vars()->DeleteSubrange(1, 1);
  const Result<Program> back = ParseProgram(desc.SerializeAsString());
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(back->main().FindVar("kept")->facts.stop_gradient);
  EXPECT_EQ(back->main().ops()[1].op->type(), "third");
  EXPECT_EQ(back->main().ops()[1].op->location(), "") << "whose it is, is not known";
  EXPECT_EQ(back->block(1).ops()[0].op->location(), "train.py: inner");
  desc.mutable_blocks()->DeleteSubrange(1, 1);
  EXPECT_TRUE(ParseProgram(desc.SerializeAsString()).ok());
}

TEST(WireTest, TruncationsNeverCrash) {
  const std::string bytes = SerializeProgram(Sample());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const Result<Program> program = ParseProgram(std::string_view(bytes).substr(0, n));
    if (!program.ok()) {
      EXPECT_FALSE(program.status().id().empty());
    }
  }
}

// Processes the last piece first, as threads may.
class Backwards : public ThreadPool {
 public:
  int threads() const override { return 2; }
  void ForEach(std::size_t count, const std::function<void(std::size_t)>& work) override {
    most_ = std::max(most_, count);
    for (std::size_t i = count; i > 0; --i) work(i - 1);
  }
  std::size_t most() const { return most_; }

 private:
  std::size_t most_ = 0;
};

// Several ranges of the bytes.
Program Long() {
  Program program;
  Block& block = program.MutableBlock(0);
  for (int i = 0; i < 3000; ++i) {
    Var var = TensorVar(StrCat("v", i), DType::kFp32, {i, 4});
    var.facts.stop_gradient = i % 3 == 0;
    block.SetVar(std::move(var));
    Op op("scale");
    op.AddInput("X", {StrCat("v", i)})
        .AddOutput("Out", {StrCat("v", i + 1)})
        .Set("text", std::string(99, 't'));
    block.Append(std::move(op.SetLocation(StrCat("train.py:", i))));
  }
  block.SetVar(TensorVar("v3000", DType::kFp32, {4}));
  return program;
}

TEST(WireTest, ParallelReadingEqualsSerialReading) {
  const std::string bytes = SerializeProgram(Long());
  Backwards threads;
  const Result<Program> read = ParseProgram(bytes, &threads);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_GE(threads.most(), 3u);
  EXPECT_TRUE(SerializeProgram(*read) == bytes);
  ASSERT_EQ(read->main().vars().size(), 3001u);
  EXPECT_EQ(read->main().vars()[2999]->name, "v2999");
  EXPECT_TRUE(read->main().vars()[2997]->facts.stop_gradient);
  ASSERT_EQ(read->main().ops().size(), 3000u);
  EXPECT_EQ(read->main().ops()[2999].op->location(), "train.py:2999");
  EXPECT_TRUE(SerializeProgram(*ParseProgram(bytes)) == bytes);
}

TEST(WireTest, ParallelReadingReportsTheFirstError) {
  proto::ProgramDesc desc;
  ASSERT_TRUE(desc.ParseFromString(SerializeProgram(Long())));
  for (const int i : {10, 2990}) desc.mutable_blocks(0)->mutable_ops(i)->clear_type();
  const std::string bytes = desc.SerializePartialAsString();
  Backwards threads;
  const Result<Program> read = ParseProgram(bytes, &threads);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().ToString(), ParseProgram(bytes).status().ToString());
  EXPECT_NE(read.status().ToString().find("op 10 of block 0"), std::string::npos) << read.status().ToString();
}

TEST(WireTest, ParallelReadingReportsDuplicateVariables) {
  proto::ProgramDesc desc;
  ASSERT_TRUE(desc.ParseFromString(SerializeProgram(Long())));
  desc.mutable_blocks(0)->mutable_vars(2990)->set_name("v7");
  Backwards threads;
  const Result<Program> read = ParseProgram(desc.SerializeAsString(), &threads);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(), "block 0 declares \"v7\" twice");
}

TEST(WireTest, ABlockThatIsItsOwnParentIsRefused) {
  Program program = Sample();
  program.AddBlock(0).set_parent(1);
  const Result<Program> back = ParseProgram(SerializeProgram(program));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.status().message(), "block 1 has parent 1; a parent comes before its block");
}

TEST(UniqueNamesTest, CountsEachKeySeparately) {
  UniqueNames names;
  EXPECT_EQ(names.Generate("fc"), "fc_0");
  EXPECT_EQ(names.Generate("fc"), "fc_1");
  EXPECT_EQ(names.Generate("conv2d"), "conv2d_0");
  names.Set("fc", 7);
  EXPECT_EQ(names.Generate("fc"), "fc_7");
}

}  // namespace
}  // namespace penstock
