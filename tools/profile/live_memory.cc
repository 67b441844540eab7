#include "tools/profile/live_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace penstock::profile {
namespace {

std::size_t BytesOfType(const TensorDesc& info) {
  return exec::IsKnownTensor(info) ? static_cast<std::size_t>(info.shape.Count()) * SizeOf(info.dtype) : 0;
}

struct Placed {
  LiveValue value;
  std::size_t offset = 0;
};

// The temporaries in the arena, by their first instruction.
std::vector<Placed> ValuesInArena(const exec::Specialisation& plan) {
  std::vector<Placed> values;
  for (const exec::Place& place : plan.places) {
    if (place.own_buffer) continue;
    const exec::SlotInfo& slot = plan.block->slots[static_cast<std::size_t>(place.slot)];
    values.push_back({{place.slot, place.bytes, slot.first_write, slot.last_use}, place.offset});
  }
  std::ranges::stable_sort(values, {}, [](const Placed& one) { return one.value.first; });
  return values;
}

std::map<std::size_t, LiveValue> LiveAt(int instruction, const std::vector<Placed>& values) {
  std::map<std::size_t, LiveValue> live;
  for (const auto& [value, offset] : values) {
    if (value.first <= instruction && instruction <= value.last) live[offset] = value;
  }
  return live;
}

}  // namespace

LiveMemory LiveMemoryOf(const exec::Specialisation& plan) {
  LiveMemory memory;
  for (const exec::SlotInfo& slot : plan.block->slots) {
    if (slot.home == exec::Home::kScope) memory.persistable += BytesOfType(DescOf(*slot.var));
  }
  for (std::size_t k = 0; k < plan.key.size(); ++k) {
    const auto slot = static_cast<std::size_t>(plan.block->key[k]);
    if (plan.block->slots[slot].home == exec::Home::kFeed) memory.fed += BytesOfType(plan.key[k]);
  }
  for (const exec::Place& place : plan.places) memory.own_buffers += place.own_buffer ? place.bytes : 0;
  memory.workspace = plan.workspace_bytes;
  memory.arena = plan.arena_bytes;

  const std::vector<Placed> values = ValuesInArena(plan);
  std::map<std::size_t, LiveValue> live;  // by offset: one that takes over the memory of another replaces it
  std::size_t next = 0, in_use = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const int at = static_cast<int>(i);
    for (; next < values.size() && values[next].value.first <= at; ++next) {
      LiveValue& place = live[values[next].offset];
      in_use += values[next].value.bytes - place.bytes;
      place = values[next].value;
    }
    memory.live.push_back(in_use);
    if (in_use > memory.live[memory.peak]) memory.peak = i;
    std::erase_if(live, [&](const auto& one) {
      if (one.second.last > at) return false;
      in_use -= one.second.bytes;
      return true;
    });
  }
  for (const auto& [offset, value] : LiveAt(static_cast<int>(memory.peak), values))
    memory.at_peak.push_back(value);
  std::ranges::stable_sort(memory.at_peak, {}, [](const LiveValue& value) {
    return std::make_tuple(-static_cast<std::int64_t>(value.bytes), value.first);
  });
  return memory;
}

}  // namespace penstock::profile
