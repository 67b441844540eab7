// Any bytes or text as a program give an error or a program, never a crash, and a program prints, verifies
// and serializes.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "framework/base/files.h"
#include "framework/text/json.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"
#include "tests/support/random_program.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

// The original programs: small ones of every kind, and random ones.
const std::vector<std::string>& Seeds() {
  static const std::vector<std::string> seeds = [] {
    std::vector<std::string> out;
    const std::string whole = test::CorpusFolder();
    const fs::path root =
        whole.empty() ? fs::path(test::CorpusOrSelection()) : fs::path(whole) / "open" / "control";
    for (const fs::path& path : test::ProgramFiles(root)) {
      const Result<std::string> bytes = ReadFile(path.string());
      if (bytes.ok() && bytes->size() < 40000 && out.size() < 40) out.push_back(*bytes);
    }
    EXPECT_GE(out.size(), whole.empty() ? 1u : 30u);
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      out.push_back(SerializeProgram(test::RandomProgram(seed)));
    return out;
  }();
  return seeds;
}

std::string Mutated(std::string bytes, Random& random) {
  for (std::uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + random() % 16);
        break;
      default:  // copies a piece to another place
        bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 16));
    }
  }
  return bytes;
}

// Does with a program what a user may do.
void Use(const Program& program) {
  const std::string bytes = SerializeProgram(program);
  EXPECT_TRUE(ParseProgram(bytes).ok());
  const std::string text = PrintProgram(program, PrintOptions::Everything());
  const Result<Program> read = ParseText(text, "printed");
  EXPECT_TRUE(read.ok()) << read.status().ToString() << "\n" << text;
  if (bytes.size() < 3000) {
    const Result<Program> from_json = ProgramFromJson(ProgramToJson(program), "json");
    EXPECT_TRUE(from_json.ok()) << from_json.status().ToString();
  }
  const std::vector<Status> violations = FindViolations(program, {.ops = &AllOps()});
  for (const Status& violation : violations) EXPECT_FALSE(violation.message().empty());
}

void ExpectUsable(const Result<Program>& program) {
  if (program.ok()) {
    Use(*program);
  } else {
    EXPECT_FALSE(program.status().message().empty());
    EXPECT_EQ(program.status().message().find('\n'), std::string::npos) << program.status().message();
  }
}

TEST(FuzzPrograms, DamagedBytesAreAnErrorOrAProgram) {
  Random random(1);
  int programs = 0;
  for (int i = 0; i < 6000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Result<Program> program = ParseProgram(Mutated(Seeds()[random() % Seeds().size()], random));
    programs += program.ok();
    ExpectUsable(program);
  }
  EXPECT_GE(programs, 100);  // otherwise only the first check is reached
}

TEST(FuzzPrograms, EveryTruncationIsAnErrorOrAProgram) {
  const std::string bytes = Seeds().front();
  for (std::size_t length = 0; length < bytes.size() && !testing::Test::HasFailure(); ++length) {
    ExpectUsable(ParseProgram(std::string_view(bytes).substr(0, length)));
  }
}

TEST(FuzzPrograms, RandomBytesAreAnError) {
  Random random(2);
  for (int i = 0; i < 5000 && !testing::Test::HasFailure(); ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    ExpectUsable(ParseProgram(bytes));
    ExpectUsable(ParseText(bytes, "noise"));
    ExpectUsable(ProgramFromJson(bytes, "noise"));
  }
}

TEST(FuzzPrograms, DamagedTextIsAnErrorOrAProgram) {
  Random random(3);
  std::vector<std::string> texts;
  for (const std::string& bytes : Seeds()) texts.push_back(PrintProgram(*ParseProgram(bytes)));
  for (int i = 0; i < 6000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    ExpectUsable(ParseText(Mutated(texts[random() % texts.size()], random), "damaged"));
  }
}

TEST(FuzzPrograms, DamagedJsonIsAnErrorOrAProgram) {
  Random random(4);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < Seeds().size(); i += 6)
    texts.push_back(ProgramToJson(*ParseProgram(Seeds()[i])));
  for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    ExpectUsable(ProgramFromJson(Mutated(texts[random() % texts.size()], random), "damaged"));
  }
}

TEST(FuzzPrograms, DeepNestingIsAnError) {
  for (const char* open : {"[", "{\"blocks\":[", "{", "program\nblock 0 {\nx = op() {a=[", "(("}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += open;
    EXPECT_FALSE(ProgramFromJson(deep, "deep").ok());
    EXPECT_FALSE(ParseText(deep, "deep").ok());
    EXPECT_FALSE(ParseProgram(deep).ok());
  }
}

}  // namespace
}  // namespace penstock
