// The cold tier of one shard: rows that were not touched for longest go to a log on disk (cold_log.h) when
// the shard takes more memory than its budget, and come back when an update or a read lists them.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto tier, ColdTier::Make(place, budget, shard.row_bytes()));
//   PENSTOCK_RETURN_IF_ERROR(tier->Fetch(shard, ids));        // the rows of these ids that there are are hot
//   while (tier->Sweep(shard, version, life)) ...             // between updates and reads, not during a copy
//
// A row is hot, being written, or cold, and can be read in each of the three:
//
//   hot -> writing   it is copied to a batch, which is written in the background; it stays in the shard
//   writing -> cold  the write has succeeded, and its version is unchanged: it leaves the shard; the index
//                    of the tier has its record
//   writing -> hot   it was updated meanwhile, or the write failed: the record counts for nothing
//   cold -> hot      Fetch reads the record, and compares its checksum
//
// Results do not depend on where rows are, so neither on the budget nor on the speed of the disk. Segments
// of which half is not live any more are compacted: live records are written again, rows that are gone by
// the table's policy are dropped.
//
// An error of the disk is returned by this Fetch, or by all later ones; no row is lost or wrong. Fetch
// throws std::bad_alloc. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/table/background.h"
#include "executor/table/cold_log.h"
#include "executor/table/row_life.h"
#include "executor/table/shard.h"
#include "framework/base/status.h"

namespace penstock::table {

// Where the cold rows of a shard go: files `folder`/`name`..., which vanish with the process.
struct ColdPlace {
  Disk* disk = nullptr;
  std::string folder;
  std::string name;
};

struct ColdCounts {
  std::uint64_t hot = 0, cold = 0;  // rows, now
  std::uint64_t file_bytes = 0;     // now
  std::uint64_t asked = 0;          // ids that were looked for
  std::uint64_t fetched = 0;        // rows read from disk because of that
  std::uint64_t written = 0;        // rows written, also by compaction
  std::uint64_t waits = 0;          // times that a table waited for a write, because it was over its budget
};

class ColdTier {
 public:
  // `budget_bytes`: of rows, indexes and buffers; at least a quarter of it is for rows. Makes the folder:
  // E-file-write.
  static Result<std::unique_ptr<ColdTier>> Make(const ColdPlace& place, std::uint64_t budget_bytes,
                                                std::size_t row_bytes);

  Slot size() const { return log_.live(); }  // cold rows
  Status Fetch(Shard& rows, std::span<const std::int64_t> ids);
  // Whether Sweep has something to do.
  bool sweeping(const Shard& rows, std::uint64_t version) const;
  // Moves rows for less than a millisecond; returns sweeping(). But if rows exceed the budget by more than an
  // eighth because the disk is slow, it waits for it. `life` (null: none): rows that are gone are not moved.
  bool Sweep(Shard& rows, std::uint64_t version, RowLife* life);
  // Whether rows are being written, or Sweep has something to do.
  bool moving(const Shard& rows, std::uint64_t version) const {
    return background_.started() || sweeping(rows, version);
  }
  std::vector<ColdPart> Parts() const { return log_.Parts(); }
  ColdCounts counts(const Shard& rows) const;

 private:
  enum class State { kIdle, kChoose, kWrite, kRetire, kRelease, kRead, kFilter };
  struct Item {  // of a batch
    std::int64_t id;
    std::uint64_t version;
    Slot to;
    Slot from;  // the old record, of compaction; kNoSlot: the row is hot
    std::uint64_t gone_from;
  };
  struct Wanted {
    Slot record;
    std::int64_t id;
    friend auto operator<=>(const Wanted&, const Wanted&) = default;
  };

  ColdTier(const ColdPlace& place, std::uint64_t budget_bytes, std::size_t row_bytes);
  std::span<std::byte> BatchRow(std::size_t i) {
    return std::span(batch_).subspan(i * row_bytes_, row_bytes_);
  }
  Slot HotMost(const Shard& rows) const;
  bool IsOver(const Shard& rows, std::uint64_t version) const;
  void ForgetRecord(Slot record, std::uint32_t hash);
  void Tidy();
  Status FetchSome(Shard& rows, std::span<const Wanted> wanted);
  void BeginChoosing(Shard& rows, std::uint64_t version);
  bool BeginBatch();
  void SweepSome(Shard& rows, std::uint64_t version, RowLife* life);
  bool IsBatchFull() const { return items_.size() == batch_rows_; }
  void Add(const RowHeader& row, Slot from, const RowLife* life);
  void Choose(Shard& rows, std::uint64_t version, const RowLife* life);
  void Write();
  bool Retire(Shard& rows);
  void RetireHot(Shard& rows, std::span<const Item> items);
  void RetireCompacted(std::span<const Item> items);
  void EndBatch(Shard& rows);
  void Read();
  void Filter(std::uint64_t version, RowLife* life);

  const std::uint64_t budget_bytes_;
  const std::size_t row_bytes_;
  const Slot batch_rows_;
  ColdLog log_;
  Index index_;  // from the hash of an id to its record; entries of records that are not live mean nothing
  std::vector<std::pair<std::uint32_t, Slot>> stale_;  // such entries, while the index grows
  Status failed_;

  State state_ = State::kIdle;
  std::vector<std::byte> batch_;
  std::vector<Item> items_;
  std::optional<ColdLog::Room> room_;
  std::size_t retired_ = 0;  // items
  // Of rows that are chosen: slots below are not looked at yet; versions below go; so many are still to go.
  Slot left_ = 0;
  std::uint64_t below_ = 0;
  Slot to_move_ = 0;
  // After a choice that did not find enough rows: of this version, with so many rows.
  std::uint64_t rests_at_ = kNeverGone;
  Slot rests_with_ = 0;
  // Of compaction: the first record of the segment, and how many were read.
  std::optional<Slot> compacted_;
  Slot read_ = 0, read_count_ = 0;
  // Of Fetch; members to reuse their memory.
  std::vector<std::int64_t> missing_, found_;
  std::vector<Wanted> wanted_;
  std::vector<std::byte> records_;
  std::vector<std::size_t> not_cached_;
  std::vector<std::pair<Slot, const std::byte*>> sources_;
  ColdCounts counts_;

  Background background_;  // last: its job uses the members above
};

}  // namespace penstock::table
