#include "executor/plan/block_uses.h"

#include <algorithm>

namespace penstock::exec {
namespace {

int OnlyArgument(const std::vector<Slot>& slots, const std::vector<std::vector<int>>& rows,
                 std::string_view wanted) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name.str() == wanted) return rows[i].size() == 1 ? rows[i][0] : -1;
  }
  return -1;
}

bool Names(const std::vector<std::vector<int>>& rows, int slot) {
  return std::ranges::any_of(
      rows, [slot](const std::vector<int>& row) { return std::ranges::find(row, slot) != row.end(); });
}

}  // namespace

BlockUses::BlockUses(const CompiledBlock& block)
    : block_(block),
      readers_(block.slots.size()),
      writers_(block.slots.size()),
      shared_(block.slots.size(), false),
      fetched_(block.slots.size(), false) {
  const auto note = [](std::vector<int>& users, int instruction) {
    if (users.empty() || users.back() != instruction) users.push_back(instruction);
  };
  for (int i = 0; i < size(); ++i) {
    EachIn(At(i).inputs, [&](int slot) { note(readers_[static_cast<std::size_t>(slot)], i); });
    EachIn(At(i).outputs, [&](int slot) { note(writers_[static_cast<std::size_t>(slot)], i); });
  }
  for (std::size_t s = 0; s < block.slots.size(); ++s) shared_[s] = block.slots[s].view_of >= 0;
  for (const int slot : block.imports) shared_[static_cast<std::size_t>(slot)] = true;
  for (const RowGroup& group : block.row_groups) shared_[static_cast<std::size_t>(group.whole)] = true;
  for (const int slot : block.fetches) fetched_[static_cast<std::size_t>(slot)] = true;
}

int BlockUses::Input(int instruction, std::string_view slot) const {
  return OnlyArgument(OpOf(instruction).inputs(), At(instruction).inputs, slot);
}

int BlockUses::Output(int instruction, std::string_view slot) const {
  return OnlyArgument(OpOf(instruction).outputs(), At(instruction).outputs, slot);
}

bool BlockUses::Reads(int instruction, int slot) const { return Names(At(instruction).inputs, slot); }

bool BlockUses::IsPrivate(int slot) const {
  if (slot < 0) return false;
  const auto s = static_cast<std::size_t>(slot);
  const SlotInfo& info = Info(slot);
  return info.home == Home::kFrame && !info.kept && !info.written_by_block && !shared_[s] && !fetched_[s] &&
         writers_[s].size() == 1;
}

bool BlockUses::IsWrittenBefore(int slot, int instruction) const {
  const std::vector<int>& writers = writers_[static_cast<std::size_t>(slot)];
  return Info(slot).home == Home::kFrame && !Info(slot).written_by_block && !writers.empty() &&
         writers.front() < instruction;
}

// Whether the order of the two instructions counts.
bool BlockUses::Conflict(int a, int b) const {
  if (At(a).starts_blocks || At(b).starts_blocks) return true;
  bool found = false;
  EachIn(At(a).outputs, [&](int slot) { found |= Names(At(b).inputs, slot) || Names(At(b).outputs, slot); });
  EachIn(At(a).inputs, [&](int slot) { found |= Names(At(b).outputs, slot); });
  return found;
}

bool BlockUses::CanMove(const std::vector<int>& members, int at,
                        const std::vector<std::vector<int>>& joined) const {
  const auto passes = [&](int member, int other) {
    return std::ranges::find(members, other) != members.end() || !Conflict(member, other);
  };
  for (const int member : members) {
    bool shared = false;
    EachArgument(member, [&](int slot) { shared |= shared_[static_cast<std::size_t>(slot)]; });
    if (shared) return false;
    for (int i = std::min(member, at) + 1; i < std::max(member, at); ++i) {
      if (!passes(member, i)) return false;
      for (const int other : joined[static_cast<std::size_t>(i)]) {
        if (!passes(member, other)) return false;
      }
    }
  }
  return true;
}

}  // namespace penstock::exec
