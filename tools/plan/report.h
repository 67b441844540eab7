// What `penstock plan` says of a job, in three forms. The numbers come from the model in transpiler/plan;
// here they are only written down.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const JobReport report, MakeJobReport(job, {.cost = {.batch = 512}}));
//   std::cout << ReportText(report, {});
#pragma once

#include <optional>
#include <string>

#include "framework/base/status.h"
#include "transpiler/cost/choose_pservers.h"
#include "transpiler/cost/cost.h"
#include "transpiler/cost/expect.h"
#include "transpiler/cost/job.h"

namespace penstock::tools {

struct JobQuestion {
  cost::CostOptions cost;
  std::optional<cost::Network> network;  // without it, nothing is said of times
  // How parameters would be cut for another number of pservers; without it, as the job's own pieces show.
  std::optional<plan::TranspileConfig> like;
};

struct JobReport {
  cost::Job job;
  JobQuestion question;
  cost::CostReport cost;
  std::optional<cost::Expectation> expectation;
  cost::PserverAdvice advice;  // empty without a network
};

// The errors of EstimateCost, Expect and ChoosePservers.
Result<JobReport> MakeJobReport(cost::Job job, const JobQuestion& question);

struct TextOptions {
  bool pieces = false;  // name each pserver's pieces
};
std::string ReportText(const JobReport& report, const TextOptions& options);
// How every time follows from the counts, a line each: "label  = formula = result". Empty without a network.
std::string ReportArithmetic(const JobReport& report);
// What other numbers of pservers would give. Empty without a network or pservers.
std::string ReportAdvice(const JobReport& report);
// One object; its keys are listed in this folder's README.
std::string ReportJson(const JobReport& report);
// For Graphviz: a cluster a role, bytes on the edges.
std::string ReportDot(const JobReport& report);

// What exchanges are called in sentences: "step", or "100 steps".
std::string ExchangeWords(const JobReport& report);

}  // namespace penstock::tools
