#include "tests/golden/handlers.h"

#include <map>

namespace penstock::test {

GoldenHandler FindGoldenHandler(std::string_view folder) {
  static const std::map<std::string_view, GoldenHandler> handlers = {
      {"check", RunCheck}, {"cost", RunCost},       {"diff", RunDiff},   {"exec_plan", RunExecPlan},
      {"ir", RunIr},       {"memory", RunMemory},   {"passes", RunPass}, {"pipelines", RunPipelines},
      {"plan", RunPlan},   {"profile", RunProfile}, {"steps", RunSteps}, {"trace", RunTrace},
  };
  const auto it = handlers.find(folder);
  return it == handlers.end() ? nullptr : it->second;
}

Result<std::string> RequireSection(const GoldenCase& one, std::string_view name) {
  const GoldenSection* section = one.Find(name);
  if (section == nullptr) return InvalidArgument("E-golden", "the case has no section ", name);
  return section->text;
}

}  // namespace penstock::test
