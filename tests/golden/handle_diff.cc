// diff/: compares two programs op by op.
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tools/diff/diff.h"

namespace penstock::test {

Result<GoldenOutputs> RunDiff(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string first, RequireSection(one, "a"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string second, RequireSection(one, "b"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program a, ParseText(first, "a"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program b, ParseText(second, "b"));
  const tools::ProgramDiff diff = tools::DiffPrograms(AllOps(), a, b);
  return GoldenOutputs{{"out", "", StrCat(diff.text, tools::CountText(diff), "\n")}};
}

}  // namespace penstock::test
