// A file that is written piece by piece and has its name only when it is whole, as ReplaceFile does it for
// bytes that are in memory.
//
//   PENSTOCK_ASSIGN_OR_RETURN(OutFile file, OutFile::Create(disk, "out/t.safetensors"));
//   PENSTOCK_RETURN_IF_ERROR(file.Append(bytes));
//   PENSTOCK_RETURN_IF_ERROR(file.Finish());
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/runtime/disk.h"
#include "framework/tensor/tensor.h"

namespace penstock::checkpoint {

class OutFile {
 public:
  // Makes its folder, too.
  static Result<OutFile> Create(Disk& disk, const std::string& path) {
    PENSTOCK_RETURN_IF_ERROR(disk.MakeFolder(FolderOf(path)));
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, disk.Create(path + ".tmp"));
    return OutFile(disk, path, std::move(file));
  }
  Status Append(std::string_view bytes) { return file_->Append(bytes); }
  Status Append(const Tensor& tensor) {
    return tensor.bytes() == 0 ? OkStatus()
                               : Append({reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()});
  }
  Status Finish() {
    PENSTOCK_RETURN_IF_ERROR(file_->Sync());
    PENSTOCK_RETURN_IF_ERROR(file_->Close());
    PENSTOCK_RETURN_IF_ERROR(disk_->Rename(path_ + ".tmp", path_));
    return disk_->SyncFolder(FolderOf(path_));
  }

 private:
  OutFile(Disk& disk, std::string path, std::unique_ptr<WritableFile> file)
      : disk_(&disk), path_(std::move(path)), file_(std::move(file)) {}

  Disk* disk_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace penstock::checkpoint
