#include "executor/pserver/memory/table_copy.h"

#include <cstring>
#include <utility>

#include "executor/protocol/row_shards.h"
#include "executor/table/row_copy.h"

namespace penstock::pserver {
namespace {

// For each row of the whole, the shard that has it.
using Order = std::vector<std::uint16_t>;

Order OrderOf(const std::vector<const std::vector<std::int64_t>*>& ids) {
  std::size_t count = 0;
  for (const auto* const of_shard : ids) count += of_shard->size();
  Order order;
  order.reserve(count);
  std::vector<std::size_t> next(ids.size(), 0);
  while (order.size() < count) {
    std::size_t least = ids.size();
    for (std::size_t shard = 0; shard < ids.size(); ++shard) {
      if (next[shard] == ids[shard]->size()) continue;
      if (least == ids.size() || (*ids[shard])[next[shard]] < (*ids[least])[next[least]]) least = shard;
    }
    ++next[least];
    order.push_back(static_cast<std::uint16_t>(least));
  }
  return order;
}

// Takes rows of the shards' tensors, and frees these.
Tensor Joined(const Order& order, std::vector<Tensor> shards) {
  Tensor whole(shards.front().dtype(), shards.front().shape().WithRows(static_cast<Dim>(order.size())));
  if (order.empty()) return whole;
  const std::size_t bytes = whole.bytes() / order.size();
  std::vector<const std::byte*> next;
  for (const Tensor& shard : shards) next.push_back(shard.bytes() == 0 ? nullptr : shard.raw());
  std::byte* to = whole.raw();
  for (const std::uint16_t shard : order) {
    std::memcpy(to, next[shard], bytes);
    next[shard] += bytes;
    to += bytes;
  }
  return whole;
}

template <typename Item, typename Take>
std::vector<Tensor> Each(std::vector<Item>& items, const Take& take) {
  std::vector<Tensor> taken;
  for (Item& item : items) taken.push_back(std::exchange(take(item), Tensor()));
  return taken;
}

}  // namespace

SelectedRows JoinRows(std::vector<SelectedRows> shards) {
  if (shards.size() == 1) return std::move(shards.front());
  std::vector<const std::vector<std::int64_t>*> ids;
  for (const SelectedRows& shard : shards) ids.push_back(&shard.rows);
  const Order order = OrderOf(ids);
  SelectedRows whole;
  whole.height = shards.front().height;
  whole.start = shards.front().start;
  whole.rows.reserve(order.size());
  std::vector<std::size_t> next(shards.size(), 0);
  for (const std::uint16_t shard : order) whole.rows.push_back(shards[shard].rows[next[shard]++]);
  whole.value = Joined(order, Each(shards, [](SelectedRows& shard) -> Tensor& { return shard.value; }));
  return whole;
}

void TableCopy::SortRows() {
  std::vector<Tensor*> states;
  for (std::size_t i = scalars; i < state.size(); ++i) states.push_back(&state[i].second);
  table::SortRows(rows, states);
  if (life) table::SortRows(life->headers, {});
}

std::size_t TableCopy::bytes() const {
  std::size_t all = rows.rows.size() * sizeof(std::int64_t) + rows.value.bytes();
  for (const auto& [name, tensor] : state) all += tensor.bytes();
  return all;
}

TableCopy JoinShards(std::vector<TableCopy> shards) {
  for (TableCopy& shard : shards) shard.SortRows();
  if (shards.size() == 1) return std::move(shards.front());
  std::vector<const std::vector<std::int64_t>*> ids;
  for (const TableCopy& shard : shards) ids.push_back(&shard.rows.rows);
  const Order order = OrderOf(ids);
  TableCopy whole = std::move(shards.front());
  const std::size_t columns = whole.state.size() - whole.scalars;
  for (std::size_t column = 0; column < columns; ++column) {
    Tensor& joined = whole.state[whole.scalars + column].second;
    std::vector<Tensor> parts = {std::move(joined)};
    for (std::size_t shard = 1; shard < shards.size(); ++shard)
      parts.push_back(std::exchange(shards[shard].state[shards[shard].scalars + column].second, Tensor()));
    joined = Joined(order, std::move(parts));
  }
  std::vector<SelectedRows> rows = {std::move(whole.rows)}, headers;
  if (whole.life) headers.push_back(std::move(whole.life->headers));
  for (std::size_t shard = 1; shard < shards.size(); ++shard) {
    rows.push_back(std::move(shards[shard].rows));
    if (whole.life) headers.push_back(std::move(shards[shard].life->headers));
  }
  for (std::size_t shard = 1; shard < shards.size(); ++shard) {
    whole.rows_all += shards[shard].rows_all;
    whole.life_all += shards[shard].life_all;
    if (whole.status.ok()) whole.status = shards[shard].status;
  }
  whole.rows = JoinRows(std::move(rows));
  if (whole.life) whole.life->headers = JoinRows(std::move(headers));
  return whole;
}

std::vector<SelectedRows> SplitRows(const SelectedRows& rows, std::uint32_t shards) {
  std::vector<SelectedRows> split(shards);
  for (const std::int64_t id : rows.rows) split[protocol::ShardOf(id, shards)].rows.push_back(id);
  std::vector<std::byte*> next;
  for (SelectedRows& shard : split) {
    shard.height = rows.height;
    shard.start = rows.start;
    shard.value =
        Tensor(rows.value.dtype(), rows.value.shape().WithRows(static_cast<Dim>(shard.rows.size())));
    next.push_back(shard.value.raw());
  }
  if (rows.rows.empty()) return split;
  const std::size_t bytes = rows.value.bytes() / rows.rows.size();
  const std::byte* from = rows.value.raw();
  for (const std::int64_t id : rows.rows) {
    std::byte*& to = next[protocol::ShardOf(id, shards)];
    std::memcpy(to, from, bytes);
    to += bytes;
    from += bytes;
  }
  return split;
}

}  // namespace penstock::pserver
