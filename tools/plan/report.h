// The report of `penstock plan` on a job, as text, JSON or dot. transpiler/cost computes the figures; this
// folder formats them.
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
  std::optional<cost::Network> network;  // without it, the report has no times
  // How to slice parameters for other numbers of pservers. Without it, derived from the job's own pieces.
  std::optional<plan::TranspileConfig> like;
};

struct JobReport {
  cost::Job job;
  JobQuestion question;
  cost::CostReport cost;
  std::optional<cost::Expectation> expectation;
  cost::PserverAdvice advice;  // empty without a network
};

// Returns the errors of EstimateCost, Expect and ChoosePservers.
Result<JobReport> MakeJobReport(cost::Job job, const JobQuestion& question);

struct TextOptions {
  bool pieces = false;  // list each pserver's pieces
};
std::string ReportText(const JobReport& report, const TextOptions& options);
// The derivation of each time from the counts, one line each: "label  = formula = result". Empty without a
// network.
std::string ReportArithmetic(const JobReport& report);
// The expected figures of other numbers of pservers. Empty without a network or pservers.
std::string ReportAdvice(const JobReport& report);
// One object; this folder's README lists its keys.
std::string ReportJson(const JobReport& report);
// A graph for Graphviz: one cluster per role, bytes on the edges.
std::string ReportDot(const JobReport& report);

// The interval between two exchanges, for sentences: "step", or "100 steps".
std::string ExchangeWords(const JobReport& report);

}  // namespace penstock::tools
