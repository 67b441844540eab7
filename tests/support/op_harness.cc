#include "tests/support/op_harness.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "framework/base/hash.h"
#include "framework/op/conform.h"
#include "framework/op/infer_context.h"
#include "framework/op/operand_kinds.h"
#include "framework/op/tensor_desc.h"
#include "framework/runtime/compute_pool.h"
#include "framework/tensor/scope.h"

namespace penstock::test {
namespace {

InferContext::Lookup LookupIn(const TensorDescs& known) {
  return [&known](const std::string& name) -> std::optional<TensorDesc> {
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::make_optional(found->second);
  };
}

// The variables of one run, numbered.
class Frame {
 public:
  int IndexOf(const std::string& name) {
    const auto [at, added] = index_.emplace(name, static_cast<int>(variables_.size()));
    if (added) variables_.push_back(std::make_unique<Variable>());
    return at->second;
  }
  Variable& At(int index) { return *variables_[static_cast<std::size_t>(index)]; }
  std::vector<Variable*> Pointers() const {
    std::vector<Variable*> pointers;
    for (const auto& variable : variables_) pointers.push_back(variable.get());
    return pointers;
  }

 private:
  std::map<std::string, int> index_;
  std::vector<std::unique_ptr<Variable>> variables_;
};

Argument MakeArgument(Frame& frame, const std::string& name, const TensorDesc& desc) {
  if (name == kEmptyVarName) return {};
  return {desc, Operand{frame.IndexOf(name)}, name};
}

// The kernel allocates an output whose shape depends on sequences or values.
Status Allocate(Frame& frame, const Argument& argument, const TestDevice& device) {
  if (!argument || argument.kind != VarKind::kTensor || !argument.shape.IsKnown()) return OkStatus();
  Variable& variable = frame.At(argument.operand.index);
  if (variable.initialized()) return OkStatus();  // in place
  Tensor tensor(argument.dtype, argument.shape);
  if (tensor.bytes() > 0) std::memset(tensor.raw(), 0xFF, tensor.bytes());
  PENSTOCK_ASSIGN_OR_RETURN(variable.As<Tensor>(), device.to_device(tensor));
  return OkStatus();
}

// As the executor does after each op.
void ShareLods(const Op& op, const InferContext& context, Frame& frame) {
  for (const LodShare& share : context.lod_shares()) {
    const auto name = [](const std::vector<Slot>& slots, int slot, int i) -> const std::string& {
      return slots[static_cast<std::size_t>(slot)].args[static_cast<std::size_t>(i)];
    };
    const std::string& from = name(op.inputs(), share.input_slot, share.input);
    const std::string& to = name(op.outputs(), share.output_slot, share.output);
    if (from == to || from == kEmptyVarName || to == kEmptyVarName) continue;
    const Tensor* source = frame.At(frame.IndexOf(from)).If<Tensor>();
    Tensor* target = frame.At(frame.IndexOf(to)).If<Tensor>();
    if (source != nullptr && target != nullptr) target->ShareLod(*source);
  }
}

}  // namespace

Result<TensorDescs> InferOp(const OpRegistry& ops, const Op& op, const TensorDescs& inputs) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops.Require(op));
  PENSTOCK_RETURN_IF_ERROR(def->CheckOp(op));
  if (const auto conformed = Conformed(*def, op)) return InferOp(ops, *conformed, inputs);
  InferContext context(*def, op, LookupIn(inputs));
  PENSTOCK_RETURN_IF_ERROR(def->Infer(context));
  TensorDescs out;
  for (std::size_t s = 0; s < op.outputs().size(); ++s) {
    const ArgList& args = op.outputs()[s].args;
    for (std::size_t i = 0; i < args.size(); ++i) out[args[i]] = context.outputs()[s][i];
  }
  return out;
}

