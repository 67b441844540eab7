#include "executor/graph/infer.h"

#include <optional>
#include <tuple>

#include "executor/graph/explain.h"
#include "executor/graph/row_kernel.h"
#include "framework/op/operand_kinds.h"

namespace penstock::exec {
namespace {

// Returns the slot of a name among the instruction's arguments. For so few names, comparing beats a map.
int SlotNamed(const Instruction& instruction, const std::string& name) {
  const auto search = [&](const std::vector<Slot>& named, const std::vector<std::vector<int>>& slots) {
    for (std::size_t i = 0; i < named.size(); ++i) {
      for (std::size_t j = 0; j < named[i].args.size(); ++j) {
        if (named[i].args[j] == name) return slots[i][j];
      }
    }
    return -1;
  };
  const int input = search(instruction.op->inputs(), instruction.inputs);
  return input >= 0 ? input : search(instruction.op->outputs(), instruction.outputs);
}

Argument MakeArgument(int slot, const std::string& name, const TensorDesc& desc) {
  if (slot < 0) return {};
  Argument argument{desc, Operand{slot}, name};
  if (desc.kind != VarKind::kTensor || !desc.has_type) argument.shape = {};
  return argument;
}

}  // namespace

TensorDesc DescOf(const Variable& variable, const Var& declared) {
  TensorDesc info = DescOf(declared);
  if (const Tensor* tensor = variable.If<Tensor>(); tensor != nullptr && tensor->initialized()) {
    info = DescOf(*tensor);
  } else if (const auto* rows = variable.If<SelectedRows>()) {
    info.kind = VarKind::kSelectedRows;
    // The type is that of the whole tensor that the rows stand for; the number of stored rows is not part of
    // it. Rows without a value have only a height.
    if (rows->value.initialized()) info.dtype = rows->value.dtype();
    info.shape = rows->value.initialized() ? rows->value.shape().WithRows(rows->height) : Shape{rows->height};
    info.lod_level = 0;
    info.has_type = true;
  } else if (variable.Is<TensorArray>()) {
    info.kind = VarKind::kTensorArray;
  } else if (variable.Is<RankTable>()) {
    info.kind = VarKind::kRankTable;
  } else if (variable.Is<StepScopes>()) {
    info.kind = VarKind::kStepScopes;
  }
  return info;
}

bool Holds(const Tensor& tensor, const TensorDesc& info) {
  return info.kind == VarKind::kTensor && tensor.initialized() && tensor.dtype() == info.dtype &&
         static_cast<std::int32_t>(tensor.lod().size()) == info.lod_level && tensor.shape() == info.shape;
}

bool Holds(const Variable& variable, const TensorDesc& info) {
  if (const Tensor* tensor = variable.If<Tensor>()) return Holds(*tensor, info);
  if (const auto* rows = variable.If<SelectedRows>()) {
    if (info.kind != VarKind::kSelectedRows || info.shape.rank() == 0 || info.shape[0] != rows->height)
      return false;
    if (!rows->value.initialized()) return info.shape.rank() == 1;
    return rows->value.dtype() == info.dtype && rows->value.shape().rank() == info.shape.rank() &&
           rows->value.shape().RowWidth() == info.shape.RowWidth();
  }
  if (variable.Is<TensorArray>()) return info.kind == VarKind::kTensorArray;
  if (variable.Is<RankTable>()) return info.kind == VarKind::kRankTable;
  return variable.Is<StepScopes>() && info.kind == VarKind::kStepScopes;
}

bool IsKnownTensor(const TensorDesc& info) {
  return info.kind == VarKind::kTensor && info.has_type && info.shape.IsKnown();
}

bool NeedsType(const Instruction& instruction, std::size_t i) {
  const SlotDef* taken = instruction.def->FindInput(instruction.op->inputs()[i].name);
  return taken != nullptr && taken->kinds != KindSet::Any();
}

std::vector<std::string> FactsOf(const CompiledBlock& block, const Instruction& instruction,
                                 std::span<const TensorDesc> slots) {
  std::vector<std::string> facts;
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    for (const int slot : instruction.inputs[i]) {
      if (slot < 0) continue;
      const auto s = static_cast<std::size_t>(slot);
      const int whole = block.slots[s].view_of;
      facts.push_back(
          StrCat(instruction.op->inputs()[i].name, " = ", block.slots[s].name, " : ", TypeText(slots[s]),
                 whole < 0 ? "" : StrCat(", rows of ", block.slots[static_cast<std::size_t>(whole)].name)));
    }
  }
  return facts;
}

