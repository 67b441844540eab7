// Writes the rows of a server's table into a checkpoint, in portions as a pserver does.
#pragma once

#include "executor/pserver/checkpoints.h"
#include "tests/unit/pserver/table_server.h"

namespace penstock::test {

// Returns the number of rows that were written. `changes`: those that have changed since the last call.
inline std::size_t WriteRows(TableServer& server, pserver::Checkpoints& checkpoints, std::uint64_t step,
                             bool changes = false) {
  std::size_t rows = 0;
  for (int shard = 0; shard < server.shards(); ++shard) {
    server.store().BeginCut(0, shard, changes);
    for (bool is_last = false; !is_last;) {
      pserver::CutPortion portion = server.store().CopyForCheckpoint(0, shard);
      is_last = portion.is_last;
      EXPECT_EQ(portion.rows.has_changes, changes);
      rows += portion.rows.rows.rows.size();
      checkpoints.WriteRows(step, 0, std::move(portion.rows));
    }
  }
  return rows;
}

}  // namespace penstock::test
