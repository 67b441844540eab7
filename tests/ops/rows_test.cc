// Kernels on selected rows, compared with the numbers of Fluid 1.8.5 or, if Fluid is wrong or fails, with the
// corresponding dense update.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/ops/rows_runner.h"
#include "tests/support/corpus.h"

namespace penstock::test {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-5;

void ExpectSame(const std::string& name, const Variable& made, const Variable& expected) {
  if (const Tensor* tensor = expected.If<Tensor>()) {
    ASSERT_TRUE(made.Is<Tensor>()) << name;
    const Status near = Near(*made.If<Tensor>(), *tensor, kRelative, kAbsolute);
    EXPECT_TRUE(near.ok()) << name << ": " << near.ToString();
    return;
  }
  ASSERT_TRUE(made.Is<SelectedRows>()) << name;
  const SelectedRows& ours = *made.If<SelectedRows>();
  const SelectedRows& theirs = *expected.If<SelectedRows>();
  EXPECT_EQ(ours.rows, theirs.rows) << name;
  EXPECT_EQ(ours.height, theirs.height) << name;
  if (theirs.rows.empty()) return;  // Fluid's value has no shape then
  const Status near = Near(ours.value, theirs.value, kRelative, kAbsolute);
  EXPECT_TRUE(near.ok()) << name << ": " << near.ToString();
}

// The expected result in cases in which Fluid's result is wrong.
struct Listed {
  enum What {
    kDense,   // the update with the dense gradient
    kOutput,  // what `Wanted` computes here
    kRaises,  // our error, with this id
  };
  What what;
  std::string because;
  std::string id = {};
};

const std::map<std::string, Listed>& ListedCases() {
  static const std::string unsorted = "Fluid loses the gradient of rows that are unique but not ascending";
  static const std::string nothing =
      "Fluid does nothing for a gradient without rows: moments must still decay";
  static const std::string lacks = "Fluid has no such update for rows";
  static const std::string fails_empty = "Fluid fails on a gradient without rows";
  static const std::string padding = "Fluid keeps rows of padding_idx in a sparse gradient";
  static const std::string dense_only = "the op takes tensors alone, in Fluid too";
  static const std::map<std::string, Listed> listed = {
      {"momentum_sr_uniq", {Listed::kDense, unsorted}},
      {"momentum_sr_nesterov_uniq", {Listed::kDense, unsorted}},
      {"rmsprop_sr_uniq", {Listed::kDense, unsorted}},
      {"rmsprop_sr_centered_uniq", {Listed::kDense, unsorted}},
      {"adam_sr_empty", {Listed::kDense, nothing}},
      {"adam_sr_lazy_empty", {Listed::kDense, nothing}},
      {"adamax_sr_dup", {Listed::kDense, lacks}},
      {"adamax_sr_uniq", {Listed::kDense, lacks}},
      {"decayed_adagrad_sr_dup", {Listed::kDense, lacks}},
      {"ftrl_sr_dup", {Listed::kDense, lacks}},
      {"ftrl_sr_empty", {Listed::kDense, lacks}},
      {"adagrad_sr_empty", {Listed::kDense, fails_empty}},
      {"rmsprop_sr_empty", {Listed::kOutput, "Fluid ended, so the case has no numbers; TakeNoRows has them"}},
      {"adagrad_sr_outofplace_dup", {Listed::kDense, "Fluid wants ParamOut to be Param"}},
      {"lookup_table_grad_sparse_pad", {Listed::kOutput, padding}},
      {"lookup_table_v2_grad_sparse_pad_neg", {Listed::kOutput, padding}},
      {"scale_sr", {Listed::kOutput, "Fluid wants Out to be X"}},
      {"clip_sr_inplace", {Listed::kOutput, "Fluid wants Out not to be X"}},
      {"lookup_sparse_table_present", {Listed::kOutput, "Fluid wants sync_index to be called first"}},
      {"sgd_sr_param_sr_grad", {Listed::kOutput, "Fluid wants sync_index to be called first"}},
      {"extract_rows", {Listed::kRaises, "Fluid lacks the op, so the case has no arguments", "E-op-slot"}},
      {"sgd_sr_param_sr_grad_missing", {Listed::kRaises, "the table lacks the row", "E-op-index"}},
      {"sgd_sr_param_sr_grad_missing_synced", {Listed::kRaises, "the table lacks the row", "E-op-index"}},
      {"lookup_table_on_sr_table_missing", {Listed::kRaises, "the table lacks the row", "E-op-index"}},
      {"split_selected_rows_row_out_of_range", {Listed::kRaises, "a row above all sections", "E-op-index"}},
      {"sgd_sr_height_mismatch", {Listed::kRaises, "rows of another tensor", "E-op-rows"}},
      {"sum_sr_height_mismatch", {Listed::kRaises, "rows of two tensors", "E-op-rows"}},
      {"elementwise_add_sr_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"cast_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"mean_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"reduce_sum_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"relu_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"shape_sr", {Listed::kRaises, dense_only, "E-op-kind"}},
      {"proximal_gd_sr_dup", {Listed::kDense, lacks}},
  };
  return listed;
}

Variable RowsVariable(const SelectedRows& rows) {
  Variable variable;
  variable.As<SelectedRows>() = rows;
  return variable;
}

// The expected outputs of the op for the cases of Listed::kOutput, by simple loops over values.
Variable Wanted(const Op& op, const Variables& in) {
  const auto rows_of = [&](const char* slot) -> const SelectedRows& {
    return *in.at(op.InputName(slot))->If<SelectedRows>();
  };
  if (op.type() == "scale") {
    SelectedRows rows = rows_of("X");
    rows.value = rows.value.Clone();
    const float scale = op.GetOr("scale", 1.0f), bias = op.GetOr("bias", 0.0f);
    const bool after = op.GetOr("bias_after_scale", true);
    for (float& x : rows.value.Span<float>()) x = after ? scale * x + bias : scale * (x + bias);
    return RowsVariable(rows);
  }
  if (op.type() == "clip") {
    const Tensor dense = Densify(rows_of("X"));
    std::set<std::int64_t> listed(rows_of("X").rows.begin(), rows_of("X").rows.end());
    SelectedRows rows = SomeRowsOf(dense, {listed.begin(), listed.end()});
    for (float& x : rows.value.Span<float>()) x = std::clamp(x, op.GetOr("min", 0.0f), op.GetOr("max", 0.0f));
    return RowsVariable(rows);
  }
  Variable out;
  if (op.type() == "lookup_sparse_table") {
    const Tensor dense = Densify(rows_of("W"));
    const auto ids = in.at(op.InputName("Ids"))->If<Tensor>()->Span<std::int64_t>();
    out.As<Tensor>() = SomeRowsOf(dense, {ids.begin(), ids.end()}).value;
  } else if (op.type() == "sgd") {
    SelectedRows table = rows_of("Param");
    table.value = table.value.Clone();
    const Tensor grad = Densify(rows_of("Grad"));
    const float rate = in.at(op.InputName("LearningRate"))->If<Tensor>()->Span<float>()[0];
    const Dim width = grad.shape()[1];
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      for (Dim j = 0; j < width; ++j) {
        table.value.Data<float>()[static_cast<Dim>(i) * width + j] -=
            rate * grad.Data<float>()[table.rows[i] * width + j];
      }
    }
    return RowsVariable(table);
  } else {  // a lookup's gradient
    const auto ids = in.at(op.InputName("Ids"))->If<Tensor>()->Span<std::int64_t>();
    const Tensor& dout = *in.at(op.InputName("Out@GRAD"))->If<Tensor>();
    const Shape& table = in.at(op.InputName("W"))->If<Tensor>()->shape();
    const auto padding = op.GetOr<std::int64_t>("padding_idx", -1);
    SelectedRows rows{{}, table[0], {}};
    std::vector<float> values;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == padding) continue;
      rows.rows.push_back(ids[i]);
      const float* from = dout.Data<float>() + static_cast<Dim>(i) * table[1];
      values.insert(values.end(), from, from + table[1]);
    }
    rows.value = Tensor(DType::kFp32, {static_cast<Dim>(rows.rows.size()), table[1]});
    std::ranges::copy(values, rows.value.Data<float>());
    return RowsVariable(rows);
  }
  return out;
}

