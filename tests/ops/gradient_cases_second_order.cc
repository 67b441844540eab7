// Gradient ops that have a gradient themselves: second derivatives.
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

// The gradient of an activation, which sees X or Out.
GradientCase OfActivation(const std::string& type, const std::string& seen, bool bends) {
  GradientCase c{type + "_grad",
                 WithSlots(type + "_grad", {seen, "Out@GRAD"}, {"X@GRAD"}),
                 {{seen, Values({3, 4}, type == "sqrt" ? 0.5 : -2)}, {"Out@GRAD", Values({3, 4}, -1, 1, 3)}},
                 {.of = {"X@GRAD"}, .wanted = {"Out@GRAD"}}};
  if (bends) c.check.wanted.insert(seen);
  return c;
}

GradientCase GradOfTwo(const std::string& type, const Shape& x, const Shape& y, const Shape& out) {
  return {type + "_grad",
          WithSlots(type + "_grad", {"X", "Y", "Out@GRAD"}, {"X@GRAD", "Y@GRAD"}),
          {{"X", Values(x)}, {"Y", Values(y, 0.5, 2, 5)}, {"Out@GRAD", Values(out, -1, 1, 7)}},
          {.of = {"X@GRAD", "Y@GRAD"}, .wanted = {"Out@GRAD"}}};
}

