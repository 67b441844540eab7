#include "tests/ops/gradient_case.h"

namespace penstock::test {

std::vector<GradientCase> SequenceGradientCases() {
  std::vector<GradientCase> cases;
  for (const char* kind : {"AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX"}) {
    cases.push_back(Unary("sequence_pool", {5, 2}));
    cases.back().name += StrCat(" ", kind);
    cases.back().op.AddOutput("MaxIndex", {"MaxIndex"}).Set("pooltype", kind);
    cases.back().inputs["X"].set_lod({{0, 2, 2, 5}});
  }
  for (const bool append : {false, true}) {
    cases.push_back(Unary("lod_reset", {5, 2}));
    cases.back().op.Set("target_lod", std::vector<std::int32_t>{0, 1, 5}).Set("append", append);
    if (append) cases.back().op.Set("target_lod", std::vector<std::int32_t>{0, 1, 4, 5});
    if (append) cases.back().inputs["X"].set_lod({{0, 2, 3}});
  }
  return cases;
}

}  // namespace penstock::test