struct Case {
  Op op{""};
  Arrays arrays;
  bool fluid_raises = false;
};

void Check(const std::string& name, const Case& c) {
  const auto found = ListedCases().find(name);
  if (found == ListedCases().end()) {
    ASSERT_FALSE(c.fluid_raises) << name << ": Fluid raises, and it is not said what is right";
    Variables variables = ReadVariables(c.arrays, "in:");
    const Status status = RunWithoutAllocating(name, c.op, variables);
    ASSERT_TRUE(status.ok()) << name << ": " << status.ToString();
    for (const auto& [output, expected] : ReadVariables(c.arrays, "out:"))
      ExpectSame(name, *variables.at(output), *expected);
    return;
  }
  Variables variables = ReadVariables(c.arrays, "in:");
  if (found->second.what == Listed::kOutput && variables.empty()) return;  // Fluid ended without a trace
  const Status status = RunWithoutAllocating(name, c.op, variables);
  if (found->second.what == Listed::kRaises) {
    EXPECT_EQ(status.id(), found->second.id) << name << ": " << status.ToString();
    return;
  }
  ASSERT_TRUE(status.ok()) << name << ": " << status.ToString();
  const Variables in = ReadVariables(c.arrays, "in:");
  if (found->second.what == Listed::kOutput) {
    ExpectSame(name, *variables.at(c.op.OutputNames().front()), Wanted(c.op, in));
    return;
  }
  const Result<Variables> dense = DenseUpdate(c.op, in);
  ASSERT_TRUE(dense.ok()) << name << ": " << dense.status().ToString();
  for (const std::string& output : c.op.OutputNames())
    ExpectSame(name + " " + output, *variables.at(output), *dense->at(output));
}

