#include "executor/graph/kernels.h"

#include <cstddef>
#include <span>
#include <utility>

#include "executor/graph/specialise.h"
#include "framework/base/check.h"

namespace penstock::exec {
namespace {

// Reads the types of the arguments of one step after the other.
class ArgumentTypes {
 public:
  explicit ArgumentTypes(const Specialisation& plan) : plan_(plan), known_(plan.block->slots.size()) {}

  // The types of the outputs. `slots()` then has those of the inputs. Steps without a kernel have no types.
  Inferred Next(std::size_t step) {
    const Instruction& instruction = plan_.block->instructions[step];
    Inferred inferred;
    inferred.kernel_type = plan_.kernel_types[step];
    for (const auto& args : instruction.inputs) {
      for (const int slot : args) {
        const TensorDesc& type = NextType();
        if (slot >= 0) known_[static_cast<std::size_t>(slot)] = type;
      }
    }
    for (const auto& args : instruction.outputs) {
      std::vector<TensorDesc>& types = inferred.outputs.emplace_back();
      for (std::size_t i = 0; i < args.size(); ++i) types.push_back(NextType());
    }
    return inferred;
  }
  std::span<const TensorDesc> slots() const { return known_; }

 private:
  const TensorDesc& NextType() { return plan_.type(plan_.arguments[at_++]); }

  const Specialisation& plan_;
  std::size_t at_ = 0;
  std::vector<TensorDesc> known_;  // by slot
};

// Whether the plan has laid out workspaces of these sizes for the step.
bool WorkspacesFit(const Specialisation& plan, std::size_t step, const std::vector<std::size_t>& bytes) {
  const std::size_t first = plan.FirstWorkspace(step);
  const std::size_t end = plan.steps[step].workspaces_end;
  if (bytes.size() != end - first) return false;
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t limit = i + 1 < end ? plan.workspaces[i + 1] : plan.workspace_bytes;
    if (plan.workspaces[i] + bytes[i - first] > limit) return false;
  }
  return true;
}

}  // namespace

Result<Kernels> PrepareKernels(const Specialisation& plan, const Services& services, PlaceKind place) {
  Kernels kernels(plan.steps.size());
  ArgumentTypes types(plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Instruction& instruction = plan.block->instructions[i];
    if (!plan.steps[i].has_kernel) continue;
    const Inferred inferred = types.Next(i);
    if (place == PlaceKind::kLater && instruction.of_first_place) continue;
    PENSTOCK_ASSIGN_OR_RETURN(PreparedKernel prepared,
                              PrepareKernel(*plan.block, instruction, inferred, types.slots(), services));
    PENSTOCK_CHECK(WorkspacesFit(plan, i, prepared.workspaces), instruction.op->type());
    kernels[i] = std::move(prepared.kernel);
  }
  return kernels;
}

void RemoveKernelsOfFirstPlace(const Specialisation& plan, Kernels& kernels) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (plan.block->instructions[i].of_first_place) kernels[i].reset();
  }
}

}  // namespace penstock::exec