Result<Tensors> RunOp(const OpRegistry& ops, const Op& op, const Tensors& inputs, const Services& services,
                      Scope* scope, const TestDevice& device, const SecondRun& second) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops.Require(op));
  PENSTOCK_RETURN_IF_ERROR(def->CheckOp(op));
  const ComputeTeam team(services.threads);
  if (const auto conformed = Conformed(*def, op))
    return RunOp(ops, *conformed, inputs, services, scope, device, second);
  TensorDescs known;
  for (const auto& [name, tensor] : inputs) known[name] = DescOf(tensor);
  InferContext context(*def, op, LookupIn(known));
  PENSTOCK_RETURN_IF_ERROR(def->Infer(context));

  Frame frame;
  std::vector<KernelSetup::Arguments> in, out;
  for (const Slot& slot : op.inputs()) {
    KernelSetup::Arguments arguments{slot.name, {}};
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      const TensorDesc& info = context.Input(slot.name, static_cast<int>(i));
      arguments.list.push_back(MakeArgument(frame, slot.args[i], info));
      const auto given = inputs.find(slot.args[i]);
      if (given == inputs.end())
        return FailedPrecondition("E-harness", "input ", slot.args[i], " is not given");
      PENSTOCK_ASSIGN_OR_RETURN(frame.At(arguments.list.back().operand.index).As<Tensor>(),
                                device.to_device(given->second));
    }
    in.push_back(std::move(arguments));
  }
  for (const Slot& slot : op.outputs()) {
    KernelSetup::Arguments arguments{slot.name, {}};
    for (std::size_t i = 0; i < slot.args.size(); ++i) {
      arguments.list.push_back(
          MakeArgument(frame, slot.args[i], context.Output(slot.name, static_cast<int>(i))));
      PENSTOCK_RETURN_IF_ERROR(Allocate(frame, arguments.list.back(), device));
    }
    out.push_back(std::move(arguments));
  }

  const KernelFactory factory = def->FindKernel(device.kind, def->KernelType(context));
  if (factory == nullptr) {
    return Unimplemented("E-harness", op.type(), " has no kernel for ", DTypeName(def->KernelType(context)));
  }
  const std::unique_ptr<Kernel> kernel = factory();
  KernelSetup setup(*def, op, std::move(in), std::move(out), services);
  PENSTOCK_RETURN_IF_ERROR(RequireKinds(*def, setup));
  PENSTOCK_RETURN_IF_ERROR(RequireAliasing(*def, setup));
  PENSTOCK_RETURN_IF_ERROR(kernel->Prepare(setup));
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::byte*> workspaces;
  for (const std::size_t bytes : setup.workspaces()) {
    buffers.push_back(Buffer::Allocate(bytes));
    std::memset(buffers.back()->data(), 0xFF, bytes);
    workspaces.push_back(buffers.back()->data());
  }
  const std::vector<Variable*> pointers = frame.Pointers();
  KernelRun run(pointers.data(), workspaces.data(), scope);
  PENSTOCK_RETURN_IF_ERROR(kernel->Run(run));
  if (second.begins != nullptr) {
    second.begins();
    const Status status = kernel->Run(run);
    second.ends();
    PENSTOCK_RETURN_IF_ERROR(status);
  }
  ShareLods(op, context, frame);

  Tensors results;
  for (const std::string& name : op.OutputNames()) {
    if (name == kEmptyVarName) continue;
    const Tensor* tensor = frame.At(frame.IndexOf(name)).If<Tensor>();
    if (tensor == nullptr || !tensor->initialized()) continue;
    PENSTOCK_ASSIGN_OR_RETURN(results[name], device.to_host(*tensor));
  }
  return results;
}

Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const std::set<std::string>& wanted,
                                    const std::set<std::string>& without) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops.Require(op));
  std::set<std::string> known = wanted;  // every output has a gradient
  for (const std::string& name : op.OutputNames()) known.insert(name);
  const auto grad_of = [&known](const std::string& name) {
    return known.contains(name) ? name + kGradSuffix : std::string();
  };
  if (def->grad_maker() != nullptr) return def->grad_maker()({op, grad_of});
  if (!def->grad().has_value()) return InvalidArgument("E-harness", op.type(), " has no gradient");
  const GradSpec& spec = *def->grad();
  Op grad(spec.type.empty() ? op.type() + "_grad" : spec.type);
  for (const std::string& slot : spec.reads) grad.AddInput(slot, op.Input(slot));
  for (const std::string& slot : spec.reads_outputs) grad.AddInput(slot, op.Output(slot));
  std::vector<std::string> of = spec.of;
  if (of.empty()) {
    for (const SlotDef& slot : def->outputs()) {
      if (!slot.intermediate) of.push_back(slot.name);
    }
  }
  for (const std::string& slot : of) {
    std::vector<std::string> args;
    bool any = !def->FindOutput(slot)->optional;
    for (const std::string& name : op.Output(slot)) {
      args.push_back(name + kGradSuffix);
      any = any || !without.contains(name);
    }
    if (any) grad.AddInput(slot + kGradSuffix, args);
  }
  for (const std::string& slot : spec.yields) {
    std::vector<std::string> args;
    bool any = false;
    for (const std::string& name : op.Input(slot)) {
      args.push_back(wanted.contains(name) ? name + kGradSuffix : std::string());
      any = any || !args.back().empty();
      if (args.back().empty()) args.back() = kEmptyVarName;
    }
    if (!any) args.clear();
    grad.AddOutput(slot + kGradSuffix, args);
  }
  if (spec.copies_attrs) {
    for (const NamedAttr& attr : op.attrs()) grad.Set(attr.name, attr.value);
  }
  return std::vector<Op>{grad};
}

