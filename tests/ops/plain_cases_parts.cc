// Ops without a gradient that take, make or query parts of tensors.
#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

Tensor Shares(const Shape& shape) { return Scattered(DType::kFp32, shape, 0.2, 0.9); }
Tensor RowNumbers(const Shape& shape) { return Ramp(DType::kInt64, shape, 1, 1); }
Tensor SingleNumber(double value) { return Ramp(DType::kFp32, {1}, value, 0); }

void AddMade(std::vector<PlainCase>& cases) {
  cases.push_back({WithSlots("fill_any_like", {"X"}, {"Out"}).Set("value", 2.0f), {{"X", Shares({2, 3})}}});
  cases.push_back({WithSlots("fill_any_like", {"X"}, {"Out"}).Set("dtype", 3), {{"X", Shares({2, 3})}}});
  cases.push_back(
      {WithSlots("eye", {}, {"Out"}).Set("num_rows", std::int64_t{3}).Set("num_columns", std::int64_t{2}),
       {}});
  cases.push_back({WithSlots("diag", {"Diagonal"}, {"Out"}), {{"Diagonal", Shares({3})}}});
  cases.push_back(
      {WithSlots("diag_embed", {"Input"}, {"Out"}).Set("offset", -1).Set("dim1", 0).Set("dim2", 2),
       {{"Input", Shares({2, 3})}}});
  cases.push_back(
      {WithSlots("linspace", {"Start", "Stop", "Num"}, {"Out"}),
       {{"Start", SingleNumber(1)}, {"Stop", SingleNumber(3)}, {"Num", TensorOf<std::int32_t>({1}, {5})}}});
  cases.push_back({WithSlots("one_hot_v2", {"X"}, {"Out"}).Set("depth", 9), {{"X", RowNumbers({3, 2})}}});
  cases.push_back({WithSlots("size", {"Input"}, {"Out"}), {{"Input", Shares({2, 3})}}});
}

void AddFound(std::vector<PlainCase>& cases) {
  cases.push_back({WithSlots("where_index", {"Condition"}, {"Out"}),
                   {{"Condition", TensorOf<bool>({2, 2}, {true, false, false, true})}}});
  const Tensor repeated = TensorOf<std::int64_t>({5}, {4, 2, 4, 7, 2});
  cases.push_back({WithSlots("unique", {"X"}, {"Out", "Index"}).Set("dtype", 2), {{"X", repeated}}});
  cases.push_back(
      {WithSlots("unique_with_counts", {"X"}, {"Out", "Index", "Count"}).Set("dtype", 3), {{"X", repeated}}});
  cases.push_back(
      {WithSlots("shard_index", {"X"}, {"Out"}).Set("index_num", 20).Set("nshards", 3).Set("shard_id", 1),
       {{"X", RowNumbers({6, 2})}}});
  cases.push_back({WithSlots("hash", {"X"}, {"Out"}).Set("num_hash", 2), {{"X", RowNumbers({3, 5})}}});
  const Tensor truths = TensorOf<bool>({2, 2}, {true, false, true, true});
  for (const char* type : {"reduce_all", "reduce_any"}) {
    cases.push_back(
        {WithSlots(type, {"X"}, {"Out"}).Set("dim", std::vector<std::int32_t>{1}), {{"X", truths}}});
    cases.push_back({WithSlots(type, {"X"}, {"Out"}).Set("reduce_all", true), {{"X", truths}}});
  }
  cases.push_back({WithSlots("allclose", {"Input", "Other"}, {"Out"}),
                   {{"Input", Shares({3, 2})}, {"Other", Shares({3, 2})}}});
}

