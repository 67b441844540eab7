#include "executor/schedule/late_steps.h"

#include "executor/graph/explain.h"

namespace penstock::exec {
namespace {

constexpr std::size_t kAlignment = 64;

bool IsInput(const Instruction& instruction, int slot) {
  for (const auto& args : instruction.inputs) {
    for (const int input : args) {
      if (input == slot) return true;
    }
  }
  return false;
}

// Whether every argument still has the type that the kernel was prepared for. Control variables have no type.
bool SameInputs(Frame& frame, const Instruction& instruction, const std::vector<VarInfo>& prepared) {
  std::size_t i = 0;
  for (const auto& args : instruction.inputs) {
    for (const int slot : args) {
      const VarInfo& info = prepared[i++];
      if (slot < 0 || !info.has_type) continue;
      if (!Holds(frame.variable(slot), info)) return false;
    }
  }
  return true;
}

Result<std::vector<VarInfo>> InputInfos(Frame& frame, const Instruction& instruction) {
  const CompiledBlock& block = frame.block();
  std::vector<VarInfo> infos;
  const bool may_be_empty = instruction.starts_blocks || instruction.def->reads_only_some();
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    const bool needs_type = NeedsType(instruction, i);
    for (const int slot : instruction.inputs[i]) {
      if (slot < 0) {
        infos.emplace_back();
        continue;
      }
      const SlotInfo& info = block.slots[static_cast<std::size_t>(slot)];
      const Variable& variable = frame.variable(slot);
      if (!may_be_empty && !variable.initialized() && (info.var->type || needs_type)) {
        return ExplainOp(FailedPrecondition("E-run-uninitialized", info.name, " : ", TypeText(*info.var),
                                            " has no value: the op that should have made it did not"),
                         block.program, block.block, instruction.position);
      }
      infos.push_back(InfoOf(variable, *info.var));
    }
  }
  return infos;
}

void MakeOutput(Frame& frame, const Instruction& instruction, int slot, const VarInfo& info) {
  if (!IsKnownTensor(info)) return;
  Tensor& tensor = frame.variable(slot).As<Tensor>();
  const SlotInfo& what = frame.block().slots[static_cast<std::size_t>(slot)];
  // The caller still holds the value that it fetched from the last run.
  if (what.kept && what.home == Home::kFrame && tensor.initialized() && tensor.buffer().use_count() > 1 &&
      !IsInput(instruction, slot)) {
    tensor = Tensor();
  }
  const bool same_type = tensor.initialized() && tensor.dtype() == info.dtype;
  if (same_type && tensor.shape() == info.shape) return;
  if (same_type && tensor.count() == info.shape.Count()) {
    tensor = tensor.Reshaped(info.shape);
  } else if (!IsInput(instruction, slot)) {
    tensor.Reset(info.dtype, info.shape);
  }  // else the kernel reads the old content first, and resizes the tensor itself.
}

}  // namespace

Status LateSteps::Prepare(Frame& frame, const Instruction& instruction, std::vector<VarInfo> inputs,
                          const Services& services, Late& late) {
  const CompiledBlock& block = frame.block();
  known_.resize(block.slots.size());
  for (const auto& args : instruction.outputs) {
    for (const int slot : args) {
      if (slot < 0) continue;
      const auto s = static_cast<std::size_t>(slot);
      known_[s] = InfoOf(*block.slots[s].var);
    }
  }
  std::size_t i = 0;
  for (const auto& args : instruction.inputs) {
    for (const int slot : args) {
      if (slot >= 0) known_[static_cast<std::size_t>(slot)] = inputs[i];
      ++i;
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(late.inferred, InferInstruction(block, instruction, known_));
  PENSTOCK_ASSIGN_OR_RETURN(PreparedKernel prepared,
                            PrepareKernel(block, instruction, late.inferred, known_, services));
  late.lod_copies = LodCopiesOf(instruction, late.inferred.lod_shares);
  late.inputs = std::move(inputs);
  late.kernel = std::move(prepared.kernel);
  std::size_t bytes = 0;
  std::vector<std::size_t> offsets;
  for (const std::size_t size : prepared.workspaces) {
    offsets.push_back(bytes);
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  late.workspaces.clear();
  if (bytes > 0) late.workspace = Buffer::Allocate(bytes);
  for (const std::size_t offset : offsets) {
    late.workspaces.push_back(late.workspace == nullptr ? nullptr : late.workspace->data() + offset);
  }
  return OkStatus();
}

Status LateSteps::Run(Frame& frame, int step, Scope& scope, const Services& services) {
  late_.resize(frame.specialisation().steps.size());
  Late& late = late_[static_cast<std::size_t>(step)];
  const Instruction& instruction = frame.block().instructions[static_cast<std::size_t>(step)];
  if (late.kernel == nullptr || !SameInputs(frame, instruction, late.inputs)) {
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<VarInfo> inputs, InputInfos(frame, instruction));
    PENSTOCK_RETURN_IF_ERROR(Prepare(frame, instruction, std::move(inputs), services, late));
  }
  const bool starts_blocks = instruction.starts_blocks;
  for (std::size_t i = 0; i < instruction.outputs.size() && !starts_blocks; ++i) {
    for (std::size_t j = 0; j < instruction.outputs[i].size(); ++j) {
      const int slot = instruction.outputs[i][j];
      if (slot >= 0) MakeOutput(frame, instruction, slot, late.inferred.outputs[i][j]);
    }
  }
  Scope& seen = starts_blocks ? frame.ImportScope(scope) : scope;
  KernelRun run(frame.variables(), late.workspaces.data(), &seen);
  Status status = late.kernel->Run(run);
  if (!status.ok()) return frame.Explain(std::move(status), instruction);
  CopyLods(late.lod_copies, frame.variables());
  return status;
}

}  // namespace penstock::exec
