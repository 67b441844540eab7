#include "tests/ops/rows_runner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/op/conform.h"
#include "framework/op/operand_kinds.h"
#include "framework/op/tensor_desc.h"
#include "operators/all_ops.h"
#include "tests/ops/allocations.h"
#include "tests/support/fluid_errors.h"

namespace penstock::test {
namespace {

TensorDesc DescOf(const Variable& variable) {
  TensorDesc info;
  if (const auto* array = variable.If<TensorArray>()) {
    if (!array->empty()) info = penstock::DescOf(array->front());
    if (info.shape.rank() > 0) info.shape.Set(0, kUnknownDim);
    info.kind = VarKind::kTensorArray;
    return info;
  }
  if (variable.Is<RankTable>()) {
    info.kind = VarKind::kRankTable;
    info.has_type = false;
    return info;
  }
  const SelectedRows* rows = variable.If<SelectedRows>();
  const Tensor& tensor = rows == nullptr ? *variable.If<Tensor>() : rows->value;
  info.kind = rows == nullptr ? VarKind::kTensor : VarKind::kSelectedRows;
  info.dtype = tensor.dtype();
  info.lod_level = static_cast<std::int32_t>(tensor.lod().size());
  info.shape = rows == nullptr        ? tensor.shape()
               : tensor.initialized() ? tensor.shape().WithRows(rows->height)
                                      : Shape{rows->height};
  return info;
}

std::unique_ptr<Variable> CopyOf(const Variable& variable) {
  auto copy = std::make_unique<Variable>();
  if (const auto* rows = variable.If<SelectedRows>()) {
    copy->As<SelectedRows>() = {rows->rows, rows->height, rows->value.Clone()};
  } else if (const auto* tensor = variable.If<Tensor>()) {
    copy->As<Tensor>() = tensor->Clone();
  } else if (const auto* array = variable.If<TensorArray>()) {
    for (const Tensor& element : *array) copy->As<TensorArray>().push_back(element.Clone());
  }
  return copy;
}

// Copies `from` to `to`, into its existing memory.
void PutBack(const Variable& from, Variable& to) {
  const auto copy = [](const Tensor& source, Tensor& target) {
    if (!source.initialized()) {
      target = Tensor();
      return;
    }
    target.Reset(source.dtype(), source.shape());
    if (source.bytes() > 0) target.CopyFrom(source);
  };
  if (const auto* rows = from.If<SelectedRows>()) {
    SelectedRows& target = to.As<SelectedRows>();
    target.rows = rows->rows;
    target.height = rows->height;
    copy(rows->value, target.value);
  } else if (const auto* tensor = from.If<Tensor>()) {
    copy(*tensor, to.As<Tensor>());
  }  // arrays are written once more
}

// One entry per variable, however often the op names it.
class Frame {
 public:
  explicit Frame(Variables& variables) : variables_(variables) {}
  Argument Take(const std::string& name, const TensorDesc& desc) {
    std::unique_ptr<Variable>& variable = variables_[name];
    if (variable == nullptr) variable = std::make_unique<Variable>();
    if (desc.kind == VarKind::kTensor && !variable->initialized() && desc.shape.IsKnown())
      variable->As<Tensor>().Reset(desc.dtype, desc.shape);
    const auto [at, added] = index_.emplace(name, static_cast<int>(pointers_.size()));
    if (added) pointers_.push_back(variable.get());
    Argument argument{desc, Operand{at->second}, name};
    if (desc.kind != VarKind::kTensor) argument.shape = {};
    return argument;
  }
  Variable* const* pointers() const { return pointers_.data(); }

