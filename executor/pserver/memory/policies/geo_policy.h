// Geo-SGD, of a table: the server notes which rows were updated, and a trainer requests those.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/pserver/memory/chunk_policy.h"
#include "executor/pserver/memory/policies/changed_rows.h"

namespace penstock::pserver {

class GeoPolicy final : public ChunkPolicy {
 public:
  GeoPolicy(std::int64_t rows, int trainers) : changed_(rows, trainers) {}

  void Updated(std::span<const std::int64_t> rows) override { changed_.Note(rows); }
  void UpdatedAll() override { changed_.NoteAll(); }
  bool NotesRows() const override { return true; }
  std::vector<std::int64_t> TakeRows(int trainer, std::uint64_t version) override {
    return changed_.Take(trainer, version);
  }

 private:
  ChangedRows changed_;
};

}  // namespace penstock::pserver
