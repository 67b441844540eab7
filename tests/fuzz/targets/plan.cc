// Any text as a placement plan: an error, or a plan that prints and reads back.
#include "transpiler/plan/plan.h"

#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const Result<PlacementPlan> plan = ParsePlan(fuzz::AsText(data, size));
  if (!plan.ok()) {
    fuzz::MustBeTheInputsFault(plan.status());
    return 0;
  }
  const Result<PlacementPlan> again = ParsePlan(PrintPlan(*plan));
  PENSTOCK_CHECK(again.ok(), again.status().ToString());
  PENSTOCK_CHECK(*again == *plan, "a plan is another one when its text is read");
  PENSTOCK_CHECK(Fingerprint(*again) == Fingerprint(*plan), "two equal plans differ in their fingerprints");
  const Status valid = ValidatePlan(*plan);
  if (!valid.ok()) fuzz::MustBeTheInputsFault(valid);
  return 0;
}
