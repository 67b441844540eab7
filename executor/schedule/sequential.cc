#include "executor/schedule/sequential.h"

#include <algorithm>

#include "executor/graph/explain.h"
#include "executor/schedule/nan_check.h"
#include "framework/roles/views.h"
#include "framework/runtime/collective_rings.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::exec {
namespace {

Status CheckUncertain(Frame& frame, std::size_t step) {
  const std::vector<UncertainInput>& all = frame.specialisation().uncertain;
  const int of = static_cast<int>(step);
  const auto first = std::partition_point(all.begin(), all.end(),
                                          [of](const UncertainInput& input) { return input.step < of; });
  for (auto input = first; input != all.end() && input->step == of; ++input) {
    if (frame.variable(input->slot).initialized()) continue;
    const SlotInfo& info = frame.block().slots[static_cast<std::size_t>(input->slot)];
    return frame.Explain(
        FailedPrecondition("E-run-uninitialized", info.name, " : ", TypeText(*info.var),
                           " has no value: the block that should have written it did not run or write it"),
        frame.block().instructions[step]);
  }
  return OkStatus();
}

Status Wait(Frame& frame, const Await& await, const Services& services) {
  const bool operation = await.what == Await::For::kOperation;
  if (operation && await.operation.kind == Operation::Kind::kRing)
    return services.rings == nullptr ? OkStatus() : services.rings->Await(await.operation.ring);
  if (services.rpc == nullptr) return OkStatus();
  if (operation) return services.rpc->CompleteAhead();
  if (await.slot < 0) return services.rpc->CompleteLeft();
  if (await.what == Await::For::kCopied && frame.IsInPlace(await.slot)) return OkStatus();
  return services.rpc->CompleteLeftInto(frame.variable(await.slot));
}

// Waits for what operations in progress do to the variables of a step, or of the caller if there are no more
// steps.
Status AwaitBefore(Frame& frame, std::size_t step, const Services& services) {
  const std::vector<Await>& all = frame.specialisation().awaits;
  const int of = static_cast<int>(step);
  for (auto await = std::ranges::lower_bound(all, of, {}, &Await::step);
       await != all.end() && await->step == of; ++await) {
    Status status = Wait(frame, *await, services);
    const auto& instructions = frame.block().instructions;
    if (!status.ok())
      return frame.Explain(std::move(status), instructions[std::min(step, instructions.size() - 1)]);
  }
  return OkStatus();
}

Status RunStep(Frame& frame, std::size_t i, const StepRun& step, Scope& scope) {
  const Instruction& instruction = frame.block().instructions[i];
  frame.MakeOutputs(step);
  Scope& seen = frame.specialisation().steps[i].starts_blocks ? frame.ImportScope(scope) : scope;
  KernelRun run(frame.variables(), step.workspaces, &seen);
  Status status = step.kernel->Run(run);
  if (!status.ok()) [[unlikely]]  // a chain's error names the op
    return instruction.chain != nullptr ? status : frame.Explain(std::move(status), instruction);
  CopyLods(step.lod_copies, frame.variables());
  return status;
}

}  // namespace

Status RunSequential(Frame& frame, Scope& scope, const Services& services, const Cancellation& cancellation,
                     OpTimer* timer) {
  const std::vector<Step>& steps = frame.specialisation().steps;
  const bool watched = CheckNanInf();
  Nanoseconds begin = timer == nullptr ? Nanoseconds{0} : timer->Now();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Instruction& instruction = frame.block().instructions[i];
    if (cancellation.requested()) [[unlikely]] {
      return frame.Explain(Cancelled("E-run-cancelled", "the run was cancelled"), instruction);
    }
    // Also before a step that is left out: all ranks of a ring wait, and so start operations, at the same
    // steps.
    if (step.awaits) [[unlikely]]
      PENSTOCK_RETURN_IF_ERROR(AwaitBefore(frame, i, services));
    if (frame.LeavesOut(step)) [[unlikely]]
      continue;
    if (step.has_kernel && step.has_uncertain) [[unlikely]] {
      PENSTOCK_RETURN_IF_ERROR(CheckUncertain(frame, i));
    }
    // Inputs can differ from the plan: a shape inferred from an unknown one may be a guess (sequence_pad's
    // longest sequence), and a nested block or a variant may have produced another type.
    if (frame.IsAsPlanned(i)) {
      PENSTOCK_RETURN_IF_ERROR(RunStep(frame, i, frame.Planned(i), scope));
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(const StepRun variant, frame.Variant(i, services));
      PENSTOCK_RETURN_IF_ERROR(RunStep(frame, i, variant, scope));
    }
    if (timer != nullptr) [[unlikely]]
      begin = timer->Add(instruction.op->type(), begin, frame.block().block, instruction.position);
    // What is received early is checked after the fetch_barrier.
    if (watched && !roles::RecvView(*instruction.op).next_version()) [[unlikely]] {
      // A collective operation in progress may still write the outputs.
      if (services.rings != nullptr) PENSTOCK_RETURN_IF_ERROR(services.rings->AwaitAll());
      PENSTOCK_RETURN_IF_ERROR(RequireFinite(frame, instruction));
      if (timer != nullptr) begin = timer->Now();
    }
  }
  return AwaitBefore(frame, steps.size(), services);
}

}  // namespace penstock::exec
