#include "executor/schedule/sequential.h"

#include "executor/graph/explain.h"
#include "executor/schedule/nan_check.h"

namespace penstock {
namespace {

// What a step writes in the scope has the inferred type before its kernel runs. What is there already stays
// as it is, so that a parameter is updated in place.
void MakeScopeOutputs(Frame& frame, const Step& step) {
  for (const OutputTensor& output : step.scope_outputs) {
    Tensor& tensor = frame.variable(output.slot).As<Tensor>();
    const bool fits = tensor.initialized() && tensor.dtype() == output.info.dtype;
    if (fits && tensor.shape() == output.info.shape) continue;
    if (fits && tensor.count() == output.info.shape.Count()) {
      tensor = tensor.Reshaped(output.info.shape);
    } else {
      tensor.Reset(output.info.dtype, output.info.shape);
    }
  }
}

void RebindOutputs(Frame& frame, const Step& step) {
  for (const int slot : step.rebound) {
    for (const OutputTensor& output : step.outputs) {
      if (output.slot == slot) frame.Rebind(output);
    }
  }
}

// False if a kernel gave an output another shape than was inferred, or a block changed a type of this one's.
bool OutputsAreAsExpected(Frame& frame, const Step& step) {
  for (const OutputTensor& output : step.outputs) {
    const Tensor* tensor = frame.variable(output.slot).If<Tensor>();
    // A block that did not run has left nothing; who reads it finds out.
    if (step.starts_blocks && !frame.variable(output.slot).initialized()) continue;
    if (tensor == nullptr || tensor->shape() != output.info.shape || tensor->dtype() != output.info.dtype)
      return false;
  }
  for (const OutputTensor& written : step.block_writes) {
    const Variable& variable = frame.variable(written.slot);
    const Tensor* tensor = variable.If<Tensor>();
    if (!variable.initialized()) continue;
    if (tensor == nullptr || tensor->shape() != written.info.shape || tensor->dtype() != written.info.dtype)
      return false;
  }
  return true;
}

Status CheckUncertain(Frame& frame, const Step& step) {
  for (const int slot : step.uncertain) {
    if (frame.variable(slot).initialized()) continue;
    const SlotInfo& info = frame.block().slots[static_cast<std::size_t>(slot)];
    return frame.Explain(
        FailedPrecondition("E-run-uninitialized", info.name, " : ", TypeText(*info.var),
                           " has no value: the block that should have written it did not run or write it"),
        *step.instruction);
  }
  return OkStatus();
}

}  // namespace

Status RunSequential(Frame& frame, LateSteps& late, Scope& scope, const Services& services,
                     const Cancellation& cancellation) {
  const std::vector<Step>& steps = frame.specialisation().steps;
  const bool watched = CheckNanInf();
  bool diverged = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Instruction& instruction = *step.instruction;
    if (cancellation.requested()) [[unlikely]] {
      return frame.Explain(Cancelled("E-run-cancelled", "the run was cancelled"), instruction);
    }
    if (diverged || step.kernel == nullptr) [[unlikely]] {
      frame.MarkDisturbed();
      PENSTOCK_RETURN_IF_ERROR(late.Run(frame, static_cast<int>(i), scope, services));
      if (watched) {
        PENSTOCK_RETURN_IF_ERROR(RequireFinite(frame, instruction));
      }
      // What was inferred from a shape that was not known may be a guess (sequence_pad's longest sequence).
      diverged = diverged || !OutputsAreAsExpected(frame, step);
      continue;
    }
    if (!step.uncertain.empty()) [[unlikely]] {
      PENSTOCK_RETURN_IF_ERROR(CheckUncertain(frame, step));
    }
    if (!step.scope_outputs.empty()) MakeScopeOutputs(frame, step);
    if (!step.rebound.empty()) [[unlikely]] {
      RebindOutputs(frame, step);
      frame.MarkDisturbed();
    }
    Scope& seen = step.starts_blocks ? frame.ImportScope(scope) : scope;
    KernelRun run(frame.variables(), frame.workspaces(static_cast<int>(i)), &seen);
    if (Status status = step.kernel->Run(run); !status.ok()) [[unlikely]] {
      return frame.Explain(std::move(status), instruction);
    }
    if (!step.lod_shares.empty()) ShareLods(instruction, step.lod_shares, frame.variables());
    if (watched) [[unlikely]] {
      PENSTOCK_RETURN_IF_ERROR(RequireFinite(frame, instruction));
    }
    if (!OutputsAreAsExpected(frame, step)) [[unlikely]] {
      diverged = true;
      frame.MarkDisturbed();
    }
  }
  return OkStatus();
}

}  // namespace penstock
