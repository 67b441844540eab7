#include "executor/pserver/memory/policies/changed_rows.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

namespace penstock::pserver {

ChangedRows::ChangedRows(std::int64_t rows, int trainers)
    : rows_(rows), trainers_(static_cast<std::size_t>(trainers)) {
  for (Trainer& trainer : trainers_) trainer.noted.assign(static_cast<std::size_t>(rows + 63) / 64, 0);
}

void ChangedRows::Note(std::span<const std::int64_t> rows) {
  for (Trainer& trainer : trainers_) {
    for (const std::int64_t row : rows)
      trainer.noted[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
  }
}

void ChangedRows::NoteAll() {
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows_));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  Note(all);
}

std::vector<std::int64_t> ChangedRows::ListOf(const Bits& bits) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    for (std::uint64_t left = bits[i]; left != 0; left &= left - 1)
      rows.push_back(static_cast<std::int64_t>(i * 64) + std::countr_zero(left));
  }
  return rows;
}

std::vector<std::int64_t> ChangedRows::Take(int trainer, std::uint64_t version) {
  Trainer& asks = trainers_[static_cast<std::size_t>(trainer)];
  std::vector<std::int64_t> noted = ListOf(asks.noted);
  if (version < asks.told_before) {
    std::vector<std::int64_t> both;
    std::set_union(noted.begin(), noted.end(), asks.told.begin(), asks.told.end(), std::back_inserter(both));
    return both;
  }
  asks.told_before = version + 1;
  std::fill(asks.noted.begin(), asks.noted.end(), 0);
  asks.told = std::move(noted);
  return asks.told;
}

}  // namespace penstock::pserver
