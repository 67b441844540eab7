// Ops on sequences: of different lengths, including empty ones, with one and two levels.
#include <algorithm>
#include <functional>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

using Adder = std::function<void(const std::string& name, const Op& op, const Tensors& inputs,
                                 const GradientCheck& check)>;

// Rows 2, 0, 4 and 1, and the outer level that joins the first two.
const LoD kOneLevel = {{0, 2, 2, 6, 7}};
const LoD kTwoLevels = {{0, 2, 3, 4}, {0, 2, 2, 6, 7}};
constexpr Dim kRows = 7;

Tensor Rows(const Shape& shape, const LoD& lod = {}, unsigned seed = 1) {
  Tensor tensor = Values(shape, -1, 1, seed);
  tensor.set_lod(lod);
  return tensor;
}

void AddPooling(const Adder& add) {
  for (const std::string& pool : AllOps().Find("sequence_pool")->FindAttr("pooltype")->check.domain) {
    for (const LoD& lod : {kOneLevel, kTwoLevels}) {
      for (const bool is_test : {false, true}) {
        Op op = WithSlots("sequence_pool", {"X"}, {"Out"}).Set("pooltype", pool).Set("is_test", is_test);
        if (pool == "MAX" && !is_test) op.AddOutput("MaxIndex", {"MaxIndex"});
        // With is_test there is no MaxIndex, and the gradient does not need it.
        add(pool, op, {{"X", Rows({kRows, 2, 2}, lod)}}, {.of = {"Out"}, .wanted = {"X"}});
      }
    }
  }
}

void AddWhatKeepsRows(const Adder& add) {
  const Tensor x = Rows({kRows, 3}, kTwoLevels);
  add("softmax", WithSlots("sequence_softmax", {"X"}, {"Out"}), {{"X", Rows({kRows, 1}, kTwoLevels)}},
      {.of = {"Out"}, .wanted = {"X"}});
  add("reverse", WithSlots("sequence_reverse", {"X"}, {"Y"}), {{"X", x}}, {.of = {"Y"}, .wanted = {"X"}});
  add("reshape", WithSlots("sequence_reshape", {"X"}, {"Out"}).Set("new_dim", 1), {{"X", x}},
      {.of = {"Out"}, .wanted = {"X"}});
  add("lod_reset",
      WithSlots("lod_reset", {"X"}, {"Out"}).Set("target_lod", std::vector<std::int32_t>{0, 0, 7}),
      {{"X", x}}, {.of = {"Out"}, .wanted = {"X"}});
  add("lod_reset appended",
      WithSlots("lod_reset", {"X"}, {"Out"})
          .Set("append", true)
          .Set("target_lod", std::vector<std::int32_t>{0, 1, 3, 3, 7}),
      {{"X", Rows({kRows, 2}, {{0, 2, 4}})}}, {.of = {"Out"}, .wanted = {"X"}});
  add("conv without padding data",
      WithSlots("sequence_conv", {"X", "Filter"}, {"Out"}).Set("contextLength", 2),
      {{"X", x}, {"Filter", Rows({6, 2})}}, {.of = {"Out"}, .wanted = {"X", "Filter"}});
  for (const std::int32_t start : {-1, 0, 1, -3}) {
    const Op conv = WithSlots("sequence_conv", {"X", "PaddingData", "Filter"}, {"Out"})
                        .Set("contextLength", 3)
                        .Set("contextStart", start)
                        .Set("paddingTrainable", true);
    const Dim padding = std::max(0, -start) + std::max(0, start + 2);
    add(StrCat("conv from ", start), conv,
        {{"X", x}, {"PaddingData", Rows({padding, 3})}, {"Filter", Rows({9, 2})}},
        {.of = {"Out"}, .wanted = {"X", "PaddingData", "Filter"}});
  }
  add("row_conv", WithSlots("row_conv", {"X", "Filter"}, {"Out"}), {{"X", x}, {"Filter", Rows({3, 3})}},
      {.of = {"Out"}, .wanted = {"X", "Filter"}});
  add("row_conv of a batch", WithSlots("row_conv", {"X", "Filter"}, {"Out"}),
      {{"X", Rows({2, 4, 3})}, {"Filter", Rows({3, 3})}}, {.of = {"Out"}, .wanted = {"X", "Filter"}});
}

