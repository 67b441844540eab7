#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tests/support/program_files.h"

namespace penstock::test {

Result<GoldenOutputs> RunIr(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ParseText(text, "in"));
  PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &AllOps()}));
  const std::string printed = PrintProgram(program, PrintOptions::Everything());
  PENSTOCK_ASSIGN_OR_RETURN(const Program again, ParseText(printed, "printed"));
  const std::string difference = Difference(program, again);
  if (!difference.empty()) return InternalError("E-golden-round-trip", difference);
  return GoldenOutputs{{"out", "", printed}};
}

}  // namespace penstock::test
