// Role programs compared with those that Fluid 1.8.5 made from the same programs: equal in compat; in the
// default dialect only the listed differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/transpile/case_folder.h"
#include "tests/parity/transpile/differences.h"
#include "tests/parity/transpile/mode_differences.h"
#include "tests/parity/transpile/other_jobs.h"
#include "tests/support/canon.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

// The default dialect rejects an optimizer without an op; compat needs no declaration.
constexpr char kUnknownOptimizer[] = "E-plan-optimizer";

// Errors that Fluid detects only when it makes the pservers' programs: contradicting settings, gradients of
// rows that it cannot correct, and dense gradients of tables sharded by id.
constexpr std::string_view kStatedReasons[] = {"E-plan-sync-mode", "E-plan-dc-asgd", "E-plan-table-dense"};

bool IsStatedReason(const Status& status) {
  return std::ranges::find(kStatedReasons, status.id()) != std::end(kStatedReasons);
}

struct Tally {
  int cases = 0;      // existing cases
  int equal = 0;      // every file
  int listed = 0;     // equal after applying the listed differences
  int refused = 0;    // rejected by both
  int not_built = 0;  // default dialect: optimizer without an op
  int files = 0;
  int only_ours = 0;  // default dialect: Fluid fails
  int unexplained = 0;
  std::string Line() const {
    return StrCat(cases, " cases: ", equal, " equal, ", listed, " different as listed, ", refused,
                  " refused by both, ", not_built, " with an optimizer that has no op yet, ", only_ours,
                  " that Fluid fails on, ", unexplained, " unexplained; ", files, " files");
  }
};

