// The verifier, with the schemas of all ops, reports nothing for any program that Fluid 1.8.5 wrote, except
// for known defective programs.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "framework/base/files.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/program_files.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct Findings {
  int programs = 0;
  std::map<std::string, std::set<std::string>> by_id;  // id to "case/file"
  std::string first;
};

Findings VerifyFolder(const fs::path& root, const std::string& folder) {
  Findings findings;
  for (const fs::path& path : test::ProgramFiles(root / folder)) {
    const Result<std::string> bytes = ReadFile(path.string());
    const Result<Program> program = bytes.ok() ? ParseProgram(*bytes) : Result<Program>(bytes.status());
    EXPECT_TRUE(program.ok()) << path;
    if (!program.ok()) continue;
    ++findings.programs;
    for (const Status& violation : FindViolations(*program, {.ops = &AllOps()})) {
      if (findings.first.empty()) findings.first = StrCat(path.string(), ": ", violation.ToString());
      const std::string id = StartsWith(violation.id(), "E-shape") ? "E-shape" : violation.id();
      findings.by_id[id].insert(fs::relative(path, root / folder).string());
    }
  }
  return findings;
}

class VerifyFluid : public testing::Test {
 protected:
  void SetUp() override {
    if (test::CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not here";
    root_ = fs::path(test::CorpusFolder()) / "open";
  }
  fs::path root_;
};

// Goldens of single ops whose declaration differs from the result: f32 for integers, a row per image instead
// of per window, no extents.
const std::set<std::string> kDeclaredWrong = {"elementwise_mod_int.pb", "im2sequence.pb",
                                              "im2sequence.grad.pb", "merge_ids.pb"};

TEST_F(VerifyFluid, AcceptsProgramsThatFluidBuilt) {
  int programs = 0;
  for (const char* folder : {"programs", "inference", "numeric", "control", "lr", "ops", "ops_seq"}) {
    Findings findings = VerifyFolder(root_, folder);
    programs += findings.programs;
    for (auto& [id, files] : findings.by_id) {
      std::erase_if(files, [](const std::string& file) { return kDeclaredWrong.contains(file); });
      EXPECT_TRUE(files.empty()) << id << " in " << *files.begin()
                                 << "; the first of all: " << findings.first;
    }
  }
  EXPECT_GE(programs, 676);
}

// Programs of Fluid's transpiler: the verifier reports only its known defects (quirks).
TEST_F(VerifyFluid, FindsExactlyTheDefectsOfFluidsRolePrograms) {
  const Findings findings = VerifyFolder(root_, "cases");
  EXPECT_GE(findings.programs, 844);
  // By the case's name: gradients dropped by clipping, and a learning rate that only the server declares.
  const std::map<std::string, std::set<std::string>> known = {
      {"E-verify-undeclared", {".clip_", ".lr_piecewise", ".lr_warmup"}},
      // Snapshots declared as bool; an outdated shape in a startup program that two roles share.
      {"E-shape", {"@coll_localsgd_", "@shared_"}},
  };
  for (const auto& [id, files] : findings.by_id) {
    ASSERT_TRUE(known.contains(id)) << id << " in " << *files.begin();
    for (const std::string& file : files) {
      bool expected = false;
      for (const std::string& part : known.at(id))
        expected = expected || file.find(part) != std::string::npos;
      EXPECT_TRUE(expected) << id << " in " << file;
    }
  }
  EXPECT_EQ(findings.by_id.size(), known.size());
}

}  // namespace
}  // namespace penstock