// Runs the cases of a folder that have an op on rows; there must be at least so many.
void CheckFolder(const std::string& folder, int at_least) {
  int checked = 0;
  for (const std::string& name : FilesEndingIn(folder, ".json")) {
    const auto facts = nlohmann::json::parse(BytesOf(folder + name + ".json"));
    const Result<Program> program = ParseProgram(BytesOf(folder + name + ".pb"));
    ASSERT_TRUE(program.ok()) << name;
    Case c;
    c.op = *program->main().ops().front().op;
    c.fluid_raises = facts.contains("error") && !facts["error"].is_null();
    // Files are compared in save_load_test, random numbers in fill_rows_test.
    if (c.op.type() == "save" || name == "uniform_random_sr") continue;
    if (std::filesystem::exists(folder + name + ".npz")) {
      const Result<Arrays> arrays = ReadNpz(BytesOf(folder + name + ".npz"));
      ASSERT_TRUE(arrays.ok()) << name;
      c.arrays = *arrays;
    }
    Check(name, c);
    ++checked;
  }
  EXPECT_GE(checked, at_least);
}

TEST(RowKernels, ComputeFluidsOrTheCorrectedOutputs) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  CheckFolder(CorpusFolder() + "/open/ops_sr/", 80);
}

TEST(RowKernels, ComputeTheOutputsOfTheSelection) { CheckFolder(SelectionFolder() + "/open/ops_sr/", 2); }

SelectedRows RowIds(std::vector<std::int64_t> rows, std::int64_t height) {
  return {rows, height, Ramp(DType::kFp32, {static_cast<Dim>(rows.size()), 2}, 1, 1)};
}

Variables XOf(const SelectedRows& x) {
  Variables variables;
  variables["x"] = std::make_unique<Variable>();
  variables["x"]->As<SelectedRows>() = x;
  return variables;
}

// An update of 9 rows of 2 by any optimizer: inputs that differ from each other, all above 0.
Op UpdateOf(const OpDef& def, Variables& in) {
  Op op(def.type());
  unsigned seed = 1;
  for (const SlotDef& slot : def.inputs()) {
    if (slot.optional && def.type() != "rmsprop") continue;
    const StateDef* state = nullptr;
    for (const StateDef& s : def.optimizer()->states) state = s.slot == slot.name ? &s : state;
    const bool shaped = slot.name == def.optimizer()->param_slot ||
                        (state != nullptr && state->slicing == StateSlicing::kWithParam);
    in[slot.name] = std::make_unique<Variable>();
    const bool of_doubles = slot.type.types == std::vector<DType>{DType::kFp64};
    in[slot.name]->As<Tensor>() = Scattered(of_doubles ? DType::kFp64 : DType::kFp32,
                                            shaped ? Shape{9, 2} : Shape{1}, 0.2, 0.9, seed++);
    op.AddInput(slot.name, {slot.name});
  }
  for (const SlotDef& slot : def.outputs()) {
    const bool of_no_state = slot.optional && !in.contains(slot.name.substr(0, slot.name.size() - 3));
    if (!of_no_state) op.AddOutput(slot.name, {slot.name});
  }
  for (const AttrDef& attr : def.attrs()) {
    if (!attr.default_value) op.Set(attr.name, 0.3f);
  }
  return op.Set("sigma", 0.0f);
}