// Compat's role program for another main program or configuration.
Program CompatProgram(const CaseFolder& folder, const Program& main, plan::TranspileConfig config,
                      const RoleFile& file) {
  config.dialect = plan::Dialect::kFluid18;
  const Result<RoleSet> roles = Transpile(AllOps(), main, folder.startup, config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  for (const auto& [role, made] : RoleFilesOf(*roles)) {
    if (role.name == file.name) return *made;
  }
  PENSTOCK_CHECK(false, file.name);
  return Program();
}

// The expected program of the default dialect, derived from Fluid's; nullopt if a difference cannot be
// derived.
std::optional<Program> Expected(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                                std::set<std::string>& used) {
  std::vector<const Difference*> met;
  Program source = folder.main;
  plan::TranspileConfig config = folder.job.config;
  bool same_source = true;
  for (const Difference& difference : Differences()) {
    if (!difference.touches(folder, roles, file)) continue;
    used.insert(difference.id);
    const bool changes_source = difference.change_source != nullptr || difference.change_config != nullptr;
    if (difference.apply == nullptr && !changes_source) return std::nullopt;
    if (difference.change_source != nullptr) difference.change_source(folder, roles, file, source);
    if (difference.change_config != nullptr) difference.change_config(config);
    same_source = same_source && !changes_source;
    met.push_back(&difference);
  }
  Program expected = same_source ? folder.fluids.at(file.name) : CompatProgram(folder, source, config, file);
  for (const Difference* difference : met) {
    if (difference->apply != nullptr) difference->apply(folder, roles, file, expected);
  }
  return expected;
}

class Comparison {
 public:
  explicit Comparison(plan::Dialect dialect) : dialect_(dialect) {}

  void Case(const std::string& corpus, const std::string& id) { Case(ReadCaseFolder(corpus, id)); }

  void Case(CaseFolder folder) {
    folder.job.config.dialect = dialect_;
    ++tally_.cases;
    const Result<RoleSet> roles = Transpile(AllOps(), folder.main, folder.startup, folder.job.config);
    if (!roles.ok()) {
      Refused(folder, roles.status());
    } else {
      Files(folder, *roles);
    }
  }

  const Tally& tally() const { return tally_; }
  const std::set<std::string>& used() const { return used_; }

 private:
  void Refused(const CaseFolder& folder, const Status& status) {
    if (folder.fluids.empty() || (folder.job.expects_errors && IsStatedReason(status))) {
      ++tally_.refused;
    } else if (dialect_ == plan::Dialect::kDefault && SaysBothModes(folder.job.config)) {
      ++tally_.listed;
      used_.insert("D-sync-mode");
    } else if (dialect_ == plan::Dialect::kDefault && status.id() == kUnknownOptimizer) {
      ++tally_.not_built;
    } else {
      ++tally_.unexplained;
      ADD_FAILURE() << folder.id << ": " << status.ToString();
    }
  }

  void Files(const CaseFolder& folder, const RoleSet& roles) {
    std::set<std::string> used, seen;
    bool same = true;
    for (const auto& [file, program] : RoleFilesOf(roles)) {
      if (!folder.fluids.contains(file.name)) continue;
      seen.insert(file.name);
      ++tally_.files;
      same = File(folder, roles, file, *program, used) && same;
    }
    for (const auto& [name, program] : folder.fluids) {
      if (seen.contains(name)) continue;
      ADD_FAILURE() << folder.id << ": " << name << " was not made";
      same = false;
    }
    if (seen.empty()) {
      ++tally_.only_ours;
    } else if (!same) {
      ++tally_.unexplained;
    } else {
      ++(used.empty() ? tally_.equal : tally_.listed);
    }
    used_.insert(used.begin(), used.end());
  }

  bool File(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, const Program& ours,
            std::set<std::string>& used) {
    std::optional<Program> expected = folder.fluids.at(file.name);
    if (dialect_ == plan::Dialect::kDefault) expected = Expected(folder, roles, file, used);
    if (!expected) return true;
    const std::string difference = FirstDifference(Canon(*expected), Canon(ours));
    if (!difference.empty()) ADD_FAILURE() << folder.id << " " << file.name << ": " << difference;
    return difference.empty();
  }

  plan::Dialect dialect_;
  Tally tally_;
  std::set<std::string> used_;
};

Comparison CompareAll(plan::Dialect dialect) {
  const std::string corpus = CorpusOrSelection();
  Comparison comparison(dialect);
  for (const std::string& id : CaseIds(corpus)) comparison.Case(corpus, id);
  std::cout << comparison.tally().Line() << "\n";
  return comparison;
}

// Fewer comparisons than this mean that cases are missing.
int CasesAtLeast() { return CorpusFolder().empty() ? 32 : 125; }

int ComparedAtLeast() { return CorpusFolder().empty() ? 27 : 110; }

TEST(TranspileParity, CompatWritesFluidsPrograms) {
  const Tally tally = CompareAll(plan::Dialect::kFluid18).tally();
  EXPECT_GE(tally.cases, CasesAtLeast());
  EXPECT_EQ(tally.equal + tally.refused + tally.only_ours, tally.cases);
  EXPECT_EQ(tally.listed, 0);
}

TEST(TranspileParity, DefaultDiffersOnlyAsListed) {
  const Comparison comparison = CompareAll(plan::Dialect::kDefault);
  const Tally& tally = comparison.tally();
  EXPECT_GE(tally.cases, CasesAtLeast());
  EXPECT_EQ(tally.unexplained, 0);
  EXPECT_EQ(tally.equal + tally.listed + tally.refused + tally.not_built + tally.only_ours, tally.cases);
  // A missing declaration must not look like an unsupported optimizer.
  EXPECT_GE(tally.equal + tally.listed, ComparedAtLeast());
  EXPECT_TRUE(comparison.used().contains("D-snapshot-type"));
  for (const std::string& id : comparison.used()) std::cout << "  met " << id << "\n";
}

TEST(TranspileParity, DefaultDiffersInOtherJobsOnlyAsListed) {
  const std::string corpus = CorpusOrSelection();
  Comparison comparison(plan::Dialect::kDefault);
  std::set<std::string> programs;
  for (const std::string& id : CaseIds(corpus)) {
    CaseFolder folder = ReadCaseFolder(corpus, id);
    if (!programs.insert(folder.job.program).second) continue;
    for (const OtherJob& job : OtherJobsOf(programs.size())) {
      folder.job.config = job.config;
      folder.job.config.dialect = plan::Dialect::kFluid18;
      const Result<RoleSet> compat = Transpile(AllOps(), folder.main, folder.startup, folder.job.config);
      if (!compat.ok()) continue;
      folder.fluids.clear();
      for (const auto& [file, program] : RoleFilesOf(*compat)) folder.fluids[file.name] = *program;
      comparison.Case(folder);
    }
  }
  std::cout << comparison.tally().Line() << "\n";
  EXPECT_GE(comparison.tally().cases, static_cast<int>(programs.size()) * 2);
  EXPECT_EQ(comparison.tally().unexplained, 0);
  EXPECT_TRUE(comparison.used().contains("D-lr-where-needed"));
}

TEST(TranspileParity, TheDocumentedDifferencesMatchTheTable) {
  const std::string text = BytesOf(SourceFolder() + "/tests/parity/DIFFERENCES.md");
  std::set<std::string> listed, coded;
  for (const std::string& line : Split(text, '\n')) {
    if (StartsWith(line, "| D-")) listed.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  for (const Difference& difference : Differences()) coded.insert(difference.id);
  EXPECT_EQ(listed, coded);
}

}  // namespace
}  // namespace penstock::test
