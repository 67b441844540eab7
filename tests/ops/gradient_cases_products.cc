// Further elementwise functions, products, and norms of differences.
#include <limits>

#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

GradientCase OfTwo(const std::string& type, const Shape& x, const Shape& y) {
  return {type,
          WithSlots(type, {"X", "Y"}, {"Out"}),
          {{"X", Values(x)}, {"Y", Values(y, -1.5, 2.5, 9)}},
          {.of = {"Out"}, .wanted = {"X", "Y"}}};
}

void AddFunctions(std::vector<GradientCase>& cases) {
  for (const char* type : {"acos", "asin"}) {
    cases.push_back(Unary(type, {3, 4}));
    cases.back().inputs["X"] = Values({3, 4}, -0.9, 0.9);
  }
  cases.push_back(Unary("log1p", {3, 4}, -0.5));
  for (const char* type : {"erf", "hard_shrink", "softshrink", "thresholded_relu", "selu", "mish"})
    cases.push_back(Unary(type, {3, 7}));
  cases.push_back(Unary("mish", {3, 7}));
  cases.back().op.Set("threshold", 30.0f);
  cases.push_back(Unary("brelu", {3, 7}));
  cases.back().op.Set("t_min", -0.5f).Set("t_max", 1.25f);
  cases.push_back(Unary("soft_relu", {3, 7}));
  cases.back().op.Set("threshold", 1.25f);
}

void AddFactors(std::vector<GradientCase>& cases) {
  cases.push_back(OfTwo("dot", {4}, {4}));
  cases.push_back(OfTwo("dot", {3, 4}, {3, 4}));
  cases.push_back(OfTwo("cross", {2, 3, 3}, {2, 3, 3}));
  cases.push_back(OfTwo("cross", {2, 3, 3}, {2, 3, 3}));
  cases.back().op.Set("dim", -1);
  cases.push_back(OfTwo("kron", {2, 3}, {2, 2}));
  cases.push_back(OfTwo("kron", {3}, {2, 1, 2}));
  cases.push_back(OfTwo("bmm", {2, 2, 3}, {2, 3, 4}));
  for (const Shape& input : {Shape{2, 4}, Shape{1, 4}, Shape{2, 1}}) {
    GradientCase c = OfTwo("addmm", {2, 3}, {3, 4});
    c.op.AddInput("Input", {"Input"}).Set("Alpha", 0.5f).Set("Beta", -1.5f);
    c.inputs["Input"] = Values(input, -1, 1, 5);
    c.check.wanted = {"X", "Y", "Input"};
    cases.push_back(c);
  }
}

void AddDistances(std::vector<GradientCase>& cases) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float p : {0.0f, 1.0f, 2.0f, 3.5f, kInfinity, -kInfinity}) {
    for (const Shape& y : {Shape{2, 3}, Shape{4, 1}}) {
      cases.push_back(OfTwo("dist", y[0] == 2 ? Shape{2, 3} : Shape{2, 1, 3}, y));
      cases.back().inputs["Y"] = Values(y, -1.37, 2.61, 9);  // no two differences are equal
      cases.back().op.Set("p", p);
    }
  }
}

}  // namespace

std::vector<GradientCase> ProductsGradientCases() {
  std::vector<GradientCase> cases;
  for (auto* add : {AddFunctions, AddFactors, AddDistances}) add(cases);
  return cases;
}

}  // namespace penstock::test
