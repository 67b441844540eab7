#include "executor/plan/plan_text.h"

#include "executor/graph/explain.h"
#include "executor/graph/row_chain.h"
#include "framework/base/strings.h"
#include "framework/text/printer.h"

namespace penstock::exec {
namespace {

std::string PlaceText(const Specialisation& plan, const OutputSlot& output) {
  if (output.view >= 0) {
    const RowView& view = plan.views[static_cast<std::size_t>(output.view)];
    return StrCat("rows ", view.begin, " to ", view.end, " of ",
                  plan.block->slots[static_cast<std::size_t>(view.of)].name);
  }
  if (output.place < 0) return "in the scope";
  const Place& place = plan.places[static_cast<std::size_t>(output.place)];
  if (place.own_buffer) return StrCat("in its own buffer, ", place.bytes, " B");
  return StrCat("at ", place.offset, ", ", place.bytes, " B");
}

std::string AwaitText(const Specialisation& plan, const Await& await) {
  const auto name = [&] { return plan.block->slots[static_cast<std::size_t>(await.slot)].name; };
  switch (await.what) {
    case Await::For::kOperation:
      return await.operation.kind == Operation::Kind::kPulls
                 ? "waits for the parameters asked for"
                 : StrCat("waits for ring ", await.operation.ring);
    case Await::For::kCopied:
      return StrCat("waits for ", name(), " unless it arrives in place");
    case Await::For::kLeft:
      break;
  }
  return await.slot < 0 ? "waits for what the last run left on its way"
                        : StrCat("waits for ", name(), " if the last run left it on its way");
}

// What the run waits for before the step: "     waits for ring 0".
std::string AwaitsText(const Specialisation& plan, std::size_t step) {
  std::string text;
  for (const Await& await : plan.awaits) {
    if (await.step == static_cast<int>(step)) text += StrCat("     ", AwaitText(plan, await), "\n");
  }
  return text;
}

// The ops that an instruction runs by rows.
std::string ChainText(const RowChain& chain) {
  std::string text;
  const std::string dimensions = chain.dimensions == 1 ? "" : StrCat(" of ", chain.dimensions, " dimensions");
  for (const Instruction& member : chain.block.instructions)
    text += StrCat("     by rows", dimensions, ": ", PrintOp(*member.op), "\n");
  return text;
}

}  // namespace

std::string PlanText(const Specialisation& plan) {
  std::string text = StrCat("plan of block ", plan.block->block, ": ", plan.steps.size(), " steps, arena ",
                            plan.arena_bytes, " B\n");
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].awaits) text += AwaitsText(plan, i);
    text += StrCat(i, "  ", PrintOp(*plan.block->instructions[i].op),
                   !plan.steps[i].has_kernel ? "  late\n" : "\n");
    if (plan.block->instructions[i].chain != nullptr) text += ChainText(*plan.block->instructions[i].chain);
    for (const OutputSlot& output : plan.OutputsOf(i)) {
      text += StrCat("     ", plan.block->slots[static_cast<std::size_t>(output.slot)].name, " : ",
                     TypeText(plan.type(output.type)), " ", PlaceText(plan, output), "\n");
    }
  }
  return text + AwaitsText(plan, plan.steps.size());
}

}  // namespace penstock::exec
