// parse(print(p)) == p for random programs of every kind, and the same for the binary form and JSON.
#include <gtest/gtest.h>

#include "framework.pb.h"
#include "framework/text/json.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"
#include "tests/support/program_files.h"
#include "tests/support/random_program.h"

namespace penstock {
namespace {

constexpr std::uint64_t kSeeds = 3000;
constexpr std::uint64_t kJsonSeeds = 500;  // JSON is slower by an order of magnitude

class AnyProgram : public testing::Test {
 protected:
  template <typename Check>
  void ForEachSeed(const Check& check, std::uint64_t seeds = kSeeds) {
    for (std::uint64_t seed = 0; seed < seeds && !HasFailure(); ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      check(test::RandomProgram(seed));
    }
  }
};

TEST_F(AnyProgram, RoundTripsThroughText) {
  ForEachSeed([](const Program& program) {
    const std::string text = PrintProgram(program, PrintOptions::Everything());
    const Result<Program> read = ParseText(text, "text");
    ASSERT_TRUE(read.ok()) << read.status().ToString() << "\n" << text;
    EXPECT_EQ(test::Difference(program, *read), "") << text;
    EXPECT_EQ(PrintProgram(*read, PrintOptions::Everything()), text);
  });
}

TEST_F(AnyProgram, ShownTextParses) {
  ForEachSeed([](const Program& program) {
    const std::string text = PrintProgram(program);
    const Result<Program> read = ParseText(text, "text");
    ASSERT_TRUE(read.ok()) << read.status().ToString() << "\n" << text;
    EXPECT_EQ(PrintProgram(*read), text);
  });
}

TEST_F(AnyProgram, RoundTripsThroughBinary) {
  ForEachSeed([](const Program& program) {
    const std::string bytes = SerializeProgram(program);
    const Result<Program> read = ParseProgram(bytes);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(test::Difference(program, *read), "");
    EXPECT_TRUE(SerializeProgram(*read) == bytes);
  });
}

// Our own code serializes ops and variables, and parses them if they are in that form; with an unknown field,
// protobuf parses them.
TEST_F(AnyProgram, ParserAgreesWithProtobuf) {
  const std::string unknown("\x98\x06\x07", 3);  // field 99, varint 7
  ForEachSeed([&](const Program& program) {
    for (int b = 0; b < program.block_count(); ++b) {
      Program by_protobuf = program;
      Block& block = by_protobuf.MutableBlock(b);
      for (const VarRef& var : program.block(b).vars()) {
        Var longer = *var;
        longer.wire_bytes = SerializeVar(*var) + unknown;
        block.SetVar(std::move(longer));
      }
      for (const OpEntry& entry : program.block(b).ops()) {
        Op longer = *entry.op;
        longer.set_wire_bytes(SerializeOp(longer) + unknown);
        block.Replace(entry.id, std::move(longer));
      }
      const Result<Program> plain = ParseProgram(SerializeProgram(program));
      const Result<Program> read = ParseProgram(SerializeProgram(by_protobuf));
      ASSERT_TRUE(plain.ok() && read.ok()) << read.status().ToString();
      EXPECT_EQ(test::Difference(*plain, *read), "");
    }
  });
}

TEST_F(AnyProgram, WriterAgreesWithProtobuf) {
  ForEachSeed([](const Program& program) {
    for (const VarRef& var : program.main().vars()) {
      proto::VarDesc desc;
      ASSERT_TRUE(desc.ParseFromString(SerializeVar(*var)));
      EXPECT_TRUE(desc.SerializeAsString() == SerializeVar(*var)) << desc.ShortDebugString();
    }
    for (const OpEntry& entry : program.main().ops()) {
      proto::OpDesc desc;
      ASSERT_TRUE(desc.ParseFromString(SerializeOp(*entry.op)));
      EXPECT_TRUE(desc.SerializeAsString() == SerializeOp(*entry.op)) << desc.ShortDebugString();
    }
  });
}

TEST_F(AnyProgram, RoundTripsThroughJson) {
  ForEachSeed(
      [](const Program& program) {
        const std::string json = ProgramToJson(program);
        const Result<Program> read = ProgramFromJson(json, "json");
        ASSERT_TRUE(read.ok()) << read.status().ToString() << "\n" << json;
        EXPECT_EQ(test::Difference(program, *read), "");
        EXPECT_EQ(ProgramToJson(*read), json);
      },
      kJsonSeeds);
}

}  // namespace
}  // namespace penstock
