// Every program that Fluid 1.8.5 wrote round-trips: binary to binary byte for byte; through text and through
// JSON, each in two ways, op by op and variable by variable.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "framework/base/files.h"
#include "framework/text/json.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/wire/wire.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct Counts {
  int programs = 0;
  std::size_t ops = 0;
  std::size_t vars = 0;
};

void CheckProgram(const fs::path& path, Counts& counts) {
  SCOPED_TRACE(path.string());
  const Result<std::string> bytes = ReadFile(path.string());
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const Result<Program> program = ParseProgram(*bytes);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_TRUE(SerializeProgram(*program) == *bytes) << "binary to binary is not byte-equal";

  const std::string text = PrintProgram(*program, PrintOptions::Everything());
  const Result<Program> read = ParseText(text, "text");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(test::Difference(*program, *read), "") << "through text";
  EXPECT_TRUE(PrintProgram(*read, PrintOptions::Everything()) == text) << "text to text is not byte-equal";
  const Result<Program> written = ParseProgram(SerializeProgram(*read));
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  EXPECT_EQ(test::Difference(*program, *written), "") << "through text and binary";
  EXPECT_TRUE(ParseText(PrintProgram(*program), "shown").ok()) << "what `show` prints does not read";

  const Result<Program> from_json = ProgramFromJson(ProgramToJson(*program), "json");
  ASSERT_TRUE(from_json.ok()) << from_json.status().ToString();
  EXPECT_TRUE(SerializeProgram(*from_json) == *bytes) << "through JSON is not byte-equal";
  ++counts.programs;
  for (int i = 0; i < program->block_count(); ++i) {
    counts.ops += program->block(i).ops().size();
    counts.vars += program->block(i).vars().size();
  }
}

TEST(Programs, RoundTripThroughBinaryTextAndJson) {
  // Minimum numbers, so that a missing folder is a failure.
  const std::map<std::string, int> at_least = {
      {"programs", 156}, {"cases", 844}, {"inference", 12}, {"numeric", 66}, {"dist_numeric", 96},
      {"control", 36},   {"lr", 44},     {"ops", 209},      {"ops_sr", 83},  {"ops_seq", 153}};
  const bool whole = !test::CorpusFolder().empty();
  const fs::path root = fs::path(test::CorpusOrSelection()) / "open";
  Counts all;
  for (const auto& [folder, count] : at_least) {
    Counts counts;
    for (const fs::path& path : test::ProgramFiles(root / folder)) CheckProgram(path, counts);
    if (whole) {
      EXPECT_GE(counts.programs, count) << folder;
    }
    std::printf("%-13s %5d programs %6zu ops %6zu variables\n", folder.c_str(), counts.programs, counts.ops,
                counts.vars);
    all.programs += counts.programs;
  }
  EXPECT_GE(all.programs, whole ? 1699 : 250);
}

TEST(Programs, TheSelectionInTheTreeIsSmall) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::SelectionFolder())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 1'000'000u);
  EXPECT_LT(bytes, 2'000'000u);
}

}  // namespace
}  // namespace penstock
