// Any text as a placement plan gives an error, or a plan that prints and parses back.
#include "transpiler/plan/plan.h"

#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

void Try(std::string_view input) {
  const Result<plan::PlacementPlan> plan = plan::ParsePlan(input);
  if (!plan.ok()) {
    MustBeTheInputsFault(plan.status());
    return;
  }
  const Result<plan::PlacementPlan> again = plan::ParsePlan(plan::PrintPlan(*plan));
  PENSTOCK_CHECK(again.ok(), again.status().ToString());
  PENSTOCK_CHECK(*again == *plan, "a plan is another one when its text is read");
  PENSTOCK_CHECK(plan::Fingerprint(*again) == plan::Fingerprint(*plan),
                 "two equal plans differ in their fingerprints");
  const Status valid = plan::ValidatePlan(*plan);
  if (!valid.ok()) MustBeTheInputsFault(valid);
}

}  // namespace penstock::fuzz
