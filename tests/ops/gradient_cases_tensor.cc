#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Ints = std::vector<std::int32_t>;

GradientCase Slice(const Ints& axes, const Ints& starts, const Ints& ends, const Ints& decreased) {
  GradientCase c{"slice",
                 WithSlots("slice", {"Input"}, {"Out"}),
                 {{"Input", Values({3, 4, 2})}},
                 {.of = {"Out"}, .wanted = {"Input"}}};
  c.op.Set("axes", axes).Set("starts", starts).Set("ends", ends).Set("decrease_axis", decreased);
  return c;
}

GradientCase StridedSlice(const Ints& axes, const Ints& starts, const Ints& ends, const Ints& strides) {
  GradientCase c{"strided_slice",
                 WithSlots("strided_slice", {"Input"}, {"Out"}),
                 {{"Input", Values({3, 4, 2})}},
                 {.of = {"Out"}, .wanted = {"Input"}}};
  c.op.Set("axes", axes).Set("starts", starts).Set("ends", ends).Set("strides", strides);
  return c;
}

GradientCase WithTensor(GradientCase c, const std::string& slot, std::initializer_list<std::int32_t> values) {
  c.op.AddInput(slot, {slot});
  c.inputs[slot] = TensorOf<std::int32_t>({static_cast<Dim>(values.size())}, values);
  return c;
}

void AddMasked(std::vector<GradientCase>& cases) {
  const Tensor mask = TensorOf<bool>({3, 1}, {true, false, true});
  cases.push_back({"split_lod_tensor",
                   WithSlots("split_lod_tensor", {"X", "Mask"}, {"OutTrue", "OutFalse"}).Set("level", 0),
                   {{"X", Values({3, 2})}, {"Mask", mask}},
                   {.of = {"OutTrue", "OutFalse"}, .wanted = {"X"}}});
  cases.push_back({"merge_lod_tensor",
                   WithSlots("merge_lod_tensor", {"X", "Mask", "InTrue", "InFalse"}, {"Out"}).Set("level", 0),
                   {{"X", Values({3, 2})},
                    {"Mask", mask},
                    {"InTrue", Values({2, 2}, -1, 1, 2)},
                    {"InFalse", Values({1, 2}, -1, 1, 3)}},
                   {.of = {"Out"}, .wanted = {"InTrue", "InFalse"}}});
}

}  // namespace

std::vector<GradientCase> TensorGradientCases() {
  std::vector<GradientCase> cases;
  AddMasked(cases);
  cases.push_back(Unary("expand", {2, 1, 3}));
  cases.back().op.Set("expand_times", Ints{2, 3, 1});
  cases.push_back(WithTensor(Unary("expand", {2, 3}), "ExpandTimes", {1, 2}));
  cases.push_back(Slice({0, 2}, {1, -1}, {3, 10}, {}));
  cases.push_back(Slice({0, 1}, {1, 1}, {2, 2}, {0, 1}));
  cases.push_back(WithTensor(WithTensor(Slice({1}, {}, {}, {}), "StartsTensor", {-3}), "EndsTensor", {3}));
  cases.push_back(StridedSlice({0, 1}, {0, -1}, {3, -100}, {2, -1}));
  cases.push_back(WithTensor(StridedSlice({1}, {3}, {0}, {}), "StridesTensor", {-2}));
  cases.push_back(Unary("reverse", {2, 3, 2}));
  cases.back().op.Set("axis", Ints{0, -1});
  for (const bool overwrite : {false, true}) {
    // A repeated row only if gradients are summed.
    const Tensor index = TensorOf<std::int64_t>({3}, {2, 0, overwrite ? 1 : 2});
    cases.push_back({"gather",
                     WithSlots("gather", {"X", "Index"}, {"Out"}).Set("overwrite", overwrite),
                     {{"X", Values({3, 2})}, {"Index", index}},
                     {.of = {"Out"}, .wanted = {"X"}}});
  }
  for (const int axis : {0, 1, -1}) {
    cases.push_back({StrCat("stack ", axis),
                     Op("stack").AddInput("X", {"a", "b", "c"}).AddOutput("Y", {"Y"}).Set("axis", axis),
                     {{"a", Values({2, 3})}, {"b", Values({2, 3}, 0, 1, 2)}, {"c", Values({2, 3}, 0, 1, 3)}},
                     {.of = {"Y"}, .wanted = {"a", "c"}}});
  }
  cases.push_back(Unary("pad", {2, 3}));
  cases.back().op.Set("paddings", Ints{0, 1, 2, 0}).Set("pad_value", 0.5f);
  return cases;
}

}  // namespace penstock::test
