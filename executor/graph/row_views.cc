#include "executor/graph/row_views.h"

#include <algorithm>

namespace penstock::exec {
namespace {

// The instructions that name a slot, in order; an instruction that names it twice is listed twice.
struct Uses {
  std::vector<int> reads, writes;
  bool exposed = false;  // fetched, or named by a nested block
};

bool AnyWithin(const std::vector<int>& instructions, int begin, int end) {
  const auto at = std::ranges::lower_bound(instructions, begin);
  return at != instructions.end() && *at < end;
}

bool OnlyAt(const std::vector<int>& instructions, int at) {
  return instructions.size() == 1 && instructions.front() == at;
}

class Finder {
 public:
  explicit Finder(CompiledBlock& block) : block_(block), uses_(block.slots.size()) {
    for (std::size_t i = 0; i < block.instructions.size(); ++i) {
      const Instruction& instruction = block.instructions[i];
      const int at = static_cast<int>(i);
      Note(instruction.inputs, &Uses::reads, at);
      Note(instruction.outputs, &Uses::writes, at);
      if (instruction.starts_blocks) block_starts_.push_back(at);
    }
    for (const int slot : block.fetches) uses(slot).exposed = true;
    for (const int slot : block.imports) uses(slot).exposed = true;
  }

  void Look(int at) {
    const Instruction& instruction = block_.instructions[static_cast<std::size_t>(at)];
    const RowParts* rows = instruction.def->row_parts(*instruction.op);
    if (rows == nullptr) return;
    const bool cuts = instruction.def->FindInput(rows->whole) != nullptr;
    const std::vector<int> whole = Arguments(instruction, rows->whole, cuts);
    RowGroup group{at, -1, Arguments(instruction, rows->parts, !cuts)};
    if (whole.size() != 1 || whole[0] < 0 || std::ranges::count(group.parts, -1) > 0) return;
    group.whole = whole[0];
    if (cuts ? !MayBeCut(group) : !MayBeJoined(group)) return;
    bool any = false;
    for (const int part : group.parts) {
      if (cuts ? !IsCutPart(group, part) : !IsJoinedPart(group, part)) continue;
      slot(part).view_of = group.whole;
      any = true;
      if (cuts) KeepFor(slot(group.whole), slot(part));
    }
    if (any) block_.row_groups.push_back(std::move(group));
  }

 private:
  SlotInfo& slot(int index) { return block_.slots[static_cast<std::size_t>(index)]; }
  Uses& uses(int slot) { return uses_[static_cast<std::size_t>(slot)]; }
  bool MayHoldArguments(int instruction) const {
    return block_.instructions[static_cast<std::size_t>(instruction)].def->effects().MayHoldArguments();
  }

  void Note(const std::vector<std::vector<int>>& arguments, std::vector<int> Uses::*list, int at) {
    for (const auto& row : arguments) {
      for (const int named : row) {
        if (named >= 0) (uses(named).*list).push_back(at);
      }
    }
  }

  static std::vector<int> Arguments(const Instruction& instruction, const std::string& name, bool input) {
    const std::vector<Slot>& slots = input ? instruction.op->inputs() : instruction.op->outputs();
    const auto found = std::ranges::find_if(slots, [&](const Slot& slot) { return slot.name == name; });
    if (found == slots.end()) return {};
    const auto& arguments = input ? instruction.inputs : instruction.outputs;
    return arguments[static_cast<std::size_t>(found - slots.begin())];
  }

  bool IsFreeTemporary(int index) {
    return slot(index).home == Home::kFrame && slot(index).view_of < 0 && !uses(index).exposed;
  }

  bool MayBeCut(const RowGroup& group) {
    const std::vector<int>& writes = uses(group.whole).writes;
    return IsFreeTemporary(group.whole) && !writes.empty() && writes.back() < group.instruction;
  }

  bool IsCutPart(const RowGroup& group, int part) {
    return IsFreeTemporary(part) && OnlyAt(uses(part).writes, group.instruction);
  }

  // Extends the whole's life to that of its view, and keeps the whole if the view is kept.
  static void KeepFor(SlotInfo& whole, const SlotInfo& view) {
    whole.kept |= view.kept;
    whole.last_use = std::max(whole.last_use, view.last_use);
  }

  bool MayBeJoined(const RowGroup& group) {
    return slot(group.whole).home == Home::kScope &&
           std::ranges::none_of(uses(group.whole).reads,
                                [this](int reader) { return MayHoldArguments(reader); });
  }

  bool IsJoinedPart(const RowGroup& group, int part) {
    const Uses& of_part = uses(part);
    const Uses& of_whole = uses(group.whole);
    if (!IsFreeTemporary(part) || !OnlyAt(of_part.reads, group.instruction)) return false;
    if (of_part.writes.empty() || of_part.writes.back() >= group.instruction) return false;
    if (!std::ranges::all_of(of_part.writes, [this](int writer) { return MayHoldArguments(writer); }))
      return false;
    const int first = of_part.writes.front();
    return !AnyWithin(of_whole.reads, first, group.instruction) &&
           !AnyWithin(of_whole.writes, first, group.instruction) &&
           !AnyWithin(block_starts_, first, group.instruction);
  }

  CompiledBlock& block_;
  std::vector<Uses> uses_;  // by slot
  std::vector<int> block_starts_;
};

bool HasRowParts(const Instruction& instruction) {
  return instruction.def->row_parts(*instruction.op) != nullptr;
}

}  // namespace

void AddRowViews(CompiledBlock& block) {
  if (std::ranges::none_of(block.instructions, HasRowParts)) return;
  Finder finder(block);
  for (std::size_t i = 0; i < block.instructions.size(); ++i) finder.Look(static_cast<int>(i));
}

}  // namespace penstock::exec
