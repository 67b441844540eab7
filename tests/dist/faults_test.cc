// Synchronous training between real processes ends with the same bits whatever happens to messages (late, out
// of order, repeated, lost), and in whatever order the processes start.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/dist/case_job.h"

namespace penstock::test {
namespace {

using std::chrono::seconds;

constexpr int kSteps = 4;
constexpr std::uint64_t kRuns = 50;

// Sums the number after `word` over all such lines of a log: "messages lost 3 repeated 5" gives 3 for "lost".
int CountOf(const std::string& what, const std::string& log) {
  int count = 0;
  for (std::size_t at = log.find("messages lost "); at != std::string::npos;
       at = log.find("messages lost ", at + 1)) {
    count += std::stoi(log.substr(log.find(what, at) + what.size()));
  }
  return count;
}

// Ends like an undisturbed job and like one thread.
void ExpectFiftyRunsToEndAlike(const std::string& name) {
  const CaseJob made = MakeCaseJob(name, {"x", "y"}, kSteps);
  Job& job = *made.job;
  for (int i = 0; i < 2; ++i) job.pserver(i).flags = {"--chunk_bytes=100000"};
  ASSERT_TRUE(job.Run(seconds(120))) << job.Logs();
  const std::vector<Arrays> reference = ReferenceOf(job, kSteps, made.params);
  ExpectEnds(job, reference, "undisturbed");
  for (int i = 0; i < 2; ++i) {
    job.pserver(i).flags.push_back("--lossy");
    job.trainer(i).flags.push_back("--lossy");
  }
  int lost = 0, repeated = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    ASSERT_TRUE(job.Run(seconds(120), seed)) << "seed " << seed << "\n" << job.Logs();
    ExpectEnds(job, reference, StrCat("seed ", seed));
    if (testing::Test::HasFailure()) return;
    lost += CountOf("lost ", job.Logs());
    repeated += CountOf("repeated ", job.Logs());
  }
  std::cout << name << ": " << kRuns << " runs alike; " << lost << " messages lost, " << repeated
            << " repeated\n";
  EXPECT_GT(lost, static_cast<int>(10 * kRuns));
  EXPECT_GT(repeated, static_cast<int>(10 * kRuns));
}

TEST(DistFaults, FiftyRunsOfAdamEndInTheSameBytes) {
  ExpectFiftyRunsToEndAlike("wide_linear.adam@sync_p2t2");
}
TEST(DistFaults, FiftyRunsOfMomentumEndInTheSameBytes) {
  ExpectFiftyRunsToEndAlike("wide_linear.momentum@sync_p2t2");
}

}  // namespace
}  // namespace penstock::test
