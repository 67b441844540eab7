#include <nlohmann/json.hpp>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "transpiler/memory/memory.h"

namespace penstock::test {

Result<GoldenOutputs> RunMemory(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ParseText(text, "in"));
  PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &AllOps()}));
  const GoldenSection* given = one.Find("options");
  const auto options = nlohmann::json::parse(given == nullptr ? "{}" : given->text);
  const memory::NameSet keep = options.value("keep", memory::NameSet());
  const Result<memory::MemoryRewrite> less =
      options.value("release", false)
          ? memory::ReleaseBuffers(AllOps(), program, keep)
          : memory::ReuseBuffers(AllOps(), program,
                                 {.keep = keep,
                                  .larger_buffers = options.value("level", 0) == 1,
                                  .skip_grads = options.value("skip_grads", false)});
  if (!less.ok()) return less.status();
  PENSTOCK_RETURN_IF_ERROR(VerifyProgram(less->program, {.ops = &AllOps()}));
  return GoldenOutputs{{"out", "report", less->Report()}, {"out", "", PrintProgram(less->program)}};
}

}  // namespace penstock::test