double ElementAt(const Tensor& tensor, std::int64_t i) {
  switch (tensor.dtype()) {
    case DType::kBool:
      return tensor.Data<bool>()[i] ? 1 : 0;
    case DType::kInt16:
      return tensor.Data<std::int16_t>()[i];
    case DType::kInt32:
      return tensor.Data<std::int32_t>()[i];
    case DType::kInt64:
      return static_cast<double>(tensor.Data<std::int64_t>()[i]);
    case DType::kFp32:
      return tensor.Data<float>()[i];
    case DType::kFp64:
      return tensor.Data<double>()[i];
    case DType::kUInt8:
      return tensor.Data<std::uint8_t>()[i];
    case DType::kInt8:
      return tensor.Data<std::int8_t>()[i];
    default:
      break;
  }
  PENSTOCK_CHECK(false, StrCat("elements of type ", DTypeName(tensor.dtype()), " are not read here"));
  return 0;
}

namespace {

void SetElement(Tensor& tensor, std::int64_t i, double value) {
  switch (tensor.dtype()) {
    case DType::kBool:
      tensor.Data<bool>()[i] = value != 0;
      return;
    case DType::kInt32:
      tensor.Data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      return;
    case DType::kInt64:
      tensor.Data<std::int64_t>()[i] = static_cast<std::int64_t>(value);
      return;
    case DType::kInt8:
      tensor.Data<std::int8_t>()[i] = static_cast<std::int8_t>(value);
      return;
    case DType::kFp32:
      tensor.Data<float>()[i] = static_cast<float>(value);
      return;
    case DType::kFp64:
      tensor.Data<double>()[i] = value;
      return;
    default:
      PENSTOCK_CHECK(false, StrCat("elements of type ", DTypeName(tensor.dtype()), " are not written here"));
  }
}

// Element i of the artificial gradient of an output. It has no regular pattern, so that a wrong axis changes
// the result.
double Weight(const std::string& name, std::int64_t i) {
  const std::uint64_t hash = Fnv1a64(StrCat(name, ":", i));
  return static_cast<double>(hash % 2001) / 1000.0 - 1.0;
}

Result<double> WeightedSum(const OpRegistry& ops, const Op& op, const Tensors& inputs,
                           const std::vector<std::string>& of) {
  PENSTOCK_ASSIGN_OR_RETURN(const Tensors out, RunOp(ops, op, inputs));
  double sum = 0;
  for (const std::string& name : of) {
    const Tensor& tensor = out.at(name);
    for (std::int64_t i = 0; i < tensor.count(); ++i) sum += Weight(name, i) * ElementAt(tensor, i);
  }
  return sum;
}

}  // namespace

