// A file of a part to which records are appended, from the memory of the values: no second copy is made.
//
//   PENSTOCK_ASSIGN_OR_RETURN(PartFile file, PartFile::Create(disk, "DIR/step-5/part-0-of-1.values"));
//   PENSTOCK_ASSIGN_OR_RETURN(const Record record, file.Append(value));
//   PENSTOCK_RETURN_IF_ERROR(file.Finish());
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "executor/checkpoint/manifest.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {

class PartFile {
 public:
  static Result<PartFile> Create(Disk& disk, const std::string& path) {
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, disk.Create(path));
    return PartFile(std::move(file));
  }
  // One record.
  Result<Record> Append(std::span<const std::string_view> pieces);
  Result<Record> Append(const Tensor& tensor) {
    std::string heads;
    return Append(PiecesOf(tensor, heads));
  }
  Result<Record> Append(const SelectedRows& rows) {
    std::string heads;
    return Append(PiecesOf(rows, heads));
  }
  // Syncs and closes it.
  Status Finish();
  std::uint64_t size() const { return size_; }

 private:
  explicit PartFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  Status Put(std::string_view bytes);
  Status Flush();

  std::unique_ptr<WritableFile> file_;
  std::string small_;
  std::uint64_t size_ = 0;
};

}  // namespace penstock::checkpoint
