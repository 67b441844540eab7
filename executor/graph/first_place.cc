#include "executor/graph/first_place.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace penstock::exec {
namespace {

template <typename Visit>
void ForEachSlot(const std::vector<std::vector<int>>& arguments, const Visit& visit) {
  for (const std::vector<int>& row : arguments) {
    for (const int slot : row) {
      if (slot >= 0) visit(static_cast<std::size_t>(slot));
    }
  }
}

bool MayBeMarked(const Instruction& instruction) {
  return !instruction.of_first_place && !instruction.starts_blocks &&
         !instruction.def->effects().AreOutside();
}

bool AnyMarked(const CompiledBlock& block) {
  return std::ranges::any_of(block.instructions, &Instruction::of_first_place);
}

// Marks what reads the results of marked instructions.
void MarkForward(CompiledBlock& block) {
  std::vector<bool> only_first(block.slots.size(), false);  // by slot: only the first place has its value
  for (Instruction& instruction : block.instructions) {
    if (MayBeMarked(instruction)) {
      ForEachSlot(instruction.inputs, [&](std::size_t slot) {
        if (only_first[slot]) instruction.of_first_place = true;
      });
    }
    ForEachSlot(instruction.outputs, [&](std::size_t slot) {
      only_first[slot] = instruction.of_first_place && block.slots[slot].home == Home::kFrame;
    });
  }
}

enum class ReadBy : std::uint8_t { kNone, kFirstPlace, kEveryPlace };

// Marks what computes temporaries for marked instructions alone.
void MarkBackward(CompiledBlock& block) {
  std::vector<ReadBy> read(block.slots.size(), ReadBy::kNone);  // by slot: by the instructions that follow
  for (std::size_t i = block.instructions.size(); i-- > 0;) {
    Instruction& instruction = block.instructions[i];
    bool serves = false, serves_others = false;
    ForEachSlot(instruction.outputs, [&](std::size_t slot) {
      const SlotInfo& info = block.slots[slot];
      serves |= read[slot] == ReadBy::kFirstPlace;
      serves_others |= read[slot] == ReadBy::kEveryPlace || info.home != Home::kFrame || info.kept;
    });
    if (MayBeMarked(instruction) && serves && !serves_others) instruction.of_first_place = true;
    ForEachSlot(instruction.outputs, [&](std::size_t slot) { read[slot] = ReadBy::kNone; });
    const ReadBy reader = instruction.of_first_place ? ReadBy::kFirstPlace : ReadBy::kEveryPlace;
    ForEachSlot(instruction.inputs, [&](std::size_t slot) { read[slot] = std::max(read[slot], reader); });
  }
}

}  // namespace

void MarkOfFirstPlace(CompiledBlock& block) {
  if (!AnyMarked(block)) return;
  MarkForward(block);
  MarkBackward(block);
}

std::shared_ptr<const CompiledBlock> MarkedOfFirstPlace(std::shared_ptr<const CompiledBlock> block) {
  if (!AnyMarked(*block)) return block;
  auto marked = std::make_shared<CompiledBlock>(*block);
  MarkOfFirstPlace(*marked);
  return marked;
}

std::vector<int> FetchesOfLaterPlaces(const CompiledBlock& block) {
  std::vector<bool> by_first(block.slots.size(), false), by_every(block.slots.size(), false);
  for (const Instruction& instruction : block.instructions) {
    std::vector<bool>& written = instruction.of_first_place ? by_first : by_every;
    ForEachSlot(instruction.outputs, [&](std::size_t slot) { written[slot] = true; });
  }
  std::vector<int> positions;
  for (std::size_t i = 0; i < block.fetches.size(); ++i) {
    const auto slot = static_cast<std::size_t>(block.fetches[i]);
    const bool fed = block.slots[slot].home == Home::kFeed;
    if (fed || by_every[slot] || !by_first[slot]) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

}  // namespace penstock::exec