// Every registered optimizer, so that new ones are tested too.
TEST(RowUpdates, EqualUpdatesByTheDenseGradient) {
  const std::vector<SelectedRows> grads = {RowIds({5, 2, 5, 0, 7, 2, 5}, 9), RowIds({6, 1, 8, 3}, 9),
                                           RowIds({0, 3, 4, 8}, 9), RowIds({}, 9), SelectedRows{{}, 9, {}}};
  int compared = 0;
  for (const OpDef* known : AllOps().All()) {
    const OpDef& def = *known;
    const std::string& type = def.type();
    if (!def.optimizer() || type == "dgc_momentum") continue;  // it needs dense gradients of all ranks
    for (const SelectedRows& grad : grads) {
      for (const bool lazy : {false, true}) {
        if (lazy && def.FindAttr("lazy_mode") == nullptr) continue;
        if (type == "momentum" && grad.rows.empty()) continue;  // changes nothing, as in Fluid
        Variables in;
        Op op = UpdateOf(def, in);
        if (lazy) op.Set("lazy_mode", true);
        const std::string& grad_name = def.optimizer()->grad_slot;
        *in[grad_name] = RowsVariable({grad.rows, grad.height, grad.value.Clone()});
        const Result<Variables> dense = DenseUpdate(op, in);
        ASSERT_TRUE(dense.ok()) << type << ": " << dense.status().ToString();
        const Status status = RunWithoutAllocating(type, op, in);
        ASSERT_TRUE(status.ok()) << type << ": " << status.ToString();
        for (const std::string& output : op.OutputNames())
          ExpectSame(StrCat(type, lazy ? " lazily, " : ", ", output), *in.at(output), *dense->at(output));
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 65);
}

TEST(RowUpdates, RefuseInvalidRows) {
  const std::vector<std::pair<SelectedRows, std::string>> bad = {
      {RowIds({1, 9}, 9), "momentum: Grad lists row 9 of a tensor of 9 rows"},
      {RowIds({-1}, 9), "momentum: Grad lists row -1 of a tensor of 9 rows"},
      {RowIds({1}, 8), "momentum: Grad holds rows of a tensor of 8 rows, not 9"},
      {{{1, 2}, 9, Ramp(DType::kFp32, {1, 2}, 1, 1)},
       "momentum: Grad lists 2 rows and has values of shape [1, 2]"},
      {{{1}, 9, Ramp(DType::kFp32, {1, 3}, 1, 1)},
       "momentum: Grad has values of shape [1, 3] for rows of [9, 2]"},
      {{{1}, 9, {}}, "momentum: Grad lists 1 rows and has no values"},
  };
  for (const auto& [grad, message] : bad) {
    Variables in;
    const Op op = UpdateOf(*AllOps().Find("momentum"), in);
    *in["Grad"] = RowsVariable(grad);
    EXPECT_EQ(RunTwice(op, in).message(), message);
  }
}

TEST(RowKernels, ExtractTheirNumbersInTheGivenOrder) {
  Variables variables = XOf(RowIds({5, 2, 5}, 9));
  const Op op = Op("extract_rows").AddInput("X", {"x"}).AddOutput("Out", {"out"});
  ASSERT_TRUE(RunTwice(op, variables).ok());
  const Status same = Near(*variables["out"]->If<Tensor>(), TensorOf<std::int64_t>({3, 1}, {5, 2, 5}), 0, 0);
  EXPECT_TRUE(same.ok()) << same.ToString();
}

TEST(RowKernels, ReportARowOutsideAllSections) {
  Variables variables = XOf(RowIds({1, 9}, 9));
  const Op op = Op("split_selected_rows")
                    .AddInput("X", {"x"})
                    .AddOutput("Out", {"a", "b"})
                    .Set("height_sections", std::vector<std::int64_t>{4, 5});
  EXPECT_EQ(RunTwice(op, variables).message(),
            "split_selected_rows: row 9 is outside the sections, which hold 9");
}

TEST(RowKernels, RefuseAMismatchOfRowsAndValues) {
  for (const char* type : {"merge_selected_rows", "clip_by_norm", "get_tensor_from_selected_rows",
                           "split_selected_rows", "scale", "square", "sum"}) {
    Variables variables = XOf({{1, 2, 3}, 9, Ramp(DType::kFp32, {2, 2}, 1, 1)});
    Op op = Op(type).AddInput("X", {"x"}).AddOutput("Out", {"out"});
    if (std::string(type) == "clip_by_norm") op.Set("max_norm", 1.0f);
    if (std::string(type) == "split_selected_rows") op.Set("height_sections", std::vector<std::int64_t>{9});
    EXPECT_EQ(RunTwice(op, variables).message(),
              StrCat(type, ": X lists 3 rows and has values of shape [2, 2]"));
  }
}

TEST(RowKernels, AcceptZeroRows) {
  for (const char* type : {"merge_selected_rows", "clip_by_norm", "get_tensor_from_selected_rows",
                           "split_selected_rows", "scale", "square", "sum", "extract_rows"}) {
    for (const bool has_value : {true, false}) {
      Variables variables = XOf(has_value ? RowIds({}, 9) : SelectedRows{{}, 9, {}});
      Op op = Op(type).AddInput("X", {"x"}).AddOutput("Out", {"out"});
      if (std::string(type) == "clip_by_norm") op.Set("max_norm", 1.0f);
      if (std::string(type) == "split_selected_rows") op.Set("height_sections", std::vector<std::int64_t>{9});
      const Status status = RunTwice(op, variables);
      EXPECT_TRUE(status.ok()) << type << ": " << status.ToString();
    }
  }
}

TEST(Sum, RefusesSelectedRowsOfDifferentWidths) {
  Variables variables = XOf(RowIds({1}, 9));
  variables["y"] = std::make_unique<Variable>();
  variables["y"]->As<SelectedRows>() = {{1}, 9, Ramp(DType::kFp32, {1, 3}, 1, 1)};
  const Op op = Op("sum").AddInput("X", {"x", "y"}).AddOutput("Out", {"out"});
  EXPECT_EQ(RunTwice(op, variables).id(), "E-shape-sum");
}

TEST(Sum, RefusesToAddATensorIntoRows) {
  Variables variables = XOf(RowIds({1}, 9));
  variables["y"] = std::make_unique<Variable>();
  variables["y"]->As<Tensor>() = Ramp(DType::kFp32, {9, 2}, 1, 1);
  const Op op = Op("sum").AddInput("X", {"x", "y"}).AddOutput("Out", {"x"});
  EXPECT_EQ(RunTwice(op, variables).message(),
            "sum: Out is a tensor and cannot be X (x), which holds selected rows");
}

TEST(RowKernels, RefuseAnIdOutsideTheTable) {
  for (const std::int64_t id : {-1, 5}) {
    const Op op = Op("lookup_table").AddInput("W", {"w"}).AddInput("Ids", {"i"}).AddOutput("Out", {"o"});
    const Tensors inputs = {{"w", Ramp(DType::kFp32, {5, 2}, 0, 1)},
                            {"i", TensorOf<std::int64_t>({1, 1}, {id})}};
    EXPECT_EQ(RunOp(AllOps(), op, inputs).status().message(),
              StrCat("lookup_table: id ", id, " is outside the table of 5 rows"));
    for (const bool sparse : {false, true}) {
      Op grad("lookup_table_grad");
      grad.AddInput("W", {"w"})
          .AddInput("Ids", {"i"})
          .AddInput("Out@GRAD", {"do"})
          .AddOutput("W@GRAD", {"dw"});
      Tensors given = inputs;
      given["do"] = Ramp(DType::kFp32, {1, 2}, 0, 1);
      EXPECT_EQ(RunOp(AllOps(), grad.Set("is_sparse", sparse), given).status().message(),
                StrCat("lookup_table_grad: id ", id, " is outside the table of 5 rows"));
    }
  }
}

}  // namespace
}  // namespace penstock::test
