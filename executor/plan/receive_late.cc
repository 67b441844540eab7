#include "executor/plan/receive_late.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/graph/awaits.h"
#include "executor/plan/step_ends.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

const SlotInfo& At(const CompiledBlock& block, int slot) {
  return block.slots[static_cast<std::size_t>(slot)];
}

// Whether the block sends gradients. What it also receives under the same name is an initial value.
bool SendsGradients(const CompiledBlock& block) {
  std::set<std::string_view> received;
  for (const Instruction& instruction : block.instructions) {
    if (roles::CommOf(*instruction.op) != roles::Comm::kRecv) continue;
    const roles::Names names = roles::RecvView(*instruction.op).variables();
    received.insert(names.begin(), names.end());
  }
  return std::ranges::any_of(block.instructions, [&](const Instruction& instruction) {
    if (roles::CommOf(*instruction.op) != roles::Comm::kSend) return false;
    const roles::Names names = roles::SendView(*instruction.op).variables();
    return std::ranges::any_of(names, [&](const std::string& name) { return !received.contains(name); });
  });
}

// The fetch_barrier of the block's step, or of a startup program; nullopt: none, or there are others.
std::optional<int> FindFetchBarrier(const CompiledBlock& block) {
  if (const std::optional<StepEnds> step = FindStep(block)) return step->fetch_barrier;
  std::optional<int> found;
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const roles::Comm comm = roles::CommOf(*block.instructions[i].op);
    if (comm == roles::Comm::kSendBarrier) return std::nullopt;
    if (comm != roles::Comm::kFetchBarrier) continue;
    if (found) return std::nullopt;
    found = static_cast<int>(i);
  }
  return SendsGradients(block) ? std::nullopt : found;
}

// The slots that the recvs before the fetch_barrier write, and those whose rows these are. Returns nullopt if
// a recv stands elsewhere, or receives something that does not outlive the run.
std::optional<std::set<int>> Received(const CompiledBlock& block, int fetch_barrier) {
  std::set<int> received;
  for (int i = 0; i < static_cast<int>(block.instructions.size()); ++i) {
    const Instruction& instruction = block.instructions[static_cast<std::size_t>(i)];
    if (roles::CommOf(*instruction.op) != roles::Comm::kRecv) continue;
    const roles::RecvView recv(*instruction.op);
    if (i > fetch_barrier || recv.by_communicator() || recv.idle()) return std::nullopt;
    for (const auto& args : instruction.outputs) {
      for (const int slot : args) {
        if (slot < 0) continue;
        const int whole = At(block, slot).view_of >= 0 ? At(block, slot).view_of : slot;
        if (At(block, whole).home != Home::kScope) return std::nullopt;
        received.insert({slot, whole});
      }
    }
  }
  return received;
}

// Whether the instruction joins rows that are views of its output.
bool JoinsInPlace(const CompiledBlock& block, int instruction) {
  return std::ranges::any_of(block.row_groups, [&](const RowGroup& group) {
    return group.instruction == instruction && At(block, group.whole).home == Home::kScope &&
           std::ranges::all_of(group.parts, [&](int part) { return At(block, part).view_of == group.whole; });
  });
}

bool NamesAny(const Instruction& instruction, const std::set<int>& slots) {
  const auto names = [&](const std::vector<std::vector<int>>& arguments) {
    return std::ranges::any_of(arguments, [&](const std::vector<int>& args) {
      return std::ranges::any_of(args, [&](int slot) { return slots.contains(slot); });
    });
  };
  return names(instruction.inputs) || names(instruction.outputs);
}

bool MayArriveLate(const CompiledBlock& block, int fetch_barrier) {
  const std::optional<std::set<int>> received = Received(block, fetch_barrier);
  if (!received || received->empty()) return false;
  if (std::ranges::any_of(block.fetches, [&](int slot) { return received->contains(slot); })) return false;
  for (int i = fetch_barrier + 1; i < static_cast<int>(block.instructions.size()); ++i) {
    const Instruction& instruction = block.instructions[static_cast<std::size_t>(i)];
    if (JoinsInPlace(block, i)) continue;
    const bool takes_part = instruction.def->effects().Has(Effect::kStep);
    if (takes_part || FindsByName(instruction) || NamesAny(instruction, *received)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const CompiledBlock> ReceiveLate(std::shared_ptr<const CompiledBlock> block) {
  if (!block->effects.Has(Effect::kStep) || block->use != BlockUse::kMain) return block;
  const std::optional<int> fetch_barrier = FindFetchBarrier(*block);
  if (!fetch_barrier || !MayArriveLate(*block, *fetch_barrier)) return block;
  auto out = std::make_shared<CompiledBlock>(*block);
  OpRef& barrier = out->instructions[static_cast<std::size_t>(*fetch_barrier)].op;
  Op op = *barrier;
  roles::BarrierView::LeavePulls(op);
  barrier = std::make_shared<const Op>(std::move(op));
  return out;
}

}  // namespace penstock::exec