 private:
  Variables& variables_;
  std::map<std::string, int> index_;
  std::vector<Variable*> pointers_;
};

}  // namespace

Variables ReadVariables(const Arrays& arrays, const std::string& prefix) {
  Variables variables;
  for (const auto& [key, array] : arrays) {
    if (!StartsWith(key, prefix)) continue;
    const std::vector<std::string> parts = Split(key.substr(prefix.size()), ':');
    std::unique_ptr<Variable>& variable = variables[parts[0]];
    if (variable == nullptr) variable = std::make_unique<Variable>();
    if (parts.size() == 1) {
      variable->As<Tensor>() = array.Clone();
      continue;
    }
    SelectedRows& rows = variable->As<SelectedRows>();
    if (parts[1] == "rows")
      rows.rows.assign(array.Data<std::int64_t>(), array.Data<std::int64_t>() + array.count());
    if (parts[1] == "height") rows.height = *array.Data<std::int64_t>();
    if (parts[1] == "value") rows.value = array.Clone();
  }
  return variables;
}

Status RunTwice(const Op& op, Variables& variables, const SecondRun& second) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, AllOps().Require(op));
  PENSTOCK_RETURN_IF_ERROR(def->CheckOp(op));
  if (const auto conformed = Conformed(*def, op)) return RunTwice(*conformed, variables, second);
  InferContext context(*def, op, [&](const std::string& name) -> std::optional<TensorDesc> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::make_optional(DescOf(*found->second));
  });
  PENSTOCK_RETURN_IF_ERROR(def->Infer(context));
  Frame frame(variables);
  std::vector<KernelSetup::Arguments> in, out;
  for (const Slot& slot : op.inputs()) {
    in.push_back({slot.name, {}});
    for (std::size_t i = 0; i < slot.args.size(); ++i)
      in.back().list.push_back(frame.Take(slot.args[i], context.Input(slot.name, static_cast<int>(i))));
  }
  for (const Slot& slot : op.outputs()) {
    out.push_back({slot.name, {}});
    for (std::size_t i = 0; i < slot.args.size(); ++i)
      out.back().list.push_back(frame.Take(slot.args[i], context.Output(slot.name, static_cast<int>(i))));
  }
  const KernelFactory factory = def->FindKernel(DeviceKind::kCpu, def->KernelType(context));
  if (factory == nullptr) return Unimplemented("E-harness", op.type(), " has no kernel");
  const std::unique_ptr<Kernel> kernel = factory();
  KernelSetup setup(*def, op, std::move(in), std::move(out), Services());
  PENSTOCK_RETURN_IF_ERROR(RequireKinds(*def, setup));
  PENSTOCK_RETURN_IF_ERROR(kernel->Prepare(setup));
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::byte*> workspaces;
  for (const std::size_t bytes : setup.workspaces()) {
    buffers.push_back(Buffer::Allocate(bytes));
    workspaces.push_back(buffers.back()->data());
  }
  KernelRun run(frame.pointers(), workspaces.data(), nullptr);
  const std::vector<std::string> inputs = op.InputNames(), outputs = op.OutputNames();
  Variables before;
  for (const std::string& name : outputs) {
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end())
      before[name] = CopyOf(*variables.at(name));
  }
  PENSTOCK_RETURN_IF_ERROR(kernel->Run(run));
  for (const auto& [name, variable] : before) PutBack(*variable, *variables.at(name));
  if (second.begins != nullptr) second.begins();
  Status status = kernel->Run(run);
  if (second.ends != nullptr) second.ends();
  return status;
}

Status RunWithoutAllocating(const std::string& name, const Op& op, Variables& variables) {
  std::int64_t allocations = 0;
  Status status = RunTwice(op, variables, CountInto(allocations));
  EXPECT_TRUE(!status.ok() || allocations == 0)
      << name << ": " << op.type() << " allocates " << allocations << " times when it runs again";
  return status;
}

Tensor Densify(const SelectedRows& rows, const Shape& like) {
  Tensor dense(DType::kFp32, rows.value.initialized() ? rows.value.shape().WithRows(rows.height) : like);
  std::fill_n(dense.Data<float>(), dense.count(), 0.0f);
  const Dim width = dense.shape().RowWidth();
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const float* from = rows.value.Data<float>() + static_cast<Dim>(i) * width;
    for (Dim j = 0; j < width; ++j) dense.Data<float>()[rows.rows[i] * width + j] += from[j];
  }
  return dense;
}

SelectedRows SomeRowsOf(const Tensor& tall, const std::vector<std::int64_t>& rows) {
  const Dim width = tall.shape().RowWidth();
  SelectedRows some{rows, tall.shape()[0],
                    Tensor(DType::kFp32, tall.shape().WithRows(static_cast<Dim>(rows.size())))};
  float* to = some.value.Data<float>();
  for (const std::int64_t row : rows) to = std::copy_n(tall.Data<float>() + row * width, width, to);
  return some;
}

Result<Variables> DenseUpdate(const Op& op, const Variables& in) {
  const OptimizerDef& optimizer = *AllOps().Find(op.type())->optimizer();
  const std::string& grad = op.InputName(optimizer.grad_slot);
  const SelectedRows& rows = *in.at(grad)->If<SelectedRows>();
  const Shape& shape = in.at(op.InputName(optimizer.param_slot))->If<Tensor>()->shape();
  Variables dense;
  for (const auto& [name, variable] : in) dense[name] = CopyOf(*variable);
  dense[grad]->As<Tensor>() = Densify(rows, shape);
  // If beta powers stay in their variables, adam by rows uses those of the next step; dense adam gets them as
  // input.
  const auto betas = BetasInPlace(op);
  for (const auto& [power, beta] : betas) dense[power]->As<Tensor>().Span<float>()[0] *= beta;
  PENSTOCK_RETURN_IF_ERROR(RunTwice(op, dense));
  for (const auto& [power, beta] : betas) dense[power]->As<Tensor>().Span<float>()[0] /= beta;
  if (!op.GetOr("lazy_mode", false)) return dense;
  const auto keep = [&](const std::string& from, const std::string& to) {
    const Tensor& before = *in.at(op.InputName(from))->If<Tensor>();
    if (before.shape() != shape) return;
    Tensor& after = dense.at(op.OutputName(to))->As<Tensor>();
    for (Dim row = 0; row < shape[0]; ++row) {
      if (std::find(rows.rows.begin(), rows.rows.end(), row) == rows.rows.end())
        after.Rows(row, row + 1).CopyFrom(before.Rows(row, row + 1));
    }
  };
  keep(optimizer.param_slot, optimizer.param_slot + "Out");
  for (const StateDef& state : optimizer.states) {
    if (state.output != "-") keep(state.slot, state.output);
  }
  return dense;
}

}  // namespace penstock::test
