#include "executor/dataset/records_edit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "executor/dataset/sequence.h"

namespace penstock::dataset {
namespace {

// The numbers of each slot of a record, as bytes.
std::vector<std::string_view> NumbersOf(const Format& format, const RecordView& record) {
  std::vector<std::string_view> numbers;
  const std::byte* at = record.numbers(format.slots.size());
  for (std::size_t i = 0; i < format.slots.size(); ++i) {
    const Slot& slot = format.slots[i];
    const std::size_t bytes = slot.used ? record.count(i) * RecordView::NumberBytes(slot) : 0;
    numbers.emplace_back(reinterpret_cast<const char*>(at), bytes);
    at += bytes;
  }
  return numbers;
}

// The bytes of a record with these numbers.
std::string MakeRecord(const Format& format, const std::vector<std::string_view>& numbers,
                       std::string_view id) {
  std::string record(RecordView::HeadBytes(format.slots.size()), '\0');
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    PutWord(record, 2 + i, numbers[i].size() / RecordView::NumberBytes(format.slots[i]));
    record += numbers[i];
  }
  record += id;
  PutWord(record, 0, record.size());
  PutWord(record, 1, id.size());
  return record;
}

bool IsZero(const Slot& slot, std::string_view numbers) {
  if (!slot.is_float) return std::all_of(numbers.begin(), numbers.end(), [](char c) { return c == 0; });
  for (std::size_t at = 0; at < numbers.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, numbers.data() + at, sizeof(value));
    if (!(std::abs(value) < kFluidsZero)) return false;
  }
  return true;
}

// Adds the numbers of `record` to those of the instances of its id before it. Returns the slot in which both
// have numbers, or null.
const Slot* MergeInto(const Format& format, const RecordView& record, std::vector<std::string_view>& merged) {
  const std::vector<std::string_view> numbers = NumbersOf(format, record);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Slot& slot = format.slots[i];
    if (numbers[i].empty() || (slot.dense && IsZero(slot, numbers[i]))) continue;
    const bool taken = !merged[i].empty() && !(slot.dense && IsZero(slot, merged[i]));
    if (taken) return &slot;
    merged[i] = numbers[i];
  }
  return nullptr;
}

}  // namespace

Records ShuffleSlots(const Format& format, const Records& records, const std::set<std::string>& slots,
                     std::size_t candidates, std::uint64_t seed) {
  Sequence random(seed);
  std::vector<std::size_t> sample;  // instances
  Records out;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (sample.size() < candidates) {
      sample.push_back(r);
    } else if (const std::uint64_t at = random.Next() % (r + 1); at < candidates) {
      sample[static_cast<std::size_t>(at)] = r;
    }
    const std::size_t other = sample[static_cast<std::size_t>(random.Next() % sample.size())];
    std::vector<std::string_view> numbers = NumbersOf(format, records[r]);
    const std::vector<std::string_view> others = NumbersOf(format, records[other]);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (slots.contains(format.slots[i].name)) numbers[i] = others[i];
    }
    out.Add(MakeRecord(format, numbers, records[r].id()));
  }
  return out;
}

Records MergeById(const Format& format, const Records& records, std::size_t size,
                  std::vector<Dropped>& dropped) {
  std::vector<std::size_t> order(records.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return records[a].id() < records[b].id(); });
  Records out;
  for (std::size_t begin = 0; begin < order.size();) {
    const std::string_view id = records[order[begin]].id();
    std::size_t end = begin;
    while (end < order.size() && records[order[end]].id() == id) ++end;
    const std::size_t count = end - begin;
    if (size > 0 && count != size) {
      dropped.push_back({.id = std::string(id), .instances = count, .slot = {}});
    } else {
      std::vector<std::string_view> merged = NumbersOf(format, records[order[begin]]);
      const Slot* conflict = nullptr;
      for (std::size_t i = begin + 1; i < end && conflict == nullptr; ++i) {
        conflict = MergeInto(format, records[order[i]], merged);
      }
      if (conflict != nullptr) {
        dropped.push_back({.id = std::string(id), .instances = count, .slot = conflict->name});
      } else {
        out.Add(MakeRecord(format, merged, id));
      }
    }
    begin = end;
  }
  return out;
}

}  // namespace penstock::dataset