namespace {

// The types that the op told before the run replace what is inferred from its inputs.
void TakePeeked(const Instruction& instruction, std::span<const TensorDesc> slots, InferContext& context) {
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      const int slot = instruction.outputs[i][j];
      if (slot >= 0 && IsKnownTensor(slots[static_cast<std::size_t>(slot)]))
        context.SetOutput(i, j, slots[static_cast<std::size_t>(slot)]);
    }
  }
}

}  // namespace

Result<InferContext> InferenceOf(const CompiledBlock& block, const Instruction& instruction,
                                 std::span<const TensorDesc> slots) {
  InferContext context(*instruction.def, *instruction.op,
                       [&](const std::string& name) -> std::optional<TensorDesc> {
                         const int slot = SlotNamed(instruction, name);
                         if (slot < 0) return std::nullopt;
                         return slots[static_cast<std::size_t>(slot)];
                       });
  if (Status status = instruction.def->Infer(context); !status.ok()) {
    if (instruction.chain != nullptr) return status;  // it names the op
    return ExplainOp(std::move(status), block.program, block.block, instruction.position,
                     FactsOf(block, instruction, slots));
  }
  if (instruction.peeked) TakePeeked(instruction, slots, context);
  return context;
}

Result<Inferred> InferInstruction(const CompiledBlock& block, const Instruction& instruction,
                                  std::span<const TensorDesc> slots) {
  PENSTOCK_ASSIGN_OR_RETURN(const InferContext context, InferenceOf(block, instruction, slots));
  return Inferred{context.outputs(), instruction.def->KernelType(context), context.lod_shares()};
}

std::vector<LodCopy> LodCopiesOf(const Instruction& instruction, std::span<const LodShare> shares) {
  const auto slot = [](const std::vector<std::vector<int>>& slots, int argument, int i) {
    return slots[static_cast<std::size_t>(argument)][static_cast<std::size_t>(i)];
  };
  std::vector<LodCopy> copies;
  for (const LodShare& share : shares) {
    const int from = slot(instruction.inputs, share.input_slot, share.input);
    const int to = slot(instruction.outputs, share.output_slot, share.output);
    if (from >= 0 && to >= 0 && from != to) copies.push_back({from, to});
  }
  return copies;
}

void CopyLods(std::span<const LodCopy> copies, Variable* const* variables) {
  for (const LodCopy& copy : copies) {
    const Tensor* source = variables[copy.from]->If<Tensor>();
    Tensor* target = variables[copy.to]->If<Tensor>();
    if (source != nullptr && target != nullptr) target->ShareLod(*source);
  }
}

namespace {

// Requires that all uses of a variable that an op names twice, and writes, have one kind, size and element
// type: they are one piece of memory.
Status RequireOneType(const Instruction& instruction, const Inferred& inferred,
                      std::span<const TensorDesc> slots) {
  std::vector<std::tuple<int, const TensorDesc*, const std::string*>> named;  // slot, type, the op's slot
  const auto fit = [](const TensorDesc& a, const TensorDesc& b) {
    if (a.kind != b.kind) return false;
    if (!IsKnownTensor(a) || !IsKnownTensor(b)) return true;
    return a.dtype == b.dtype && a.shape.Count() == b.shape.Count();
  };
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    for (const int slot : instruction.inputs[i]) {
      if (slot >= 0)
        named.emplace_back(slot, &slots[static_cast<std::size_t>(slot)],
                           &instruction.op->inputs()[i].name.str());
    }
  }
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      const int slot = instruction.outputs[i][j];
      const TensorDesc& info = inferred.outputs[i][j];
      const std::string& name = instruction.op->outputs()[i].name;
      for (const auto& [other, type, other_name] : named) {
        if (slot < 0 || other != slot || fit(info, *type)) continue;
        return InvalidArgument("E-op-alias", instruction.op->type(), ": ", name, " (", TypeText(info),
                               ") and ", *other_name, " (", TypeText(*type), ") are one variable");
      }
      named.emplace_back(slot, &info, &name);
    }
  }
  return OkStatus();
}

// Requires that every output the op must write is named. A program may be inspected without them, but not
// run.
Status RequireOutputs(const OpDef& def, const Op& op) {
  for (const SlotDef& slot : def.outputs()) {
    if (slot.optional || slot.intermediate || !op.Output(slot.name).empty()) continue;
    return InvalidArgument("E-op-slot", op.type(), ": output ", slot.name, " is missing");
  }
  return OkStatus();
}

