#include "executor/pserver/machine/row_ids.h"

#include <algorithm>

namespace penstock::pserver {

RowIds RowIds::Of(const Payload& payload) {
  RowIds ids;
  ids.bytes_ = payload.size();
  const std::size_t count = payload.size() / sizeof(std::int64_t);
  if (count == 0) return ids;
  auto numbers = std::make_shared<std::vector<std::int64_t>>(count);
  payload.Part(0, count * sizeof(std::int64_t)).CopyTo(reinterpret_cast<std::byte*>(numbers->data()));
  const auto [lowest, highest] = std::ranges::minmax(*numbers);
  ids.lowest_ = lowest;
  ids.highest_ = highest;
  ids.numbers_ = std::move(numbers);
  return ids;
}

std::optional<std::int64_t> RowIds::Outside(std::int64_t rows) const {
  if (numbers_ == nullptr || (lowest_ >= 0 && highest_ < rows)) return std::nullopt;
  return *std::ranges::find_if(*numbers_, [=](std::int64_t id) { return id < 0 || id >= rows; });
}

}  // namespace penstock::pserver
