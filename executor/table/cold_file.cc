#include "executor/table/cold_file.h"

#include <string_view>

#include "framework/base/crc32c.h"

namespace penstock::table {

Status ColdFile::Append(std::span<const std::byte> records) {
  if (to_ == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(to_, disk_.Create(path_));
    PENSTOCK_ASSIGN_OR_RETURN(from_, disk_.OpenToRead(path_));
    PENSTOCK_RETURN_IF_ERROR(disk_.Remove(path_));
  }
  return to_->Append(std::string_view(reinterpret_cast<const char*>(records.data()), records.size()));
}

Status ColdFile::Read(Slot first, std::span<std::byte> records) const {
  return from_->ReadAt(OffsetOf(first), records);
}

bool ColdFile::ReadIfCached(Slot record, std::span<std::byte> bytes) const {
  return from_->ReadIfCached(OffsetOf(record), bytes);
}

void ColdFile::Pack(std::span<std::byte> row) {
  RowHeader& header = *reinterpret_cast<RowHeader*>(row.data());
  header.entry = 0;
  header.entry = Crc32c(0, row.data(), row.size());
}

bool ColdFile::Unpack(std::span<std::byte> record) {
  RowHeader& header = *reinterpret_cast<RowHeader*>(record.data());
  const std::uint32_t written = header.entry;
  header.entry = 0;
  return Crc32c(0, record.data(), record.size()) == written;
}

Status ColdFile::Damaged(Slot record, const std::string& row) const {
  return DataLoss("E-table-cold-damaged", path_, " has other bytes at offset ", OffsetOf(record), " than ",
                  "were written", row.empty() ? "" : ": row ", row);
}

}  // namespace penstock::table
