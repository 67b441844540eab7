// profile/: the page about the steps of a program.
#include <nlohmann/json.hpp>

#include "executor/schedule/memory_need.h"
#include "framework/text/parser.h"
#include "framework/verify/verifier.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tests/golden/trace_text.h"
#include "tools/profile/page.h"

namespace penstock::test {

Result<GoldenOutputs> RunProfile(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string traces, RequireSection(one, "trace"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<trace::ProcessTrace> job, ParseTraces(traces));
  const GoldenSection* given = one.Find("options");
  const auto options = nlohmann::json::parse(given == nullptr ? "{}" : given->text);
  profile::Question question{.role = options.value("role", "")};
  exec::Specialisation plan;
  if (const GoldenSection* in = one.Find("in"); in != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const Program program, ParseText(in->text, "in"));
    PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &AllOps()}));
    question.program = options.value("program", "main.pb");
    question.batch = options.value("batch", 4);
    PENSTOCK_ASSIGN_OR_RETURN(
        const std::shared_ptr<const exec::Specialisation> made,
        exec::PlanForFeeds(AllOps(), program, {.batch = question.batch}, {.channels_last = false}));
    plan = *made;
    plan.workspace_bytes = 4096;  // that of the kernels depends on the machine
    question.plan = &plan;
    question.peaks = {.flops = options.value("gflops", 100.0) * 1e9,
                      .bytes = options.value("gbytes", 10.0) * 1e9};
    question.source_of_flops = question.source_of_bytes = "given";
  }
  PENSTOCK_ASSIGN_OR_RETURN(const profile::Report report, profile::MakeReport(job, question));
  return GoldenOutputs{{"out", "", profile::PageOf(report)}};
}

}  // namespace penstock::test
