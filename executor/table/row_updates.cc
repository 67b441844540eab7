// An update of rows that are kept together.
#include <algorithm>
#include <array>

#include "executor/table/row_table.h"

namespace penstock::table {
namespace {

constexpr std::size_t kRowsAtATime = 64;  // are fetched while those before them are updated

}  // namespace

// Lists each row once, with the sum of its values. The sum is made where its first values are.
template <typename T>
void RowTable::Merge(std::span<SelectedRows* const> gradients) {
  const std::uint64_t version = version_ + 1;
  const auto width = static_cast<std::size_t>(columns_.front().width());
  merged_.clear();
  for (SelectedRows* const gradient : gradients) {
    if (gradient->rows.empty()) continue;
    T* const values = gradient->value.Data<T>();
    const auto add = [&](std::size_t i, Row row) {
      T* const from = values + i * width;
      RowHeader& header = *row.header;
      if (header.version != version) {
        header.version = version;
        ++header.count;
        header.entry = static_cast<std::uint32_t>(merged_.size());
        merged_.push_back({row.at(0), reinterpret_cast<std::byte*>(from)});
        return;
      }
      T* const sum = reinterpret_cast<T*>(merged_[header.entry].gradient);
      for (std::size_t j = 0; j < width; ++j) sum[j] += from[j];
    };
    shard_->Require(gradient->rows, add, [&](Row row) { MakeRow(row); });
  }
}

void RowTable::Update(const Step& step) {
  const bool is_float = columns_.front().values.dtype() == DType::kFp32;
  is_float ? Merge<float>(step.gradients) : Merge<double>(step.gradients);
  ++version_;
  std::vector<std::size_t> offsets;
  for (const std::size_t column : step.columns) offsets.push_back(shard_->offsets()[column]);
  const RowStep common = {
      .columns = offsets, .width = columns_.front().width(), .rate = step.rate, .whole = step.whole};
  const auto scale = [&](std::span<const RowOfStep> rows, auto factor) {
    using T = decltype(factor);
    for (const RowOfStep& row : rows) {
      T* const values = reinterpret_cast<T*>(row.gradient);
      for (Dim j = 0; j < common.width; ++j) values[j] = factor * values[j] + T{0};
    }
  };
  const std::span<const RowOfStep> all = merged_;
  const auto part = [&](std::size_t begin) {
    return all.subspan(std::min(begin, all.size()),
                       std::min(kRowsAtATime, all.size() - std::min(begin, all.size())));
  };
  for (std::size_t begin = 0; begin < all.size(); begin += kRowsAtATime) {
    for (const RowOfStep& next : part(begin + kRowsAtATime)) shard_->Prefetch(next.row);
    if (step.factor && is_float) scale(part(begin), *step.factor);
    if (step.factor && !is_float) scale(part(begin), static_cast<double>(*step.factor));
    step.rule.Update(common, part(begin));
  }
  step.rule.Advance(common);
}

}  // namespace penstock::table
