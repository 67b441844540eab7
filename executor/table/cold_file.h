// A file of records, which are rows of a table as they lie in memory, each with a checksum. Records are added
// at the end and never change.
//
//   ColdFile file(disk, "cold/ads.0", 128);
//   PENSTOCK_RETURN_IF_ERROR(file.Append(records));              // opens the file first
//   PENSTOCK_RETURN_IF_ERROR(file.Read(7, record));              // number 7
//   if (ColdFile::Unpack(record)) ... reinterpret_cast<RowHeader*>(record.data()) ...
//
// The file is a cache of this process. Its name is removed as soon as it is open, so that its space is free
// when it is closed, however the process ends; and it is never synced: whoever could read it after a crash
// of the machine has ended with it. What the system loses of delayed writes is found by the checksum.
//
// Append and Read may run beside each other, for records that were added before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "executor/table/shard.h"
#include "framework/runtime/disk.h"

namespace penstock::table {

class ColdFile {
 public:
  ColdFile(Disk& disk, std::string path, std::size_t record_bytes)
      : disk_(disk), path_(std::move(path)), record_bytes_(record_bytes) {}

  const std::string& path() const { return path_; }
  // E-file-write.
  Status Append(std::span<const std::byte> records);
  // E-file-read, E-file-short. `records`: as many as are wanted, from the number `first` on.
  Status Read(Slot first, std::span<std::byte> records) const;
  bool ReadIfCached(Slot record, std::span<std::byte> bytes) const;

  // Makes a row a record: RowHeader::entry, which means nothing between updates, gets the checksum.
  static void Pack(std::span<std::byte> row);
  // Makes a record a row again. False: its bytes are not those that were written.
  static bool Unpack(std::span<std::byte> record);
  // kDataLoss E-table-cold-damaged. `row`: the id, if it is known.
  Status Damaged(Slot record, const std::string& row) const;

 private:
  std::uint64_t OffsetOf(Slot record) const { return std::uint64_t{record} * record_bytes_; }

  Disk& disk_;
  const std::string path_;
  const std::size_t record_bytes_;
  std::unique_ptr<WritableFile> to_;
  std::unique_ptr<ReadableFile> from_;
};

}  // namespace penstock::table