// Checks the arguments before a kernel is prepared. An op that starts blocks checks its own when it runs.
Status RequireOperands(const Instruction& instruction, const Inferred& inferred,
                       std::span<const TensorDesc> slots, const KernelSetup& setup) {
  const OpDef& def = *instruction.def;
  PENSTOCK_RETURN_IF_ERROR(RequireVariables(def, setup));
  if (!instruction.starts_blocks) {
    if (!def.effects().AreOutside()) PENSTOCK_RETURN_IF_ERROR(RequireOutputs(def, *instruction.op));
    PENSTOCK_RETURN_IF_ERROR(RequireAliasing(def, setup));
    PENSTOCK_RETURN_IF_ERROR(RequireOneType(instruction, inferred, slots));
  }
  return RequireKinds(def, setup);
}

// How many threads of the compute team an op may use: one if it has few elements, which one thread computes
// sooner than a second one wakes up. Where other processes keep the cores busy, the second one may even wait
// for a time slice.
int ThreadsFor(const std::vector<KernelSetup::Arguments>& inputs,
               const std::vector<KernelSetup::Arguments>& outputs, int threads) {
  constexpr Dim kFewElements = 1 << 14;
  Dim elements = 0;
  for (const auto* slots : {&inputs, &outputs}) {
    for (const KernelSetup::Arguments& arguments : *slots) {
      for (const Argument& argument : arguments.list) {
        if (!argument) continue;
        if (argument.kind != VarKind::kTensor) return threads;  // its size is not known
        elements += argument.shape.Count();
      }
    }
  }
  return elements < kFewElements ? 1 : threads;
}

Result<std::unique_ptr<Kernel>> NewKernel(const Instruction& instruction, DType type) {
  if (instruction.chain != nullptr) return NewRowKernel(instruction.chain);
  const OpDef& def = *instruction.def;
  if (const KernelFactory factory = def.FindKernel(DeviceKind::kCpu, type)) return factory();
  if (!def.not_built().empty())
    return Unimplemented("E-kernel-missing", def.type(), ": it is declared, not run: ", def.not_built());
  return Unimplemented("E-kernel-missing", def.type(), ": there is no CPU kernel for ", DTypeName(type));
}

}  // namespace

Result<PreparedKernel> PrepareKernel(const CompiledBlock& block, const Instruction& instruction,
                                     const Inferred& inferred, std::span<const TensorDesc> slots,
                                     const Services& services) {
  const auto explain = [&](Status status) {
    return ExplainOp(std::move(status), block.program, block.block, instruction.position,
                     FactsOf(block, instruction, slots));
  };
  const Op& op = *instruction.op;
  Result<std::unique_ptr<Kernel>> kernel = NewKernel(instruction, inferred.kernel_type);
  if (!kernel.ok()) return explain(std::move(kernel).status());
  std::vector<KernelSetup::Arguments> inputs, outputs;
  for (std::size_t i = 0; i < op.inputs().size(); ++i) {
    auto& arguments = inputs.emplace_back(KernelSetup::Arguments{op.inputs()[i].name, {}});
    for (std::size_t j = 0; j < instruction.inputs[i].size(); ++j) {
      const int slot = instruction.inputs[i][j];
      const TensorDesc desc = slot < 0 ? TensorDesc() : slots[static_cast<std::size_t>(slot)];
      arguments.list.push_back(MakeArgument(slot, op.inputs()[i].args[j], desc));
    }
  }
  for (std::size_t i = 0; i < op.outputs().size(); ++i) {
    auto& arguments = outputs.emplace_back(KernelSetup::Arguments{op.outputs()[i].name, {}});
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      arguments.list.push_back(
          MakeArgument(instruction.outputs[i][j], op.outputs()[i].args[j], inferred.outputs[i][j]));
    }
  }
  Services of_kernel = services;
  of_kernel.threads = ThreadsFor(inputs, outputs, services.threads);
  KernelSetup setup(*instruction.def, op, std::move(inputs), std::move(outputs), of_kernel,
                    {.program = &block.program, .block = block.block, .awaited = true});
  PreparedKernel prepared;
  prepared.kernel = *std::move(kernel);
  if (Status status = RequireOperands(instruction, inferred, slots, setup); !status.ok())
    return explain(std::move(status));
  if (Status status = prepared.kernel->Prepare(setup); !status.ok())
    return instruction.chain != nullptr ? std::move(status) : explain(std::move(status));
  prepared.workspaces = setup.workspaces();
  return prepared;
}

}  // namespace penstock::exec