void AddBinary(std::vector<GradientCase>& cases) {
  for (const char* type : {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"}) {
    for (const Shape& y : {Shape{2, 3, 4}, Shape{3, 1}, Shape{3}}) {
      GradientCase c = GradOfTwo(type, {2, 3, 4}, y, {2, 3, 4});
      c.op.Set("axis", y.rank() == 3 ? -1 : 1);
      if (type == std::string("elementwise_mul")) c.check.wanted = {"X", "Y", "Out@GRAD"};
      if (type == std::string("elementwise_div")) {
        // Out is a separate input here: another op computes its dependence on X and Y.
        c.op.AddInput("Out", {"Out"});
        c.inputs["Out"] = Values({2, 3, 4}, -2, 2, 9);
        c.check.wanted = {"Out", "Y", "Out@GRAD"};
      }
      cases.push_back(c);
    }
  }
  cases.push_back(GradOfTwo("elementwise_mul", {3}, {2, 3}, {2, 3}));
  cases.back().check.wanted = {"X", "Y", "Out@GRAD"};
  cases.push_back(GradOfTwo("mul", {2, 3, 2}, {6, 4}, {2, 4}));
  cases.back().check.wanted = {"X", "Y", "Out@GRAD"};
}

void AddLinearOps(std::vector<GradientCase>& cases) {
  for (const char* type : {"reduce_sum", "reduce_mean"}) {
    for (const bool keeps : {false, true}) {
      cases.push_back(
          {StrCat(type, "_grad"),
           WithSlots(StrCat(type, "_grad"), {"X", "Out@GRAD"}, {"X@GRAD"})
               .Set("dim", Ints{1})
               .Set("keep_dim", keeps),
           {{"X", Values({2, 3})}, {"Out@GRAD", Values(keeps ? Shape{2, 1} : Shape{2}, -1, 1, 3)}},
           {.of = {"X@GRAD"}, .wanted = {"Out@GRAD"}}});
    }
    cases.push_back({StrCat(type, "_grad"),
                     WithSlots(StrCat(type, "_grad"), {"X", "Out@GRAD"}, {"X@GRAD"}).Set("reduce_all", true),
                     {{"X", Values({2, 3})}, {"Out@GRAD", Values({1}, -1, 1, 3)}},
                     {.of = {"X@GRAD"}, .wanted = {"Out@GRAD"}}});
  }
  cases.push_back({"expand_grad",
                   WithSlots("expand_grad", {"X", "Out@GRAD"}, {"X@GRAD"}).Set("expand_times", Ints{2, 3}),
                   {{"X", Values({2, 1})}, {"Out@GRAD", Values({4, 3}, -1, 1, 3)}},
                   {.of = {"X@GRAD"}, .wanted = {"Out@GRAD"}}});
  cases.push_back({"slice_grad",
                   WithSlots("slice_grad", {"Input", "Out@GRAD"}, {"Input@GRAD"})
                       .Set("axes", Ints{1})
                       .Set("starts", Ints{1})
                       .Set("ends", Ints{3}),
                   {{"Input", Values({2, 4})}, {"Out@GRAD", Values({2, 2}, -1, 1, 3)}},
                   {.of = {"Input@GRAD"}, .wanted = {"Out@GRAD"}}});
  cases.push_back({"reshape2_grad",
                   WithSlots("reshape2_grad", {"XShape", "Out@GRAD"}, {"X@GRAD"}),
                   {{"XShape", Tensor(DType::kFp64, {0, 2, 3})}, {"Out@GRAD", Values({3, 2}, -1, 1, 3)}},
                   {.of = {"X@GRAD"}, .wanted = {"Out@GRAD"}}});
}

GradientCase GradOfConvolution(bool volume, const char* format, const char* padding) {
  const bool last = std::string_view(format).ends_with("C");
  const std::string type = volume ? "conv3d_grad" : "conv2d_grad";
  std::vector<Dim> input = volume ? std::vector<Dim>{3, 3, 2} : std::vector<Dim>{4, 3};
  std::vector<Dim> output = volume ? std::vector<Dim>{2, 2, 1} : std::vector<Dim>{2, 2};
  if (padding == std::string_view("SAME")) output = input;
  const auto images = [last](Dim channels, std::vector<Dim> extents) {
    extents.insert(last ? extents.end() : extents.begin(), channels);
    extents.insert(extents.begin(), 2);
    return Shape(std::move(extents));
  };
  GradientCase c{StrCat(type, " ", format, " ", padding),
                 WithSlots(type, {"Input", "Filter", "Output@GRAD"}, {"Input@GRAD", "Filter@GRAD"})
                     .Set("data_format", format)
                     .Set("padding_algorithm", padding)
                     .Set("groups", 2),
                 {{"Input", Values(images(4, input))},
                  {"Filter", Values(volume ? Shape{2, 2, 2, 2, 2} : Shape{2, 2, 3, 2}, -1, 1, 5)},
                  {"Output@GRAD", Values(images(2, output), -1, 1, 7)}},
                 {.of = {"Input@GRAD", "Filter@GRAD"}, .wanted = {"Input", "Filter", "Output@GRAD"}}};
  return c;
}

void AddConvolutions(std::vector<GradientCase>& cases) {
  for (const bool volume : {false, true}) {
    for (const char* format : {"AnyLayout", volume ? "NCDHW" : "NCHW", volume ? "NDHWC" : "NHWC"}) {
      for (const char* padding : {"EXPLICIT", "SAME", "VALID"})
        cases.push_back(GradOfConvolution(volume, format, padding));
    }
  }
}

// nn_values_test.cc tests the gradient by X; here, its moments are separate inputs.
void AddNorms(std::vector<GradientCase>& cases) {
  cases.push_back({"instance_norm_grad",
                   WithSlots("instance_norm_grad", {"X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD"},
                             {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}),
                   {{"X", Values({2, 3, 2, 2})},
                    {"Scale", Values({3}, 0.5, 1.5, 3)},
                    {"SavedMean", Values({6}, -1, 1, 5)},
                    {"SavedVariance", Values({6}, 0.5, 1.5, 7)},
                    {"Y@GRAD", Values({2, 3, 2, 2}, -1, 1, 9)}},
                   {.of = {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}, .wanted = {"Scale", "Y@GRAD"}}});
}

}  // namespace

std::vector<GradientCase> SecondOrderGradientCases() {
  std::vector<GradientCase> cases = {OfActivation("relu", "Out", false), OfActivation("sqrt", "Out", true),
                                     OfActivation("square", "X", true),
                                     OfActivation("leaky_relu", "Out", false),
                                     OfActivation("elu", "X", true)};
  for (auto* add : {AddBinary, AddLinearOps, AddConvolutions, AddNorms}) add(cases);
  return cases;
}

}  // namespace penstock::test
