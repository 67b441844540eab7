// Mutated programs through the executor: each runs or is rejected, and none crashes, hangs, or accesses
// foreign memory (which the sanitizers detect). This command runs a single mutant:
//
//   PENSTOCK_MUTANT=1234 fuzz_executor --gtest_filter=Mutants.OneAlone
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "framework/base/strings.h"
#include "framework/text/printer.h"
#include "tests/fuzz/executor/mutant.h"
#include "tests/fuzz/executor/numbers.h"
#include "tests/fuzz/executor/workers.h"
#include "tests/support/temp_dir.h"

namespace penstock::fuzz {
namespace {

const std::vector<Subject>& Subjects() {
  // Runs before the workers start, and starts no threads, which forked workers would lack.
  static const std::vector<Subject> subjects = (omp_set_num_threads(1), AllSubjects());
  return subjects;
}

// Mutants save files in a separate folder.
class Mutants : public testing::Test {
 protected:
  void SetUp() override {
    (void)Subjects();  // read in the original folder
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(dir_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }

 private:
  const test::TempDir dir_;
  std::filesystem::path before_;
};

TEST_F(Mutants, RunOrAreRefused) {
  const std::vector<Subject>& subjects = Subjects();
  ASSERT_GE(subjects.size(), 300u);
  const auto findings = RunCases(NumberOf("PENSTOCK_MUTANTS_FIRST", 0), NumberOf("PENSTOCK_MUTANTS", 500),
                                 {.processes = Processes(), .seconds_max = 60},
                                 [&](std::uint64_t n) { RunMutant(MakeMutant(subjects, n), n); });
  for (const Finding& finding : findings) {
    const Mutant mutant = MakeMutant(subjects, finding.number);
    ADD_FAILURE() << "mutant " << finding.number << " of " << mutant.name << ": " << finding.what << "\n"
                  << PrintProgram(mutant.main);
  }
}

// Otherwise only the first check of each mutant is reached.
TEST_F(Mutants, AreNotAllRefused) {
  const std::vector<Subject>& subjects = Subjects();
  RunCounts all;
  for (std::uint64_t n = 0; n < 200; ++n) {
    const RunCounts counts = RunMutant(MakeMutant(subjects, n), n);
    all.runs += counts.runs;
    all.ok += counts.ok;
  }
  EXPECT_GE(all.ok, all.runs / 5);
  EXPECT_GE(all.runs - all.ok, all.runs / 5);
}

TEST_F(Mutants, OneAlone) {
  if (std::getenv("PENSTOCK_MUTANT") == nullptr) GTEST_SKIP() << "PENSTOCK_MUTANT names none";
  const std::uint64_t number = NumberOf("PENSTOCK_MUTANT", 0);
  const Mutant mutant = MakeMutant(Subjects(), number);
  std::fputs(StrCat(mutant.name, "\n", PrintProgram(mutant.main)).c_str(), stderr);
  const RunCounts counts = RunMutant(mutant, number);
  std::fputs(StrCat(counts.ok, " of ", counts.runs, " runs are right\n").c_str(), stderr);
}

}  // namespace
}  // namespace penstock::fuzz
