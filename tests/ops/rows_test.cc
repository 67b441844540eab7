// Kernels on selected rows against the numbers that Fluid 1.8.5 computed.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/ir/wire.h"
#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/npz.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-5;

using Variables = std::map<std::string, std::unique_ptr<Variable>>;

// Variables of a case: `in:x` is a tensor, `in:x:rows`, `:value` and `:height` are selected rows.
Variables Read(const Arrays& arrays, const std::string& prefix) {
  Variables variables;
  for (const auto& [key, array] : arrays) {
    if (!StartsWith(key, prefix)) continue;
    const std::vector<std::string> parts = Split(key.substr(prefix.size()), ':');
    std::unique_ptr<Variable>& variable = variables[parts[0]];
    if (variable == nullptr) variable = std::make_unique<Variable>();
    if (parts.size() == 1) {
      variable->As<Tensor>() = array;
      continue;
    }
    SelectedRows& rows = variable->As<SelectedRows>();
    if (parts[1] == "rows")
      rows.rows.assign(array.Data<std::int64_t>(), array.Data<std::int64_t>() + array.count());
    if (parts[1] == "height") rows.height = *array.Data<std::int64_t>();
    if (parts[1] == "value") rows.value = array;
  }
  return variables;
}

VarInfo InfoOf(const Variable& variable) {
  VarInfo info;
  const SelectedRows* rows = variable.If<SelectedRows>();
  const Tensor& tensor = rows == nullptr ? *variable.If<Tensor>() : rows->value;
  info.kind = rows == nullptr ? VarKind::kTensor : VarKind::kSelectedRows;
  info.dtype = tensor.dtype();
  info.shape = rows == nullptr        ? tensor.shape()
               : tensor.initialized() ? tensor.shape().WithRows(rows->height)
                                      : Shape{rows->height};
  return info;
}

// Runs the op on the variables, which get its outputs; twice, because a kernel keeps memory between runs.
Status RunTwice(const Op& op, Variables& variables) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, AllOps().Require(op));
  PENSTOCK_RETURN_IF_ERROR(def->CheckOp(op));
  InferContext context(*def, op, [&](const std::string& name) -> std::optional<VarInfo> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::make_optional(InfoOf(*found->second));
  });
  PENSTOCK_RETURN_IF_ERROR(def->Infer(context));
  std::vector<Variable*> frame;
  const auto operand = [&](const std::string& name, const VarInfo& info) {
    std::unique_ptr<Variable>& variable = variables[name];
    if (variable == nullptr) variable = std::make_unique<Variable>();
    if (info.kind == VarKind::kTensor && !variable->initialized())
      variable->As<Tensor>().Reset(info.dtype, info.shape);
    frame.push_back(variable.get());
    return Operand{static_cast<int>(frame.size()) - 1, info.kind, info.dtype, info.shape, name};
  };
  std::vector<KernelSetup::Argument> in, out;
  for (const Slot& slot : op.inputs()) {
    in.push_back({slot.name, {}});
    for (std::size_t i = 0; i < slot.args.size(); ++i)
      in.back().operands.push_back(operand(slot.args[i], context.Input(slot.name, static_cast<int>(i))));
  }
  for (const Slot& slot : op.outputs()) {
    out.push_back({slot.name, {}});
    for (std::size_t i = 0; i < slot.args.size(); ++i)
      out.back().operands.push_back(operand(slot.args[i], context.Output(slot.name, static_cast<int>(i))));
  }
  const KernelFactory factory = def->FindKernel(DeviceKind::kCpu, def->KernelType(context));
  if (factory == nullptr) return Unimplemented("E-harness", op.type(), " has no kernel");
  const std::unique_ptr<Kernel> kernel = factory();
  KernelSetup setup(*def, op, std::move(in), std::move(out), Services());
  PENSTOCK_RETURN_IF_ERROR(kernel->Prepare(setup));
  KernelRun run(frame.data(), nullptr, nullptr);
  PENSTOCK_RETURN_IF_ERROR(kernel->Run(run));
  const bool in_place = op.InputNames().front() == op.OutputNames().front();
  return in_place ? OkStatus() : kernel->Run(run);
}

