#include "executor/pserver/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>

#include "executor/protocol/saved_name.h"
#include "framework/base/strings.h"

namespace penstock::pserver {
namespace {

namespace fs = std::filesystem;

using protocol::AbsoluteOf;
using protocol::IsInside;
using protocol::kSavedLedger;

bool IsPlainText(const std::string& name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Result<std::string> CheckpointFolder::Claim(const std::string& name) {
  // Checked before it is normalised, so that "a/../b" is refused too.
  if (!IsPlainText(name) || !IsInside(name)) {
    return InvalidArgument("E-server-save-path", "a table is saved to a relative path inside ",
                           AbsoluteOf(folder_).string(), " (PENSTOCK_CHECKPOINT_DIR), which ", Quote(name),
                           " is not");
  }
  const std::string simple = fs::path(name).lexically_normal().string();
  const fs::path path = AbsoluteOf(folder_) / simple;
  // Links may lead out of the folder.
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  const fs::path root = fs::weakly_canonical(AbsoluteOf(folder_), error);
  if (error || std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end()) {
    return InvalidArgument("E-server-save-path", "a table is saved inside ", root.string(),
                           " (PENSTOCK_CHECKPOINT_DIR), from which ", Quote(name), " leads away");
  }
  if (!claimed_.contains(path.string()) && fs::exists(fs::symlink_status(path, error)) &&
      !WasWritten(simple)) {
    return FailedPrecondition("E-server-save-exists", path.string(),
                              " is there already, and was not written by a pserver; choose another name");
  }
  claimed_.insert(path.string());
  return path.string();
}

bool CheckpointFolder::WasWritten(const std::string& name) const {
  const Result<std::string> ledger = disk_.ReadWhole((AbsoluteOf(folder_) / kSavedLedger).string());
  if (!ledger.ok()) return false;
  const std::vector<std::string> lines = Split(*ledger, '\n');
  return std::ranges::find(lines, name) != lines.end();
}

Status CheckpointFolder::Wrote(const std::string& path) const {
  const std::string name = fs::path(path).lexically_relative(AbsoluteOf(folder_)).string();
  if (WasWritten(name)) return OkStatus();
  const std::string ledger = (AbsoluteOf(folder_) / kSavedLedger).string();
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk_.OpenToAppend(ledger));
  // One write: servers that share the folder do not mix their lines.
  PENSTOCK_RETURN_IF_ERROR(file->Append(name + "\n"));
  PENSTOCK_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace penstock::pserver
