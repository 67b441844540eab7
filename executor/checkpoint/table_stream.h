// Goes through the rows that one pserver has of a table, and of its states, a portion at a time, so memory
// does not depend on the size of the table. The order is that of the files, the newest first.
//
//   PENSTOCK_ASSIGN_OR_RETURN(TableStream rows, TableStream::Make(disk, found, 0, {t, moment}, {}));
//   while (true) {
//     PENSTOCK_ASSIGN_OR_RETURN(const std::optional<TableStream::Portion> portion, rows.Next());
//     if (!portion) break;
//     UseRows(portion->ids, portion->columns[1]);        // rows of the moment
//   }
//
// Beside a portion, it keeps the ids of rows that were saved after the base.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "executor/checkpoint/folder.h"

namespace penstock::checkpoint {

class TableStream {
 public:
  struct Portion {
    std::vector<std::int64_t> ids;
    std::vector<Tensor> columns;
    std::vector<std::int64_t> gone;  // with `since`: ids that have lost their rows
  };
  // `columns`: values of the part with the same rows. `since`: only rows that were saved after the checkpoint
  // of that step. kFailedPrecondition E-checkpoint-since: the files do not say which these are.
  static Result<TableStream> Make(Disk& disk, const Found& found, std::size_t part,
                                  std::vector<const ValueEntry*> columns, std::optional<std::uint64_t> since);

  // nullopt: that was all. E-checkpoint-damaged, E-checkpoint-rows.
  Result<std::optional<Portion>> Next();

 private:
  TableStream(Disk& disk, const Found& found, std::size_t part, std::vector<const ValueEntry*> columns)
      : disk_(&disk), found_(&found), part_(&found.parts[part]), columns_(std::move(columns)) {}
  Status PutInOrder(std::optional<std::uint64_t> since);
  Result<Portion> ReadRows(std::size_t record);
  Result<Portion> ReadGone(std::size_t record);
  Status Contradicts() const;

  Disk* disk_;
  const Found* found_;
  const Manifest* part_;
  std::vector<const ValueEntry*> columns_;
  std::vector<std::vector<Record>> records_;  // by column
  std::vector<std::size_t> order_;            // of the records
  std::size_t next_ = 0;
  bool has_base_ = true;
  // Ids of records of later steps, and of those of the step of the next record.
  std::unordered_set<std::int64_t> later_, now_;
};

}  // namespace penstock::checkpoint