Tensor Ramp(DType type, const Shape& shape, double begin, double step) {
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    SetElement(tensor, i, begin + step * static_cast<double>(i));
  return tensor;
}

Tensor Scattered(DType type, const Shape& shape, double low, double high, unsigned seed) {
  Tensor tensor(type, shape);
  // Multiples of the golden ratio: evenly spread and distinct.
  constexpr double kGolden = 0.6180339887498949;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double turn = kGolden * static_cast<double>(i + 1) + 0.37 * seed;
    SetElement(tensor, i, low + (high - low) * (turn - std::floor(turn)));
  }
  return tensor;
}

Status CheckGradient(const OpRegistry& ops, const Op& op, const Tensors& inputs, const GradientCheck& check) {
  PENSTOCK_ASSIGN_OR_RETURN(const Tensors out, RunOp(ops, op, inputs));
  Tensors known = inputs;
  for (const auto& [name, tensor] : out) known[name] = tensor;
  for (const auto& [name, tensor] : out) {
    Tensor grad = tensor.Clone();
    const bool counts = std::find(check.of.begin(), check.of.end(), name) != check.of.end();
    if (!IsFloat(grad.dtype())) continue;
    for (std::int64_t i = 0; i < grad.count(); ++i) SetElement(grad, i, counts ? Weight(name, i) : 0.0);
    known[name + kGradSuffix] = grad;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Op> grads, MakeGradOps(ops, op, check.wanted));
  for (const Op& grad : grads) {
    PENSTOCK_ASSIGN_OR_RETURN(const Tensors made, RunOp(ops, grad, known));
    for (const auto& [name, tensor] : made) known[name] = tensor;
  }
  for (const std::string& name : check.wanted) {
    const auto analytic = known.find(name + kGradSuffix);
    if (analytic == known.end())
      return InternalError("E-harness", "no gradient op gives ", name, kGradSuffix);
    const Tensor& at = inputs.at(name);
    if (analytic->second.shape() != at.shape()) {
      return InternalError("E-harness", "the gradient of ", name, at.shape(), " has shape ",
                           analytic->second.shape());
    }
    for (std::int64_t i = 0; i < at.count(); ++i) {
      Tensors moved = inputs;
      moved[name] = at.Clone();
      SetElement(moved[name], i, ElementAt(at, i) + check.step);
      PENSTOCK_ASSIGN_OR_RETURN(const double above, WeightedSum(ops, op, moved, check.of));
      SetElement(moved[name], i, ElementAt(at, i) - check.step);
      PENSTOCK_ASSIGN_OR_RETURN(const double below, WeightedSum(ops, op, moved, check.of));
      const double numeric = (above - below) / (2 * check.step);
      const double given = ElementAt(analytic->second, i);
      if (!(std::abs(numeric - given) <= check.tolerance * std::max(1.0, std::abs(numeric)))) {
        return InternalError("E-harness", op.type(), ": gradient of ", name, ", element ", i, " is ", given,
                             ", central differences say ", numeric);
      }
    }
  }
  return OkStatus();
}

Status Near(const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.dtype() != b.dtype()) {
    return InternalError("E-near", "type ", DTypeName(a.dtype()), " against ", DTypeName(b.dtype()));
  }
  if (a.shape() != b.shape()) return InternalError("E-near", "shape ", a.shape(), " against ", b.shape());
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = ElementAt(a, i);
    const double y = ElementAt(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= atol + rtol * std::abs(y))) {
      return InternalError("E-near", "element ", i, " is ", x, ", expected ", y);
    }
  }
  return OkStatus();
}

}  // namespace penstock::test
