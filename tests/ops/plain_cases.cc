// Ops without a gradient, each with valid inputs.
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"
#include "tests/ops/vision_cases.h"

namespace penstock::test {
namespace {

Tensor Floats(const Shape& shape, double low = 0.2, double high = 0.9) {
  return Scattered(DType::kFp32, shape, low, high);
}
Tensor Numbers(const Shape& shape) { return Ramp(DType::kInt64, shape, 1, 1); }
Tensor Truths() { return TensorOf<bool>({2, 2}, {true, false, false, true}); }
Tensor InSequences(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}

// An update of three rows of two elements; outputs have the names of the variables that they update.
PlainCase Update(const OpDef& def) {
  PlainCase c{Op(def.type()), {}};
  for (const SlotDef& slot : def.inputs()) {
    if (slot.optional) continue;
    bool shaped = slot.name == def.optimizer()->param_slot || slot.name == def.optimizer()->grad_slot;
    for (const StateDef& state : def.optimizer()->states)
      shaped = shaped || (state.slot == slot.name && state.slicing == StateSlicing::kWithParam);
    c.op.AddInput(slot.name, {slot.name});
    const bool of_doubles = slot.type.types == std::vector<DType>{DType::kFp64};
    const DType type = of_doubles ? DType::kFp64 : DType::kFp32;
    c.inputs[slot.name] = Scattered(type, shaped ? Shape{3, 2} : Shape{1}, 0.2, 0.9);
  }
  for (const SlotDef& slot : def.outputs()) {
    const std::string input = slot.name.substr(0, slot.name.size() - std::string("Out").size());
    if (!slot.optional) c.op.AddOutput(slot.name, {c.inputs.contains(input) ? input : slot.name});
  }
  for (const AttrDef& attr : def.attrs()) {
    if (!attr.default_value) c.op.Set(attr.name, 0.3f);
  }
  return c;
}

// Each rule of the updates of keys, with all states that it may have, and each truth.
void AddKeyedUpdates(std::vector<PlainCase>& cases) {
  for (const char* type : {"keyed_update", "keyed_update_whole"}) {
    const OpDef& def = *AllOps().Find(type);
    PlainCase whole = Update(def);
    whole.op.Set("momentum", 0.5f).Set("beta1", 0.5f).Set("epsilon", 0.25f).Set("clip_gradient", 0.75f);
    for (const SlotDef& slot : def.inputs()) {
      if (!slot.optional) continue;
      whole.op.AddInput(slot.name, {slot.name}).AddOutput(slot.name + "Out", {slot.name});
      const Shape shape = slot.name == "Product"   ? Shape{1}
                          : slot.name == "History" ? Shape{3, 1}
                                                   : Shape{3, 2};
      whole.inputs[slot.name] =
          Scattered(slot.name == "Product" ? DType::kFp64 : DType::kFp32, shape, 0.2, 0.9);
    }
    whole.inputs["Count"] = TensorOf<double>({1}, {2});
    for (const std::string& rule : def.FindAttr("rule")->check.domain) {
      cases.push_back(whole);
      cases.back().op.Set("rule", rule);
      for (const AttrDef& attr : def.attrs()) {
        if (attr.kind != AttrKind::kBool) continue;
        const bool otherwise = !std::get<bool>(*attr.default_value);
        cases.push_back(whole);
        cases.back().op.Set("rule", rule).Set(attr.name, otherwise);
      }
    }
  }
}

void AddUpdates(std::vector<PlainCase>& cases) {
  for (const OpDef* def : AllOps().All()) {
    if (def->optimizer()) cases.push_back(Update(*def));
  }
  AddKeyedUpdates(cases);
  cases.push_back({WithSlots("average_accumulates",
                             {"param", "in_sum_1", "in_sum_2", "in_sum_3", "in_num_accumulates",
                              "in_old_num_accumulates", "in_num_updates"},
                             {"out_sum_1", "out_sum_2", "out_sum_3", "out_num_accumulates",
                              "out_old_num_accumulates", "out_num_updates"})
                       .Set("average_window", 0.5f)
                       .Set("max_average_window", std::int64_t{4})
                       .Set("min_average_window", std::int64_t{2}),
                   {{"param", Floats({2})},
                    {"in_sum_1", Floats({2})},
                    {"in_sum_2", Floats({2})},
                    {"in_sum_3", Floats({2})},
                    {"in_num_accumulates", Numbers({1})},
                    {"in_old_num_accumulates", Numbers({1})},
                    {"in_num_updates", Numbers({1})}}});
  cases.push_back({WithSlots("clip_by_norm", {"X"}, {"Out"}).Set("max_norm", 1.0f), {{"X", Floats({3, 2})}}});
  cases.push_back({WithSlots("dgc_clip_by_norm", {"X", "current_step"}, {"Out"}).Set("max_norm", 1.0f),
                   {{"X", Floats({3, 2})}, {"current_step", Floats({1})}}});
  cases.push_back({WithSlots("dgc", {"U", "V", "Grad", "Param", "current_step", "nranks"},
                             {"U_out", "V_out", "Grad_out", "k"})
                       .Set("sparsity", std::vector<float>{0.5f})
                       .Set("rampup_begin_step", 0.0f)
                       .Set("rampup_step", 1.0f),
                   {{"U", Floats({4})},
                    {"V", Floats({4})},
                    {"Grad", Floats({4})},
                    {"Param", Floats({4})},
                    {"current_step", Floats({1})},
                    {"nranks", Floats({1}, 1, 1)}}});
}

void AddComparisons(std::vector<PlainCase>& cases) {
  for (const char* type : {"equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"})
    cases.push_back({WithSlots(type, {"X", "Y"}, {"Out"}), {{"X", Floats({2, 3})}, {"Y", Floats({3})}}});
  for (const char* type : {"logical_and", "logical_or", "logical_xor"})
    cases.push_back({WithSlots(type, {"X", "Y"}, {"Out"}), {{"X", Truths()}, {"Y", Truths()}}});
  cases.push_back({WithSlots("logical_not", {"X"}, {"Out"}), {{"X", Truths()}}});
  for (const char* type : {"elementwise_mod", "elementwise_floordiv"})
    cases.push_back({WithSlots(type, {"X", "Y"}, {"Out"}), {{"X", Numbers({2, 3})}, {"Y", Numbers({3})}}});
  for (const char* type : {"isfinite", "isinf", "isnan", "is_empty", "fill_zeros_like", "fill_zeros_like2"})
    cases.push_back({WithSlots(type, {"X"}, {"Out"}), {{"X", Floats({2, 3})}}});
  cases.push_back({WithSlots("shape", {"Input"}, {"Out"}), {{"Input", Floats({2, 3})}}});
  for (const char* type : {"arg_max", "arg_min"})
    cases.push_back({WithSlots(type, {"X"}, {"Out"}).Set("axis", std::int64_t{1}), {{"X", Floats({2, 3})}}});
}

void AddMetrics(std::vector<PlainCase>& cases) {
  for (const bool is_test : {false, true}) {
    cases.push_back(
        {WithSlots("fake_quantize_range_abs_max", {"X", "InScale", "Iter"}, {"Out", "OutScale", "OutScales"})
             .Set("window_size", 2)
             .Set("is_test", is_test),
         {{"X", Floats({2, 3})}, {"InScale", Floats({1})}, {"Iter", TensorOf<std::int64_t>({1}, {0})}}});
    for (const char* type :
         {"fake_quantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max",
          "moving_average_abs_max_scale"}) {
      const bool scales = std::string(type).starts_with("moving");
      PlainCase c{WithSlots(type, {"X", "InAccum", "InState"}, {"Out", "OutScale", "OutState", "OutAccum"}),
                  {{"X", Floats({2, 3})}, {"InAccum", Floats({1})}, {"InState", Floats({1})}}};
      c.op.Set("is_test", is_test);
      if (!scales) {
        c.op.AddInput("InScale", {"InScale"});
        c.inputs["InScale"] = Floats({1});
      }
      cases.push_back(std::move(c));
    }
  }
  for (const char* type : {"fake_quantize_abs_max", "fake_channel_wise_quantize_abs_max"})
    cases.push_back({WithSlots(type, {"X"}, {"Out", "OutScale"}), {{"X", Floats({2, 3})}}});
  cases.push_back({WithSlots("fake_dequantize_max_abs", {"X", "Scale"}, {"Out"}).Set("max_range", 127.0f),
                   {{"X", Floats({2, 3})}, {"Scale", Floats({1})}}});
  cases.push_back({WithSlots("fake_channel_wise_dequantize_max_abs", {"X", "Scales"}, {"Out"}),
                   {{"X", Floats({2, 3})}, {"Scales", Floats({2})}}});
  cases.push_back({WithSlots("positive_negative_pair", {"Score", "Label", "QueryID", "Weight"},
                             {"PositivePair", "NegativePair", "NeutralPair"}),
                   {{"Score", Floats({3, 2})},
                    {"Label", Floats({3, 1})},
                    {"QueryID", TensorOf<std::int64_t>({3, 1}, {0, 1, 0})},
                    {"Weight", Floats({3, 1})}}});
  cases.push_back({WithSlots("dequantize_abs_max", {"X", "Scale"}, {"Out"}).Set("max_range", 127.0f),
                   {{"X", TensorOf<std::int8_t>({2}, {3, -4})}, {"Scale", Floats({1})}}});
  cases.push_back({WithSlots("dequantize_log", {"X", "Dict"}, {"Out"}),
                   {{"X", TensorOf<std::int8_t>({2}, {3, -4})}, {"Dict", Floats({128})}}});
  cases.push_back(
      {WithSlots("equal_reduce", {"X", "Y"}, {"Out"}), {{"X", Floats({2, 3})}, {"Y", Floats({3})}}});
  cases.push_back({WithSlots("precision_recall", {"MaxProbs", "Indices", "Labels", "Weights", "StatesInfo"},
                             {"BatchMetrics", "AccumMetrics", "AccumStatesInfo"})
                       .Set("class_number", 3),
                   {{"MaxProbs", Floats({2, 1})},
                    {"Indices", TensorOf<std::int32_t>({2, 1}, {0, 2})},
                    {"Labels", TensorOf<std::int32_t>({2, 1}, {0, 1})},
                    {"Weights", Floats({2, 1})},
                    {"StatesInfo", Floats({3, 4})}}});
  cases.push_back({WithSlots("accuracy", {"Out", "Indices", "Label"}, {"Accuracy", "Correct", "Total"}),
                   {{"Out", Floats({3, 2})}, {"Indices", Numbers({3, 2})}, {"Label", Numbers({3, 1})}}});
  cases.push_back(
      {WithSlots("auc", {"Predict", "Label", "StatPos", "StatNeg"}, {"AUC", "StatPosOut", "StatNegOut"})
           .Set("num_thresholds", 7)
           .Set("slide_steps", 0),
       {{"Predict", Floats({2, 2})},
        {"Label", TensorOf<std::int64_t>({2, 1}, {0, 1})},
        {"StatPos", Ramp(DType::kInt64, {1, 8}, 0, 0)},
        {"StatNeg", Ramp(DType::kInt64, {1, 8}, 0, 0)}}});
}

void AddFills(std::vector<PlainCase>& cases) {
  const std::vector<std::int64_t> shape = {2, 3};
  for (const char* type : {"uniform_random", "gaussian_random"}) {
    cases.push_back({WithSlots(type, {}, {"Out"}).Set("shape", shape).Set("seed", 1), {}});
    cases.push_back({WithSlots(type, {"ShapeTensor"}, {"Out"}).Set("seed", 1),
                     {{"ShapeTensor", TensorOf<std::int32_t>({2}, {2, 3})}}});
  }
  cases.push_back(
      {WithSlots("truncated_gaussian_random", {}, {"Out"}).Set("shape", std::vector<std::int32_t>{2, 3}),
       {}});
  cases.push_back({WithSlots("fill_constant", {"ShapeTensor"}, {"Out"}).Set("dtype", 5),
                   {{"ShapeTensor", TensorOf<std::int32_t>({2}, {2, 3})}}});
  cases.push_back({WithSlots("fill_constant", {}, {"Out"}).Set("shape", shape).Set("dtype", 5), {}});
  cases.push_back({WithSlots("fill", {}, {"Out"})
                       .Set("shape", std::vector<std::int32_t>{2, 1})
                       .Set("value", std::vector<float>{1.5f, -2}),
                   {}});
  cases.push_back({WithSlots("seed", {}, {"Out"}).Set("seed", 7), {}});
  cases.push_back({WithSlots("fill_constant_batch_size_like", {"Input"}, {"Out"})
                       .Set("shape", std::vector<std::int32_t>{1, 3}),
                   {{"Input", Floats({2, 3})}}});
  cases.push_back({WithSlots("assign_value", {}, {"Out"})
                       .Set("shape", std::vector<std::int32_t>{2})
                       .Set("dtype", 5)
                       .Set("fp32_values", std::vector<float>{1, 2}),
                   {}});
  cases.push_back({WithSlots("range", {"Start", "End", "Step"}, {"Out"}),
                   {{"Start", Floats({1}, 0, 0)}, {"End", Floats({1}, 5, 5)}, {"Step", Floats({1}, 2, 2)}}});
  cases.push_back({WithSlots("one_hot", {"X"}, {"Out"}).Set("depth", 9), {{"X", Numbers({3, 1})}}});
}

void AddSequences(std::vector<PlainCase>& cases) {
  const LoD lod = {{0, 2, 5}}, beams = {{0, 1, 2}, {0, 1, 2}};
  const Tensor tokens = InSequences(Numbers({5, 1}), lod);
  cases.push_back({WithSlots("crf_decoding", {"Emission", "Transition"}, {"ViterbiPath"}),
                   {{"Emission", InSequences(Floats({5, 3}), lod)}, {"Transition", Floats({5, 3})}}});
  cases.push_back({WithSlots("ctc_align", {"Input"}, {"Output"}), {{"Input", tokens}}});
  const std::vector<std::string> counts = {"Precision",      "Recall",         "F1-Score",
                                           "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"};
  for (const char* scheme : {"IOB", "IOE", "IOBES", "plain"}) {
    cases.push_back({WithSlots("chunk_eval", {"Inference", "Label"}, counts)
                         .Set("num_chunk_types", 6)
                         .Set("chunk_scheme", scheme),
                     {{"Inference", tokens}, {"Label", tokens}}});
  }
  cases.push_back({WithSlots("gather_tree", {"Ids", "Parents"}, {"Out"}),
                   {{"Ids", Numbers({3, 2, 2})}, {"Parents", Ramp(DType::kInt64, {3, 2, 2}, 0, 0)}}});
  cases.push_back({WithSlots("edit_distance", {"Hyps", "Refs"}, {"SequenceNum", "Out"}),
                   {{"Hyps", tokens}, {"Refs", tokens}}});
  cases.push_back({WithSlots("sequence_erase", {"X"}, {"Out"}).Set("tokens", std::vector<std::int32_t>{2}),
                   {{"X", tokens}}});
  cases.push_back({WithSlots("sequence_enumerate", {"X"}, {"Out"}).Set("win_size", 2), {{"X", tokens}}});
  cases.push_back(
      {WithSlots("sequence_mask", {"X"}, {"Y"}).Set("maxlen", 5).Set("out_dtype", 3), {{"X", Numbers({3})}}});
  cases.push_back({WithSlots("lod_rank_table", {"X"}, {"Out"}), {{"X", tokens}}});
  cases.push_back({WithSlots("beam_search", {"pre_ids", "pre_scores", "ids", "scores"},
                             {"selected_ids", "selected_scores", "parent_idx"})
                       .Set("level", 0)
                       .Set("beam_size", 2)
                       .Set("end_id", 0),
                   {{"pre_ids", InSequences(Numbers({2, 1}), beams)},
                    {"pre_scores", Floats({2, 1})},
                    {"ids", InSequences(Numbers({2, 3}), beams)},
                    {"scores", InSequences(Floats({2, 3}), beams)}}});
}

void AddParts(std::vector<PlainCase>& cases) {
  cases.push_back({Op("split_byref")
                       .AddInput("X", {"X"})
                       .AddOutput("Out", {"a", "b"})
                       .Set("sections", std::vector<std::int32_t>{1, 3}),
                   {{"X", Floats({4, 2})}}});
  cases.push_back(
      {Op("split_ids").AddInput("Ids", {"Ids"}).AddOutput("Out", {"a", "b"}), {{"Ids", Numbers({4, 1})}}});
  cases.push_back({WithSlots("merge_ids", {"Ids", "Rows", "X"}, {"Out"}),
                   {{"Ids", Numbers({3, 1})}, {"Rows", Numbers({3, 1})}, {"X", Floats({3, 2})}}});
  cases.push_back({Op("ref_by_trainer_id")
                       .AddInput("X", {"a", "b"})
                       .AddInput("TrainerId", {"i"})
                       .AddOutput("Out", {"Out"}),
                   {{"a", Floats({2})}, {"b", Floats({2})}, {"i", TensorOf<std::int64_t>({1}, {1})}}});
}

}  // namespace

std::vector<PlainCase> PlainCases() {
  std::vector<PlainCase> cases;
  for (auto* add : {AddUpdates, AddComparisons, AddMetrics, AddFills, AddSequences, AddParts}) add(cases);
  for (PlainCase& c : PartsPlainCases()) cases.push_back(std::move(c));
  for (PlainCase& c : DetectionPlainCases()) cases.push_back(std::move(c));
  for (PlainCase& c : FusedPlainCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace penstock::test