void ExpectSame(const std::string& name, const Variable& made, const Variable& expected) {
  if (const Tensor* tensor = expected.If<Tensor>()) {
    const Status near = Near(*made.If<Tensor>(), *tensor, kRelative, kAbsolute);
    EXPECT_TRUE(near.ok()) << name << ": " << near.ToString();
    return;
  }
  const SelectedRows& ours = *made.If<SelectedRows>();
  const SelectedRows& theirs = *expected.If<SelectedRows>();
  EXPECT_EQ(ours.rows, theirs.rows) << name;
  EXPECT_EQ(ours.height, theirs.height) << name;
  if (theirs.rows.empty()) return;  // Fluid's value has no shape then
  const Status near = Near(ours.value, theirs.value, kRelative, kAbsolute);
  EXPECT_TRUE(near.ok()) << name << ": " << near.ToString();
}

TEST(RowKernels, GiveFluidsRowsInItsOrder) {
  if (CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not beside this checkout";
  const std::string folder = CorpusFolder() + "/open/ops_sr/";
  const std::set<std::string> built = {"clip",
                                       "clip_by_norm",
                                       "get_tensor_from_selected_rows",
                                       "lookup_table_grad",
                                       "lookup_table_v2_grad",
                                       "merge_selected_rows",
                                       "split_selected_rows"};
  int compared = 0;
  for (const std::string& name : FilesEndingIn(folder, ".json")) {
    const auto facts = nlohmann::json::parse(BytesOf(folder + name + ".json"));
    if (!built.contains(facts["op"].get<std::string>())) continue;
    const Result<Program> program = ParseProgram(BytesOf(folder + name + ".pb"));
    ASSERT_TRUE(program.ok()) << name;
    const Op& op = *program->main().ops().front().op;
    if (facts.contains("error") && !facts["error"].is_null()) continue;  // below
    const Result<Arrays> arrays = ReadNpz(BytesOf(folder + name + ".npz"));
    ASSERT_TRUE(arrays.ok()) << name;
    Variables variables = Read(*arrays, "in:");
    const Status status = RunTwice(op, variables);
    ASSERT_TRUE(status.ok()) << name << ": " << status.ToString();
    for (const auto& [output, expected] : Read(*arrays, "out:"))
      ExpectSame(name, *variables.at(output), *expected);
    ++compared;
  }
  EXPECT_GE(compared, 17);
}

SelectedRows Rows(std::vector<std::int64_t> rows, std::int64_t height) {
  return {rows, height, Ramp(DType::kFp32, {static_cast<Dim>(rows.size()), 2}, 1, 1)};
}

TEST(RowKernels, NameARowOutsideAllSections) {
  Variables variables;
  variables["x"] = std::make_unique<Variable>();
  variables["x"]->As<SelectedRows>() = Rows({1, 9}, 9);
  const Op op = Op("split_selected_rows")
                    .AddInput("X", {"x"})
                    .AddOutput("Out", {"a", "b"})
                    .Set("height_sections", std::vector<std::int64_t>{4, 5});
  EXPECT_EQ(RunTwice(op, variables).message(),
            "split_selected_rows: row 9 is outside the sections, which hold 9");
}

TEST(RowKernels, TakeNoRows) {
  for (const char* type :
       {"merge_selected_rows", "clip_by_norm", "get_tensor_from_selected_rows", "split_selected_rows"}) {
    for (const bool has_value : {true, false}) {
      Variables variables;
      variables["x"] = std::make_unique<Variable>();
      variables["x"]->As<SelectedRows>() = has_value ? Rows({}, 9) : SelectedRows{{}, 9, {}};
      Op op = Op(type).AddInput("X", {"x"}).AddOutput("Out", {"out"});
      if (std::string(type) == "clip_by_norm") op.Set("max_norm", 1.0f);
      if (std::string(type) == "split_selected_rows") op.Set("height_sections", std::vector<std::int64_t>{9});
      const Status status = RunTwice(op, variables);
      EXPECT_TRUE(status.ok()) << type << ": " << status.ToString();
    }
  }
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
