// Two trainers and two pservers of a case of the corpus, with made-up values and feeds, and what they must
// end in.
//
//   const CaseJob made = MakeCaseJob("wide_linear.adam@sync_p2t2", {"x", "y"}, 3);
//   const std::vector<Arrays> reference = ReferenceOf(*made.job, 3, made.params);
//   ASSERT_TRUE(made.job->Run(120s, seed)) << made.job->Logs();
//   ExpectEnds(*made.job, reference, "adam");
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/dist/job.h"

namespace penstock::test {

inline constexpr char kLoss[] = "mean_0.tmp_0";  // of all jobs and cases

// FOLDER + `startup` + suffix + ".pb" and FOLDER + `main` + suffix + ".pb", for each suffix.
std::vector<RolePrograms> RolesOf(const std::string& folder, const std::string& startup,
                                  const std::vector<std::string>& suffixes, const std::string& main);

struct CaseJob {
  std::unique_ptr<Job> job;
  std::vector<std::string> params;  // and other persistables of a trainer
};
CaseJob MakeCaseJob(const std::string& name, const std::vector<std::string>& feeds, int steps);

// What one thread makes of the job's programs, values and feeds: the variables of those names that there are,
// by trainer.
std::vector<Arrays> ReferenceOf(Job& job, int steps, const std::vector<std::string>& names);

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what);
// Both trainers have ended in these bytes.
void ExpectEnds(const Job& job, const std::vector<Arrays>& ends, const std::string& what);

}  // namespace penstock::test
