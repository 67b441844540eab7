// Ops that take, insert, repeat and move parts of tensors.
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

// An op of X, a tensor of indices and further inputs, differentiated by `wanted`.
GradientCase Indexed(const std::string& type, const Shape& x, const std::string& slot, const Tensor& index) {
  return {type,
          WithSlots(type, {"X", slot}, {"Out"}),
          {{"X", Values(x)}, {slot, index}},
          {.of = {"Out"}, .wanted = {"X"}}};
}

void AddByIndex(std::vector<GradientCase>& cases) {
  cases.push_back(
      Indexed("gather_nd", {3, 2, 2}, "Index", TensorOf<std::int64_t>({3, 2}, {2, 1, 0, 0, 2, 1})));
  cases.push_back(Indexed("gather_nd", {3, 2}, "Index", TensorOf<std::int32_t>({2, 1}, {2, 2})));
  cases.push_back(Indexed("index_select", {2, 3, 2}, "Index", TensorOf<std::int64_t>({4}, {2, 0, 2, 1})));
  cases.back().op.Set("dim", -2);
  cases.push_back(Indexed("index_sample", {2, 3}, "Index", TensorOf<std::int32_t>({2, 2}, {2, 2, 0, 1})));
  for (const bool overwrite : {false, true}) {
    GradientCase c = Indexed("scatter", {4, 2}, "Ids", TensorOf<std::int64_t>({3}, {2, 0, 2}));
    c.op.AddInput("Updates", {"Updates"}).Set("overwrite", overwrite);
    c.inputs["Updates"] = Values({3, 2}, -1, 1, 5);
    c.check.wanted = {"X", "Updates"};
    cases.push_back(c);
  }
  GradientCase add = Indexed("scatter_nd_add", {3, 2}, "Index", TensorOf<std::int64_t>({3, 1}, {2, 0, 2}));
  add.op.AddInput("Updates", {"Updates"});
  add.inputs["Updates"] = Values({3, 2}, -1, 1, 5);
  add.check.wanted = {"X", "Updates"};
  cases.push_back(add);
  cases.push_back({"where",
                   WithSlots("where", {"Condition", "X", "Y"}, {"Out"}),
                   {{"Condition", TensorOf<bool>({2, 2}, {true, false, false, true})},
                    {"X", Values({2, 2})},
                    {"Y", Values({2, 2}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"X", "Y"}}});
  cases.push_back(
      {"multiplex",
       Op("multiplex").AddInput("Ids", {"Ids"}).AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"}),
       {{"Ids", TensorOf<std::int32_t>({3, 1}, {1, 0, 1})},
        {"a", Values({3, 2})},
        {"b", Values({3, 2}, -1, 1, 3)}},
       {.of = {"Out"}, .wanted = {"a", "b"}}});
}

void AddBoxes(std::vector<GradientCase>& cases) {
  cases.push_back(Unary("crop", {3, 4}));
  cases.back().op.Set("offsets", Ints{1, 0}).Set("shape", Ints{2, 3});
  cases.push_back(Unary("crop", {3, 4}));
  cases.back().op.AddInput("Y", {"Y"}).AddInput("Offsets", {"Offsets"});
  cases.back().inputs["Y"] = Values({2, 2});
  cases.back().inputs["Offsets"] = TensorOf<std::int32_t>({2}, {1, 2});
  cases.push_back(Unary("crop_tensor", {3, 4}));
  cases.back().op.Set("offsets", Ints{1, 1}).Set("shape", Ints{-1, 2});
  cases.push_back(Unary("crop_tensor", {3, 4}));
  cases.back().op.AddInput("Shape", {"Shape"}).AddInput("OffsetsTensor", {"o", "p"});
  cases.back().inputs["Shape"] = TensorOf<std::int32_t>({2}, {2, -1});
  cases.back().inputs["o"] = TensorOf<std::int32_t>({1}, {1});
  cases.back().inputs["p"] = TensorOf<std::int32_t>({1}, {2});
  cases.push_back({"pad_constant_like",
                   WithSlots("pad_constant_like", {"X", "Y"}, {"Out"}).Set("pad_value", 0.5f),
                   {{"X", Values({3, 4})}, {"Y", Values({2, 4}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"Y"}}});
  cases.push_back(Unary("expand_as", {2, 1, 3}));
  cases.back().op.AddInput("target_tensor", {"target"});
  cases.back().inputs["target"] = Values({4, 3, 3});
}

void AddMoved(std::vector<GradientCase>& cases) {
  cases.push_back(Unary("flip", {2, 3, 2}));
  cases.back().op.Set("dims", Ints{0, -1});
  cases.push_back(Unary("roll", {2, 3, 2}));
  cases.back().op.Set("dims", Longs{0, -2, 1}).Set("shifts", Longs{1, 5, -2});
  cases.push_back(Unary("roll", {2, 3}));
  cases.back().op.Set("dims", Longs{1}).Set("shifts", Longs{-2});
  for (const bool lower : {false, true}) {
    cases.push_back(Unary("tril_triu", {2, 3, 4}));
    cases.back().op.Set("lower", lower).Set("diagonal", lower ? -1 : 1);
  }
  cases.push_back({"trace",
                   WithSlots("trace", {"Input"}, {"Out"}).Set("offset", -1).Set("dim1", 2).Set("dim2", 0),
                   {{"Input", Values({3, 2, 4})}},
                   {.of = {"Out"}, .wanted = {"Input"}}});
  for (const std::int32_t axis : {0, -1}) {
    cases.push_back(
        {"unstack",
         Op("unstack").AddInput("X", {"X"}).AddOutput("Y", {"a", "b"}).Set("axis", axis).Set("num", 2),
         {{"X", Values({2, 3, 2})}},
         {.of = {"a", "b"}, .wanted = {"X"}}});
    cases.push_back({"unbind",
                     Op("unbind").AddInput("X", {"X"}).AddOutput("Out", {"a", "b"}).Set("axis", axis),
                     {{"X", Values({2, 3, 2})}},
                     {.of = {"a", "b"}, .wanted = {"X"}}});
  }
  cases.push_back({"meshgrid",
                   Op("meshgrid").AddInput("X", {"a", "b"}).AddOutput("Out", {"p", "q"}),
                   {{"a", Values({2})}, {"b", Values({3}, -1, 1, 3)}},
                   {.of = {"p", "q"}, .wanted = {"a", "b"}}});
}

}  // namespace

std::vector<GradientCase> PartsGradientCases() {
  std::vector<GradientCase> cases;
  for (auto* add : {AddByIndex, AddBoxes, AddMoved}) add(cases);
  return cases;
}

}  // namespace penstock::test
