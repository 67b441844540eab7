// A job of two trainers and two pservers from a case of the corpus, with generated values and feeds, and the
// expected final values.
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

// Reads `folder` + `startup` + suffix + ".pb" and `folder` + `main` + suffix + ".pb" for each suffix.
std::vector<RolePrograms> RolesOf(const std::string& folder, const std::string& startup,
                                  const std::vector<std::string>& suffixes, const std::string& main);

struct CaseJob {
  std::unique_ptr<Job> job;
  std::vector<std::string> params;  // parameters and other persistable variables of a trainer
};
CaseJob MakeCaseJob(const std::string& name, const std::vector<std::string>& feeds, int steps);

// Runs the job's programs with its values and feeds on one thread, and returns the variables in `names` that
// exist, by trainer.
std::vector<Arrays> ReferenceOf(Job& job, int steps, const std::vector<std::string>& names);

void ExpectSameBytes(const Tensor& a, const Tensor& b, const std::string& what);
// Expects that both trainers ended with exactly these bytes.
void ExpectEnds(const Job& job, const std::vector<Arrays>& ends, const std::string& what);

}  // namespace penstock::test
