#include "executor/checkpoint/part_file.h"

#include <algorithm>
#include <cstddef>

#include "framework/base/crc32c.h"

namespace penstock::checkpoint {
namespace {

// A piece that is written after its checksum is still in the cache. Small ones are written together.
constexpr std::size_t kPieceMost = std::size_t{1} << 20, kSmall = std::size_t{64} << 10;

}  // namespace

Result<Record> PartFile::Append(std::span<const std::string_view> pieces) {
  Record record{.file = {}, .offset = size_};
  for (std::string_view piece : pieces) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kPieceMost))) {
      const std::string_view some = piece.substr(0, kPieceMost);
      record.crc32c = Crc32c(record.crc32c, some.data(), some.size());
      record.bytes += some.size();
      PENSTOCK_RETURN_IF_ERROR(Put(some));
    }
  }
  size_ += record.bytes;
  return record;
}

Status PartFile::Put(std::string_view bytes) {
  if (bytes.size() <= kSmall) {
    small_ += bytes;
    return small_.size() < kPieceMost ? OkStatus() : Flush();
  }
  PENSTOCK_RETURN_IF_ERROR(Flush());
  return file_->Append(bytes);
}

Status PartFile::Flush() {
  if (small_.empty()) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(file_->Append(small_));
  small_.clear();
  return OkStatus();
}

Status PartFile::Finish() {
  PENSTOCK_RETURN_IF_ERROR(Flush());
  PENSTOCK_RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

}  // namespace penstock::checkpoint