void AddCopies(const Adder& add) {
  const Op expand = WithSlots("sequence_expand", {"X", "Y"}, {"Out"});
  const Tensor y = Rows({kRows, 1}, kTwoLevels);
  add("rows", expand, {{"X", Rows({4, 2})}, {"Y", y}}, {.of = {"Out"}, .wanted = {"X"}});
  add("sequences", expand, {{"X", Rows({5, 2}, {{0, 2, 2, 4, 5}})}, {"Y", y}},
      {.of = {"Out"}, .wanted = {"X"}});
  Op outer = expand;
  add("outer level", outer.Set("ref_level", 0), {{"X", Rows({5, 2}, {{0, 2, 4, 5}})}, {"Y", y}},
      {.of = {"Out"}, .wanted = {"X"}});
  add("as", WithSlots("sequence_expand_as", {"X", "Y"}, {"Out"}),
      {{"X", Rows({4, 2})}, {"Y", Rows({kRows, 1}, kOneLevel)}}, {.of = {"Out"}, .wanted = {"X"}});
}

void AddJoinsPaddingAndParts(const Adder& add) {
  const Op concat = Op("sequence_concat").AddInput("X", {"a", "b"}).AddOutput("Out", {"Out"});
  add("concat", concat,
      {{"a", Rows({kRows, 2}, kTwoLevels)}, {"b", Rows({3, 2}, {{0, 2, 3, 4}, {0, 0, 1, 3, 3}})}},
      {.of = {"Out"}, .wanted = {"a", "b"}});
  for (const std::int32_t length : {-1, 6}) {
    add(StrCat("pad to ", length),
        WithSlots("sequence_pad", {"X", "PadValue"}, {"Out", "Length"}).Set("padded_length", length),
        {{"X", Rows({kRows, 2}, kOneLevel)}, {"PadValue", Rows({2})}}, {.of = {"Out"}, .wanted = {"X"}});
  }
  add("unpad", WithSlots("sequence_unpad", {"X", "Length"}, {"Out"}),
      {{"X", Rows({3, 4, 2})}, {"Length", TensorOf<std::int64_t>({3}, {2, 0, 4})}},
      {.of = {"Out"}, .wanted = {"X"}});
  add("slice", WithSlots("sequence_slice", {"X", "Offset", "Length"}, {"Out"}),
      {{"X", Rows({kRows, 2}, kOneLevel)},
       {"Offset", TensorOf<std::int64_t>({4, 1}, {1, 0, 1, 0})},
       {"Length", TensorOf<std::int64_t>({4, 1}, {1, 0, 2, 1})}},
      {.of = {"Out"}, .wanted = {"X"}});
  Tensor ids = TensorOf<std::int64_t>({kRows, 1}, {0, 2, 1, 1, 0, 2, 1});
  ids.set_lod(kOneLevel);
  add("scatter", WithSlots("sequence_scatter", {"X", "Ids", "Updates"}, {"Out"}),
      {{"X", Rows({4, 3})}, {"Ids", ids}, {"Updates", Rows({kRows, 1})}},
      {.of = {"Out"}, .wanted = {"X", "Updates"}});
  add("im2sequence",
      WithSlots("im2sequence", {"X"}, {"Out"})
          .Set("kernels", std::vector<std::int32_t>{2, 3})
          .Set("strides", std::vector<std::int32_t>{2, 1})
          .Set("paddings", std::vector<std::int32_t>{1, 0, 0, 1}),
      {{"X", Rows({2, 2, 3, 4})}}, {.of = {"Out"}, .wanted = {"X"}});
}

