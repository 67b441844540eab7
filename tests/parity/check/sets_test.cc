// check accepts every correct set, and rejects every set of Fluid's that hangs, cannot run or leaves a
// parameter untrained: all cases of the corpus that Fluid transpiles, and our sets for the same programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/check/role_sets.h"
#include "tests/parity/transpile/other_jobs.h"
#include "tests/support/corpus.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock {
namespace {

using test::CaseFolder;

bool Has(const check::CheckReport& report, std::string_view id) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const check::Finding& finding) {
    return finding.id == id && finding.severity == check::Severity::kError;
  });
}

bool UsesOp(const Program& program, std::string_view type) {
  const auto& ops = program.main().ops();
  return std::any_of(ops.begin(), ops.end(), [&](const OpEntry& entry) { return entry.op->type() == type; });
}

// Fluid's configuration says sync although its programs are asynchronous.
bool ModeIsLost(const CaseFolder& one) {
  const plan::TranspileConfig& config = one.job.config;
  return config.kind == plan::Kind::kPserver && config.sync_mode_argument == false &&
         config.sync_mode_field != false && !config.completely_not_async;
}

// The defect of Fluid's set that check must find, as the id of the finding; empty for a set that works.
std::string Defect(const CaseFolder& one) {
  if (one.job.config.kind != plan::Kind::kPserver) return "";
  if (ModeIsLost(one)) return "E-check-mode";
  if (one.id.find(".clip_") != std::string::npos) return "E-check-not-computed";
  if (UsesOp(one.main, "adadelta")) return "E-check-no-update";
  if (one.job.config.trainers == 1 && one.job.config.sync_mode_argument != false)
    return "E-check-not-received";
  return "";
}

// In some cases, code of the corpus repairs Fluid's HashName; trainers and pservers of these sets do not
// match.
std::vector<std::string> Cases() {
  std::vector<std::string> ids = test::CaseIds(test::CorpusOrSelection());
  std::erase_if(ids, [](const std::string& id) { return id.find("@hashfix") != std::string::npos; });
  return ids;
}

TEST(CheckSetsTest, FindsExactlyTheDefectiveFluidSets) {
  int right = 0;
  int defective = 0;
  for (const std::string& id : Cases()) {
    const CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), id);
    const auto set = test::FluidSet(one);
    if (!set) continue;
    const std::string defect = Defect(one);
    ++(defect.empty() ? right : defective);
    for (const bool with_source : {false, true}) {
      const check::SourcePrograms source{one.main, one.startup};
      const check::CheckReport report =
          check::CheckRoles(*set, AllOps(), {.source = with_source ? &source : nullptr});
      if (defect.empty()) {
        EXPECT_EQ(report.errors(), 0)
            << id << (with_source ? " with its source\n" : "\n") << report.ToString();
      } else {
        EXPECT_TRUE(Has(report, defect)) << id << " must have " << defect << "\n" << report.ToString();
      }
    }
  }
  std::cout << "Fluid's sets: " << right << " correct, " << defective << " with a known defect\n";
  EXPECT_GE(right, test::CorpusFolder().empty() ? 10 : 60);
}

TEST(CheckSetsTest, AcceptsEveryTranspiledSet) {
  int checked = 0;
  for (const std::string& id : Cases()) {
    const CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), id);
    const auto set = test::OurSet(one, plan::Dialect::kDefault);
    if (!set) continue;
    ++checked;
    const check::SourcePrograms source{one.main, one.startup};
    for (const check::SourcePrograms* given : {static_cast<const check::SourcePrograms*>(nullptr), &source}) {
      const check::CheckReport report = check::CheckRoles(*set, AllOps(), {.source = given});
      EXPECT_EQ(report.errors(), 0) << id << (given == nullptr ? "\n" : " with its source\n")
                                    << report.ToString();
    }
  }
  std::cout << "our sets: " << checked << "\n";
  EXPECT_GE(checked, test::CorpusFolder().empty() ? 10 : 40);
}

// Errors by which the transpiler rejects a program for any size.
bool StatedReason(const Status& status) {
  return status.id() == "E-plan-dc-asgd"        // a gradient of selected rows
         || status.id() == "E-plan-sync-mode";  // settings that contradict each other
}

// Every program in every mode; programs of many ops in a few of them.
TEST(CheckSetsTest, AcceptsEveryTranspiledSetOfOtherModes) {
  constexpr std::size_t kManyOps = 250;
  std::set<std::string> programs;
  int checked = 0, refused = 0;
  for (const std::string& id : Cases()) {
    CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), id);
    if (!programs.insert(one.job.program).second) continue;
    const bool few = one.main.main().ops().size() > kManyOps;
    for (const test::OtherJob& job : few ? test::OtherJobsOf(programs.size()) : test::OtherJobs()) {
      const Result<RoleSet> roles = Transpile(AllOps(), one.main, one.startup, job.config);
      if (!roles.ok()) {
        EXPECT_TRUE(StatedReason(roles.status()))
            << one.job.program << ", " << job.name << ": " << roles.status().ToString();
        ++refused;
        continue;
      }
      ++checked;
      const check::SourcePrograms source{one.main, one.startup};
      const check::CheckReport report = check::CheckRoles(FilesOf(*roles), AllOps(), {.source = &source});
      EXPECT_EQ(report.errors(), 0) << one.job.program << ", " << job.name << "\n" << report.ToString();
    }
  }
  std::cout << "our sets in other modes: " << checked << ", refused for a stated reason: " << refused << "\n";
  EXPECT_GE(checked, 10 * static_cast<int>(programs.size()));
}

// Exchanges for which the corpus has no case, or which Fluid does not have.
TEST(CheckSetsTest, AcceptsEverySetWithoutPservers) {
  CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), "fit_a_line.sgd@coll_allreduce_t2");
  for (const char* exchange : {"grad_allreduce", "local_sgd", "single_process_multi_thread"}) {
    for (const int steps : {1, 4}) {
      if (steps > 1 && exchange != std::string("local_sgd")) continue;
      one.job.config.collective_mode = exchange;
      one.job.config.local_sgd_k_steps = steps;
      const auto set = test::OurSet(one, plan::Dialect::kDefault);
      ASSERT_TRUE(set) << exchange;
      const check::SourcePrograms source{one.main, one.startup};
      const check::CheckReport report = check::CheckRoles(*set, AllOps(), {.source = &source});
      EXPECT_EQ(report.errors(), 0) << exchange << " after " << steps << " steps\n" << report.ToString();
    }
  }
}

TEST(CheckSetsTest, AnAbsentTrainerIsAssumedEqualWithANote) {
  const CaseFolder one = test::ReadCaseFolder(test::CorpusOrSelection(), "fit_a_line.sgd@sync_p2t2");
  auto set = test::FluidSet(one);
  ASSERT_TRUE(set && set->trainers.size() == 2);
  set->trainers.pop_back();
  set->trainer_startups.pop_back();
  const check::CheckReport report = check::CheckRoles(*set, AllOps());
  EXPECT_EQ(report.errors(), 0) << report.ToString();
  EXPECT_EQ(report.Count(check::Severity::kNote), 1);
}

}  // namespace
}  // namespace penstock
