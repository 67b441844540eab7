#include <nlohmann/json.hpp>

#include "executor/plan/plan_text.h"
#include "executor/schedule/memory_need.h"
#include "framework/text/parser.h"
#include "framework/verify/verifier.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"

namespace penstock::test {

Result<GoldenOutputs> RunExecPlan(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ParseText(text, "in"));
  PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &AllOps()}));
  const GoldenSection* given = one.Find("options");
  const auto options = nlohmann::json::parse(given == nullptr ? "{}" : given->text);
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::shared_ptr<const exec::Specialisation> plan,
      exec::PlanForFeeds(AllOps(), program, {.batch = options.value("batch", 8)},
                         {.channels_last = options.value("layouts", "chosen") != "plain",
                          .fusion = options.value("fusion", "on") != "off"}));
  return GoldenOutputs{{"out", "", exec::PlanText(*plan)}};
}

}  // namespace penstock::test
