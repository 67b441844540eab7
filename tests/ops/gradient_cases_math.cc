#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

void AddActivations(std::vector<GradientCase>& cases) {
  cases.push_back(Unary("leaky_relu", {3, 7}));
  cases.back().op.Set("alpha", 0.25f);
  cases.push_back(Unary("elu", {3, 7}));
  cases.back().op.Set("alpha", 0.75f);
  cases.push_back(Unary("relu6", {3, 7}));
  cases.back().op.Set("threshold", 1.5f);
  for (const bool approximate : {false, true}) {
    cases.push_back(Unary("gelu", {3, 7}));
    cases.back().op.Set("approximate", approximate);
  }
  cases.push_back(Unary("hard_sigmoid", {3, 7}));
  cases.back().op.Set("slope", 0.4f);
  cases.push_back(Unary("hard_swish", {3, 7}));
  cases.back().op.Set("threshold", 2.0f).Set("scale", 3.0f).Set("offset", 1.0f);
  cases.push_back(Unary("stanh", {3, 7}));
  cases.push_back(Unary("swish", {3, 7}));
  cases.back().op.Set("beta", 1.5f);
}

void AddRowPairs(std::vector<GradientCase>& cases) {
  for (const Dim rows : {Dim{3}, Dim{1}}) {
    const Tensors inputs = {{"X", Values({3, 2, 2})}, {"Y", Values({rows, 2, 2}, -1, 2, 7)}};
    cases.push_back({StrCat("cos_sim ", rows),
                     WithSlots("cos_sim", {"X", "Y"}, {"Out", "XNorm", "YNorm"}),
                     inputs,
                     {.of = {"Out"}, .wanted = {"X", "Y"}}});
    cases.push_back({StrCat("squared_l2_distance ", rows),
                     WithSlots("squared_l2_distance", {"X", "Y"}, {"Out", "sub_result"}),
                     inputs,
                     {.of = {"Out"}, .wanted = {"X", "Y"}}});
  }
}

}  // namespace

std::vector<GradientCase> MathGradientCases() {
  std::vector<GradientCase> cases;
  AddActivations(cases);
  AddRowPairs(cases);
  cases.push_back({"mul",
                   WithSlots("mul", {"X", "Y"}, {"Out"}).Set("x_num_col_dims", 2).Set("y_num_col_dims", 1),
                   {{"X", Values({2, 3, 4})}, {"Y", Values({4, 2, 2}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"X", "Y"}}});
  for (const char* type : {"conv_shift", "minus"}) {
    const Dim width = std::string(type) == "minus" ? 5 : 3;
    cases.push_back({type,
                     WithSlots(type, {"X", "Y"}, {"Out"}),
                     {{"X", Values({2, 5})}, {"Y", Values({2, width}, -1, 1, 3)}},
                     {.of = {"Out"}, .wanted = {"X", "Y"}}});
  }
  for (const float order : {1.5f, 2.0f, 3.0f}) {
    cases.push_back(Unary("p_norm", {3, 4, 2}));
    cases.back().op.Set("porder", order).Set("axis", order < 2 ? -1 : 1).Set("keepdim", order > 2);
  }
  cases.push_back(Unary("squared_l2_norm", {3, 2}));
  cases.push_back(Unary("l1_norm", {3, 2}, 0.1));
  for (const int axis : {0, 1, -1}) {
    cases.push_back(Unary("norm", {3, 4, 2}));
    cases.back().op.AddOutput("Norm", {"Norm"}).Set("axis", axis).Set("epsilon", 0.1f);
    for (const bool flag : {false, true}) {
      cases.push_back(Unary("cumsum", {3, 4, 2}));
      cases.back().op.Set("axis", axis).Set("exclusive", flag).Set("reverse", axis == 0 ? flag : !flag);
      cases.push_back(Unary("argsort", {3, 4, 2}));
      cases.back().op.AddOutput("Indices", {"Indices"}).Set("axis", axis).Set("descending", flag);
    }
  }
  return cases;
}

}  // namespace penstock::test