// Both outputs, each alone: Fluid's gradient ignores the gradient of the cell.
void AddLstm(const Adder& add) {
  const std::vector<std::string> activations =
      AllOps().Find("lstm")->FindAttr("gate_activation")->check.domain;
  for (const std::string& activation : activations) {
    for (const bool reversed : {false, true}) {
      const Op op = WithSlots("lstm", {"Input", "H0", "C0", "Weight", "Bias"},
                              {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"})
                        .Set("gate_activation", activation)
                        .Set("cell_activation", activation)
                        .Set("candidate_activation", activation)
                        .Set("use_peepholes", !reversed)
                        .Set("is_reverse", reversed);
      for (const std::vector<std::string>& of :
           {std::vector<std::string>{"Hidden"}, {"Cell"}, {"Hidden", "Cell"}}) {
        add(StrCat("lstm ", activation), op,
            {{"Input", Rows({kRows, 8}, kTwoLevels)},
             {"H0", Rows({4, 2}, {}, 2)},
             {"C0", Rows({4, 2}, {}, 3)},
             {"Weight", Rows({2, 8}, {}, 4)},
             {"Bias", Rows({1, reversed ? 8 : 14}, {}, 5)}},
            {.of = of, .wanted = {"Input", "H0", "C0", "Weight", "Bias"}});
      }
    }
  }
}

void AddProjectedLstm(const Adder& add) {
  for (const std::string& activation : AllOps().Find("lstmp")->FindAttr("proj_activation")->check.domain) {
    // The bound clips some of the cells and projections, and none is near it.
    for (const float clip : {0.0f, 0.4f}) {
      const Op op = WithSlots("lstmp", {"Input", "H0", "C0", "Weight", "ProjWeight", "Bias"},
                              {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"})
                        .Set("proj_activation", activation)
                        .Set("gate_activation", activation)
                        .Set("cell_activation", activation)
                        .Set("candidate_activation", activation)
                        .Set("use_peepholes", clip == 0)
                        .Set("is_reverse", clip != 0)
                        .Set("cell_clip", clip)
                        .Set("proj_clip", clip);
      add(StrCat("lstmp ", activation, " clip ", clip), op,
          {{"Input", Rows({kRows, 12}, kOneLevel)},
           {"H0", Rows({4, 2}, {}, 2)},
           {"C0", Rows({4, 3}, {}, 3)},
           {"Weight", Rows({2, 12}, {}, 4)},
           {"ProjWeight", Rows({3, 2}, {}, 6)},
           {"Bias", Rows({1, clip == 0 ? 21 : 12}, {}, 5)}},
          {.of = {"Projection", "Cell"}, .wanted = {"Input", "H0", "C0", "Weight", "ProjWeight", "Bias"}});
    }
  }
}

void AddGru(const Adder& add) {
  for (const std::string& activation : AllOps().Find("gru")->FindAttr("activation")->check.domain) {
    for (const bool origin : {false, true}) {
      const Op op = WithSlots("gru", {"Input", "H0", "Weight", "Bias"},
                              {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"})
                        .Set("activation", activation)
                        .Set("gate_activation", activation)
                        .Set("origin_mode", origin)
                        .Set("is_reverse", origin);
      add(StrCat("gru ", activation), op,
          {{"Input", Rows({kRows, 6}, kTwoLevels)},
           {"H0", Rows({4, 2}, {}, 2)},
           {"Weight", Rows({2, 6}, {}, 4)},
           {"Bias", Rows({1, 6}, {}, 5)}},
          {.of = {"Hidden"}, .wanted = {"Input", "H0", "Weight", "Bias"}});
    }
  }
}

void AddSingleSteps(const Adder& add) {
  for (const std::int32_t activation : {0, 1, 2, 3}) {
    const Op op = WithSlots("gru_unit", {"Input", "HiddenPrev", "Weight", "Bias"},
                            {"Gate", "ResetHiddenPrev", "Hidden"})
                      .Set("activation", activation)
                      .Set("gate_activation", activation)
                      .Set("origin_mode", activation > 1);
    add(StrCat("gru_unit ", activation), op,
        {{"Input", Rows({4, 6})},
         {"HiddenPrev", Rows({4, 2}, {}, 2)},
         {"Weight", Rows({2, 6}, {}, 4)},
         {"Bias", Rows({1, 6}, {}, 5)}},
        {.of = {"Hidden"}, .wanted = {"Input", "HiddenPrev", "Weight", "Bias"}});
  }
  for (const std::vector<std::string>& of : {std::vector<std::string>{"H"}, {"C"}, {"C", "H"}}) {
    add("lstm_unit", WithSlots("lstm_unit", {"X", "C_prev"}, {"C", "H"}).Set("forget_bias", 0.5f),
        {{"X", Rows({4, 8})}, {"C_prev", Rows({4, 2})}}, {.of = of, .wanted = {"X", "C_prev"}});
  }
}

void AddChains(const Adder& add) {
  Tensor tags = TensorOf<std::int64_t>({kRows, 1}, {0, 2, 1, 1, 0, 2, 1});
  tags.set_lod(kOneLevel);
  const std::vector<std::string> outs = {"Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"};
  const GradientCheck check{.of = {"LogLikelihood"}, .wanted = {"Emission", "Transition"}};
  add("chain", WithSlots("linear_chain_crf", {"Emission", "Transition", "Label"}, outs),
      {{"Emission", Rows({kRows, 3}, kOneLevel)}, {"Transition", Rows({5, 3}, {}, 2)}, {"Label", tags}},
      check);
  add("padded chain", WithSlots("linear_chain_crf", {"Emission", "Transition", "Label", "Length"}, outs),
      {{"Emission", Rows({3, 3, 2})},
       {"Transition", Rows({4, 2}, {}, 2)},
       {"Label", TensorOf<std::int64_t>({3, 3}, {1, 0, 1, 1, 7, -3, 1, 1, 9})},
       {"Length", TensorOf<std::int64_t>({3, 1}, {3, 0, 2})}},
      check);
}

void AddLayersOfLstm(const Adder& add) {
  for (const bool both : {false, true}) {
    for (const bool is_test : {false, true}) {
      const Dim directions = both ? 2 : 1, states = 2 * directions;
      // Two layers of two elements with inputs of three; the second reads the outputs of both directions.
      const Dim weights = directions * (8 * (3 + 2) + 8 * (2 * directions + 2) + 2 * 16);
      const Op op = WithSlots("cudnn_lstm", {"Input", "InitH", "InitC", "W"}, {"Out", "last_h", "last_c"})
                        .Set("input_size", 3)
                        .Set("hidden_size", 2)
                        .Set("num_layers", 2)
                        .Set("is_bidirec", both)
                        .Set("is_test", is_test);
      for (const std::vector<std::string>& of :
           {std::vector<std::string>{"Out"}, {"last_h"}, {"last_c"}, {"Out", "last_h", "last_c"}}) {
        add("cudnn_lstm", op,
            {{"Input", Rows({4, 2, 3})},
             {"InitH", Rows({states, 2, 2}, {}, 2)},
             {"InitC", Rows({states, 2, 2}, {}, 3)},
             {"W", Rows({weights}, {}, 4)}},
            {.of = of, .wanted = {"Input", "InitH", "InitC", "W"}});
      }
    }
  }
}

}  // namespace

std::vector<GradientCase> SequenceGradientCases() {
  std::vector<GradientCase> cases;
  const Adder add = [&cases](const std::string& name, const Op& op, const Tensors& inputs,
                             const GradientCheck& check) {
    cases.push_back({name, op, inputs, check});
  };
  AddPooling(add);
  AddWhatKeepsRows(add);
  AddCopies(add);
  AddJoinsPaddingAndParts(add);
  AddLstm(add);
  AddProjectedLstm(add);
  AddGru(add);
  AddSingleSteps(add);
  AddChains(add);
  AddLayersOfLstm(add);
  return cases;
}

}  // namespace penstock::test
