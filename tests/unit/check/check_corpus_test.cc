// Fluid's own role programs: check says nothing against those that work, and names the quirk of those that do
// not.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/base/files.h"
#include "framework/ir/wire.h"
#include "tests/support/corpus.h"
#include "transpiler/check/check.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// A file, or its gzipped form.
std::optional<RoleProgram> Load(const fs::path& folder, const std::string& name) {
  for (const std::string& file : {name, name + ".gz"}) {
    if (!fs::exists(folder / file)) continue;
    const auto bytes = ReadFile((folder / file).string());
    EXPECT_TRUE(bytes.ok());
    auto program = ParseProgram(*bytes);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    return RoleProgram{file, *std::move(program)};
  }
  return std::nullopt;
}

std::vector<RoleProgram> LoadAll(const fs::path& folder, const std::string& stem, bool trainers) {
  std::vector<RoleProgram> programs;
  for (int i = 0; i < 16; ++i) {
    const std::string suffix = trainers ? (i == 0 ? "" : StrCat("_t", i)) : StrCat("_", i);
    if (auto program = Load(folder, stem + suffix + ".pb")) programs.push_back(*std::move(program));
  }
  return programs;
}

RoleFiles LoadCase(const fs::path& folder) {
  return {LoadAll(folder, "trainer", true), LoadAll(folder, "trainer_startup", true),
          LoadAll(folder, "pserver", false), LoadAll(folder, "pserver_startup", false)};
}

// Known defects of Fluid's own sets: the case's configuration or program, and the finding that names it.
std::string Defect(const std::string& name) {
  if (name.find("p1t1") != std::string::npos) return "E-check-not-received";   // one trainer's naming
  if (name.find("adadelta") != std::string::npos) return "E-check-no-update";  // never recognised
  if (name.find(".clip_") != std::string::npos) return "E-check-no-start";     // clipping is deleted
  return "";
}

TEST(CheckCorpusTest, FluidsSyncSetsAreJudgedAsTheyBehave) {
  const fs::path cases = fs::path(test::CorpusOrSelection()) / "open" / "cases";
  int checked = 0;
  static const OpRegistry ops;
  for (const auto& entry : fs::directory_iterator(cases)) {
    const std::string name = entry.path().filename();
    if (name.find("@sync_") == std::string::npos) continue;
    const RoleFiles roles = LoadCase(entry.path());
    if (roles.pservers.empty() || roles.trainers.empty()) continue;
    const CheckReport report = CheckRoles(roles, ops);
    const std::string defect = Defect(name);
    ++checked;
    if (defect.empty()) {
      EXPECT_EQ(report.errors(), 0) << name << "\n" << report.ToString();
    } else {
      EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(),
                              [&](const Finding& finding) { return finding.id == defect; }))
          << name << "\n"
          << report.ToString();
    }
  }
  EXPECT_GE(checked, test::CorpusFolder().empty() ? 6 : 50);
}

}  // namespace
}  // namespace penstock
