// Tables whose rows enter, are evicted, and are moved to disk by a policy.
#include <cstring>
#include <numeric>
#include <utility>

#include "executor/table/row_table.h"

namespace penstock::table {

void RowTable::BeginLife(const RowPolicy& policy) {
  const std::size_t columns =
      std::accumulate(columns_.begin(), columns_.end(), std::size_t{0},
                      [](std::size_t sum, const Column& column) { return sum + column.row_bytes(); });
  life_ = std::make_unique<RowLife>(
      policy, layout_ == Layout::kRows ? shard_->row_bytes() : shard_->row_bytes() + columns);
  for (Slot slot = 0; slot < shard_->size(); ++slot) life_->Load(*shard_->At(slot).header);
}

Status RowTable::BeginCold(const RowPolicy& policy, const ColdFiles& cold) {
  const std::string& name = columns_.front().name;
  if (layout_ != Layout::kRows) {
    return Unimplemented("E-server-cold", "rows of ", name, " cannot be kept in ", policy.cold_dir,
                         ": an update of the table may change any of its rows")
        .With(
            "leave cold_dir out, or use an optimizer that updates rows one by one, without a clip or a "
            "regularizer");
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      cold_, ColdTier::Make({.disk = cold.disk, .folder = policy.cold_dir, .name = cold.name},
                            static_cast<std::uint64_t>(policy.budget_mb) << 20, shard_->row_bytes()));
  return OkStatus();
}

Status RowTable::RestoreLife(const LifeCopy& copy) {
  const SelectedRows& headers = copy.headers;
  const auto count = static_cast<Dim>(headers.rows.size());
  const auto is_int64 = [](const Tensor& tensor, const Shape& shape) {
    return tensor.initialized() && tensor.dtype() == DType::kInt64 && tensor.shape() == shape;
  };
  if (!is_int64(headers.value, {count, LifeCopy::kFields}) || !is_int64(copy.clock, {2}) ||
      copy.clock.Data<std::int64_t>()[0] < 0 || copy.clock.Data<std::int64_t>()[1] < 1) {
    return InvalidArgument("E-server-shape", "the policy of rows of ", columns_.front().name,
                           " is kept in another form: ", headers.value.shape(), " for ", count, " ids");
  }
  for (Dim i = 0; i < count; ++i) {
    const std::int64_t id = headers.rows[static_cast<std::size_t>(i)];
    const bool is_candidate = headers.value.Data<std::int64_t>()[i * LifeCopy::kFields] != 0;
    if (is_candidate || shard_->Find(id)) continue;
    return InvalidArgument("E-server-shape", "the policy of rows of ", columns_.front().name, " has row ", id,
                           ", which the table has not");
  }
  life_->Restore(*shard_, copy);
  version_ = static_cast<std::uint64_t>(copy.clock.Data<std::int64_t>()[0]);
  return OkStatus();
}

void RowTable::Admit(std::span<SelectedRows* const> gradients) {
  if (life_ == nullptr) return;
  life_->Admit(*shard_, gradients, version_ + 1, [this](Row row) {
    MakeRow(row);
    row.header->version = version_;  // a new row has missed nothing
  });
}

void RowTable::Touch(std::span<const std::int64_t> ids) {
  if (life_ == nullptr) return;
  const std::uint64_t version = version_ + 1;
  shard_->Visit(ids, [&](std::size_t, Row row) {
    if (row.header->version == version) return;
    life_->Touch(*row.header, version);
    row.header->version = version;
    ++row.header->count;
  });
}

void RowTable::EndUpdate() {
  if (life_ == nullptr) return;
  ++version_;
  life_->EndUpdate(*shard_, version_, OnMove());
}

// One after the other: a sweep of evicted rows continues at a slot, which must not be behind the last row.
bool RowTable::Sweep() {
  if (life_ != nullptr && life_->sweeping()) {
    if (life_->Sweep(*shard_, OnMove())) return true;
    Shrink();
    return sweeping();
  }
  return cold_ != nullptr && cold_->Sweep(*shard_, version_, life_.get());
}

Shard::Moved RowTable::OnMove() {
  if (layout_ == Layout::kRows) return {};
  return [this](Slot from, Slot to) { Moved(from, to); };
}

// The unused position gets the value that such positions have.
void RowTable::Moved(Slot from, Slot to) {
  for (Column& column : columns_) {
    const std::size_t bytes = column.row_bytes();
    std::byte* const values = column.values.raw();
    if (from != to) std::memcpy(values + to * bytes, values + from * bytes, bytes);
    column.MakeRow(0, values + from * bytes);
  }
  if (cut_notes_ == nullptr) return;
  std::vector<std::uint64_t>& hashes = cut_notes_->hashes;
  const std::uint64_t moved = from < hashes.size() ? std::exchange(hashes[from], 0) : 0;
  if (to < hashes.size() && to != from) hashes[to] = moved;
}

// Columns of which half is unused become smaller.
void RowTable::Shrink() {
  if (layout_ == Layout::kRows) return;
  Dim capacity = capacity_;
  while (capacity > kCapacityLeast && row_count() <= capacity / 2) capacity /= 2;
  if (capacity != capacity_) SetCapacity(capacity, row_count());
}

}  // namespace penstock::table
