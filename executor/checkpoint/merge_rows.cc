#include "executor/checkpoint/merge_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

namespace penstock::checkpoint {
namespace {

std::size_t RowBytesOf(const Tensor& rows) {
  return static_cast<std::size_t>(rows.shape().RowWidth()) * SizeOf(rows.dtype());
}

void CopyOneRow(const Tensor& from, std::size_t at, Tensor& to, std::size_t to_at) {
  const std::size_t bytes = RowBytesOf(to);
  std::memcpy(to.raw() + to_at * bytes, from.raw() + at * bytes, bytes);
}

}  // namespace

SelectedRows MergeRows(const std::vector<SelectedRows>& from) {
  struct At {
    std::int64_t id;
    std::size_t from, row;
  };
  std::vector<At> order;
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t row = 0; row < from[i].rows.size(); ++row) order.push_back({from[i].rows[row], i, row});
  }
  std::ranges::stable_sort(order, {}, &At::id);
  SelectedRows all{.rows = {}, .height = from.front().height, .value = {}};
  all.value.Reset(from.front().value.dtype(),
                  from.front().value.shape().WithRows(static_cast<Dim>(order.size())));
  for (std::size_t i = 0; i < order.size(); ++i) {
    all.rows.push_back(order[i].id);
    CopyOneRow(from[order[i].from].value, order[i].row, all.value, i);
  }
  return all;
}

void SavedRows::Add(std::size_t step, SelectedRows rows) {
  const auto portion = static_cast<std::uint32_t>(portions_.size());
  order_.reserve(order_.size() + rows.rows.size());
  for (std::size_t row = 0; row < rows.rows.size(); ++row)
    order_.push_back({rows.rows[row], static_cast<std::uint32_t>(step), portion, row});
  portions_.push_back(std::move(rows));
}

void SavedRows::Remove(std::size_t step, std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) order_.push_back({id, static_cast<std::uint32_t>(step), kGone, 0});
}

std::optional<SelectedRows> SavedRows::Take() {
  if (portions_.empty()) return std::nullopt;
  const SelectedRows& first = portions_.front();
  for (const SelectedRows& portion : portions_) {
    if (portion.value.dtype() != first.value.dtype() ||
        portion.value.shape().WithRows(0) != first.value.shape().WithRows(0))
      return std::nullopt;
  }
  // Of each id, what counts is last: in the last step a row, or that it is gone.
  const auto key = [](const At& at) { return std::tuple(at.id, at.step, at.portion != kGone); };
  const auto before = [&](const At& a, const At& b) { return key(a) < key(b); };
  const bool sorted = std::ranges::is_sorted(order_, before);
  if (!sorted) std::ranges::sort(order_, before);
  std::vector<At> kept;
  kept.reserve(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const bool is_last = i + 1 == order_.size() || order_[i + 1].id != order_[i].id;
    const bool twice = !is_last && order_[i].portion != kGone && key(order_[i]) == key(order_[i + 1]);
    if (twice) return std::nullopt;
    if (is_last && order_[i].portion != kGone) kept.push_back(order_[i]);
  }
  if (sorted && portions_.size() == 1 && kept.size() == first.rows.size())
    return std::move(portions_.front());
  SelectedRows all{.rows = {}, .height = first.height, .value = {}};
  all.value = Tensor(first.value.dtype(), first.value.shape().WithRows(static_cast<Dim>(kept.size())));
  all.rows.reserve(kept.size());
  for (const At& at : kept) {
    CopyOneRow(portions_[at.portion].value, at.row, all.value, all.rows.size());
    all.rows.push_back(at.id);
  }
  portions_.clear();
  order_.clear();
  return all;
}

}  // namespace penstock::checkpoint
