// Copies of a table sharded by id: of one shard, and of all of them together, as one shard would give it.
//
//   TableParts parts(2);
//   parts.of[0] = store->CopyTable(param, 0);  parts.of[1] = store->CopyTable(param, 1);
//   const TableCopy whole = JoinShards(std::move(parts.of));
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/checkpoint/fluid_files.h"
#include "executor/table/row_life.h"
#include "framework/tensor/variable.h"

namespace penstock::pserver {

using NamedTensors = checkpoint::NamedList;

// A table's rows, and what its updates keep beside them: the same rows of its states, and scalars.
struct TableCopy {
  SelectedRows rows;
  NamedTensors state;
  std::size_t scalars = 0;    // the first of them, which are not rows; of the first shard alone
  std::size_t constants = 0;  // the last of those
  std::optional<table::LifeCopy> life = {};  // for a checkpoint, if the table has a policy of rows
  // For a checkpoint: whether this one has only rows that changed after the copy before, and the ids of those
  // that are gone since then.
  bool has_changes = false;
  std::vector<std::int64_t> gone = {};
  // The rows that are stored, whether they are in the copy or not, and all of which `life` tells. Of a
  // portion: those that no other portion counts.
  Dim rows_all = 0, life_all = 0;
  Status status = {};  // of reading cold rows; an error: the copy is worth nothing

  bool no_life() const { return !life || (life->headers.rows.empty() && !life->clock.initialized()); }
  bool empty() const {
    return rows.rows.empty() && gone.empty() && scalars == 0 && rows_all == 0 && no_life() && status.ok();
  }
  std::size_t bytes() const;

  // Puts the rows in the order of ids; on any thread.
  void SortRows();
};

// Some of the rows of a shard, for a checkpoint, in no order.
struct CutPortion {
  TableCopy rows;
  bool is_last = false;  // of the shard
};

// Copies that are made on the queues of the shards; whoever brings `left` to 0 joins them.
struct TableParts {
  explicit TableParts(std::size_t shards) : of(shards), left(static_cast<int>(shards)) {}
  std::vector<TableCopy> of;
  std::atomic<int> left;
};

// The rows of all shards by ascending id.
TableCopy JoinShards(std::vector<TableCopy> shards);
// The same of rows that ascend in each shard.
SelectedRows JoinRows(std::vector<SelectedRows> shards);
// Rows, in their order, by shard (protocol::ShardOf).
std::vector<SelectedRows> SplitRows(const SelectedRows& rows, std::uint32_t shards);

}  // namespace penstock::pserver
