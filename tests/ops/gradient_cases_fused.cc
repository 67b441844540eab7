// Fused ops that have a gradient.
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

std::vector<GradientCase> FusedGradientCases() {
  std::vector<GradientCase> cases;
  for (const char* binary : {"elementwise_add", "elementwise_mul"}) {
    for (const char* unary : {"scale", "relu", "tanh", "sigmoid"}) {
      for (const bool keeps : {false, true}) {
        for (const Strings& names : {Strings{binary, unary}, Strings{unary, binary}}) {
          for (const Shape& y : {Shape{2, 3}, Shape{3}}) {
            cases.push_back({StrCat(names[0], " of ", names[1]),
                             WithSlots("fused_elemwise_activation", {"X", "Y"}, {"Out", "IntermediateOut"})
                                 .Set("functor_list", names)
                                 .Set("scale", 1.5f)
                                 .Set("save_intermediate_out", keeps),
                             {{"X", Values({2, 3})}, {"Y", Values(y, -1, 1, 3)}},
                             {.of = {"Out"}, .wanted = {"X", "Y"}}});
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace penstock::test
