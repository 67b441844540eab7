// The records of a table's cold rows: an append log in segments, each a file (ColdFile) of equally many
// records. A record has a number, and is live or not. The space of a segment is free when none of its records
// is live.
//
//   ColdLog log(disk, "cold/ads.0", 128, 16384);                // bytes of a record, records of a batch
//   PENSTOCK_ASSIGN_OR_RETURN(const ColdLog::Room room, log.MakeRoom(true));   // numbers for a batch
//   PENSTOCK_RETURN_IF_ERROR(room.file->Append(records));       // on any thread
//   log.Add(room.first, {.version = 7, .gone_from = 90});       // is live from now on
//   log.Use(room, 16384);
//   log.FileOf(number).Read(log.PlaceOf(number), record);
//   log.Remove(number);
//
// A number is taken again only if the caller says that it holds no stale ones (MakeRoom's reuse).
// Not thread-safe, but for the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/table/cold_file.h"
#include "executor/table/row_rules.h"

namespace penstock::table {

// The records of a segment that were live at one time. They can be read as long as this exists.
struct ColdPart {
  std::shared_ptr<const ColdFile> file;
  std::vector<std::uint64_t> live;  // a bit for each place
  std::uint64_t newest = 0;         // no record has a greater version
  // Of the policy of rows: the versions of the table from which its first and its last row are gone.
  std::uint64_t first_gone = kNeverGone, last_gone = 0;

  bool IsLive(Slot place) const { return (live[place / 64] >> (place % 64) & 1) != 0; }
};

class ColdLog {
 public:
  ColdLog(Disk& disk, std::string path, std::size_t record_bytes, Slot batch_records);

  Slot live() const { return live_; }
  std::uint64_t file_bytes() const;
  std::size_t memory_bytes() const { return segments_.size() * segment_records() / 8; }

  // Numbers of a batch: the last segment's next places, or, if it has not enough, a new one's.
  struct Room {
    Slot first = 0;
    std::shared_ptr<ColdFile> file;
  };
  // kFailedPrecondition E-table-cold-full: there are no more numbers.
  Result<Room> MakeRoom(bool reuse);
  // Once all its records that are live were added. The places of the room beyond `used` stay free.
  void Use(const Room& room, Slot used);

  struct Mark {
    std::uint64_t version = 0;
    std::uint64_t gone_from = kNeverGone;  // the version of the table from which the row counts as evicted
  };
  void Add(Slot number, const Mark& mark);
  void Remove(Slot number);
  bool IsLive(Slot number) const {
    const Segment* const of = segments_[number >> shift_].get();
    return of != nullptr && of->part.IsLive(PlaceOf(number));
  }
  const ColdFile& FileOf(Slot number) const { return *segments_[number >> shift_]->file; }
  Slot PlaceOf(Slot number) const { return number & (segment_records() - 1); }

  // The first number of the segment to compact next, the one with the fewest live records: all of its rows
  // are gone, or it gets no more records and at least half are not live.
  std::optional<Slot> FindToCompact(std::uint64_t version) const;
  std::shared_ptr<const ColdFile> ShareFileOf(Slot number) const { return segments_[number >> shift_]->file; }
  // The places of the segment of this number that are in use; 0 if its space is free.
  Slot UsedWith(Slot number) const {
    const Segment* const of = segments_[number >> shift_].get();
    return of == nullptr ? 0 : of->used;
  }
  // All live records.
  std::vector<ColdPart> Parts() const;

 private:
  struct Segment {
    std::shared_ptr<ColdFile> file;
    ColdPart part;
    Slot used = 0;  // places, from the first on
    Slot live = 0;
  };
  Slot segment_records() const { return Slot{1} << shift_; }
  void FreeIfEmpty(std::size_t at);

  Disk& disk_;
  const std::string path_;
  const std::size_t record_bytes_;
  const Slot batch_records_;
  int shift_ = 0;  // a segment has 1 << shift_ places
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<std::size_t> free_;    // numbers of segments
  std::optional<std::size_t> last_;  // the segment with free places
  std::uint64_t files_ = 0;          // made so far
  Slot live_ = 0;
};

}  // namespace penstock::table