void AddDrawn(std::vector<PlainCase>& cases) {
  for (const char* type : {"uniform_random_batch_size_like", "gaussian_random_batch_size_like"}) {
    cases.push_back(
        {WithSlots(type, {"Input"}, {"Out"}).Set("shape", std::vector<std::int32_t>{-1, 3}).Set("seed", 1),
         {{"Input", Shares({2, 3})}}});
  }
  cases.push_back({WithSlots("randint", {}, {"Out"})
                       .Set("shape", std::vector<std::int64_t>{2, 3})
                       .Set("low", -2)
                       .Set("high", 5)
                       .Set("seed", 1),
                   {}});
  cases.push_back({WithSlots("randint", {"ShapeTensor"}, {"Out"}).Set("low", 0).Set("high", 5).Set("seed", 1),
                   {{"ShapeTensor", TensorOf<std::int32_t>({2}, {2, 3})}}});
  cases.push_back({WithSlots("randperm", {}, {"Out"}).Set("n", 5).Set("seed", 1), {}});
  cases.push_back({WithSlots("sampling_id", {"X"}, {"Out"}).Set("seed", 1), {{"X", Shares({4, 3})}}});
  cases.push_back({WithSlots("random_crop", {"X", "Seed"}, {"Out", "SeedOut"})
                       .Set("shape", std::vector<std::int32_t>{2, 3})
                       .Set("startup_seed", 7),
                   {{"X", Shares({2, 4, 5})}, {"Seed", TensorOf<std::int64_t>({1}, {5})}}});
}

void AddRecommend(std::vector<PlainCase>& cases) {
  const auto in_sequences = [](Tensor tensor, const LoD& lod) {
    tensor.set_lod(lod);
    return tensor;
  };
  for (const bool keeps : {false, true}) {
    cases.push_back({WithSlots("cvm", {"X", "CVM"}, {"Y"}).Set("use_cvm", keeps),
                     {{"X", Shares({3, 4})}, {"CVM", Shares({3, 2})}}});
    const Tensor dy = Shares({3, keeps ? 4 : 2});
    cases.push_back(
        {WithSlots("cvm_grad", {"X", "CVM", "Y@GRAD"}, {"X@GRAD"}).Set("use_cvm", keeps),
         {{"X", in_sequences(Shares({3, 4}), {{0, 2, 3}})}, {"CVM", Shares({2, 2})}, {"Y@GRAD", dy}}});
  }
  cases.push_back({WithSlots("mean_iou", {"Predictions", "Labels"}, {"OutMeanIou", "OutWrong", "OutCorrect"})
                       .AddInput("InWrongs", {"w"})
                       .AddInput("InMeanIou", {"m"})
                       .Set("num_classes", 8),
                   {{"Predictions", RowNumbers({4})},
                    {"Labels", Ramp(DType::kInt64, {4}, 4, -1)},
                    {"w", Ramp(DType::kInt32, {8}, 0, 1)},
                    {"m", Shares({1})}}});
  cases.push_back({WithSlots("similarity_focus", {"X"}, {"Out"})
                       .Set("axis", 1)
                       .Set("indexes", std::vector<std::int32_t>{0, 1}),
                   {{"X", Shares({2, 2, 3, 2})}}});
  cases.push_back({WithSlots("merge_lod_tensor_infer", {"X", "Mask", "InTrue", "InFalse"}, {"Out"}),
                   {{"X", Shares({3, 2})},
                    {"Mask", TensorOf<bool>({3, 1}, {true, false, true})},
                    {"InTrue", Shares({2, 2})},
                    {"InFalse", Shares({1, 2})}}});
  const Tensor tree = TensorOf<std::int32_t>(
      {5, 5}, {0, 0, 0, 1, 2, 0, 1, 0, 3, 4, 0, 1, 0, 0, 0, 1, 2, 1, 0, 0, 2, 2, 1, 0, 0});
  cases.push_back({WithSlots("tdm_child", {"X", "TreeInfo"}, {"Child", "LeafMask"}).Set("child_nums", 2),
                   {{"X", TensorOf<std::int32_t>({3, 1}, {1, 2, 0})}, {"TreeInfo", tree}}});
  cases.push_back({WithSlots("tdm_sampler", {"X", "Travel", "Layer"}, {"Out", "Labels", "Mask"})
                       .Set("neg_samples_num_list", std::vector<std::int32_t>{1, 2})
                       .Set("layer_offset_lod", std::vector<std::int32_t>{0, 2, 6})
                       .Set("seed", 1),
                   {{"X", TensorOf<std::int32_t>({3, 1}, {1, 2, 0})},
                    {"Travel", TensorOf<std::int32_t>({3, 2}, {0, 0, 1, 3, 1, 4})},
                    {"Layer", TensorOf<std::int32_t>({6, 1}, {1, 2, 3, 4, 5, 6})}}});
}

}  // namespace

std::vector<PlainCase> PartsPlainCases() {
  std::vector<PlainCase> cases;
  for (auto* add : {AddMade, AddFound, AddDrawn, AddRecommend}) add(cases);
  return cases;
}

}  // namespace penstock::test
