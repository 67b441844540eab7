#include "executor/pserver/checkpoint_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "executor/protocol/saved_name.h"

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
  std::ifstream ledger(AbsoluteOf(folder_) / kSavedLedger);
  for (std::string line; std::getline(ledger, line);) {
    if (line == name) return true;
  }
  return false;
}

Status CheckpointFolder::Wrote(const std::string& path) const {
  const std::string name = fs::path(path).lexically_relative(AbsoluteOf(folder_)).string();
  if (WasWritten(name)) return OkStatus();
  const std::string ledger = (AbsoluteOf(folder_) / kSavedLedger).string();
  const std::string line = name + "\n";
  // One write at the end of the file: servers that share the folder do not mix their lines.
  const int file = open(ledger.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  const bool written =
      file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (file >= 0) close(file);
  if (written) return OkStatus();
  return InvalidArgument("E-file-write", "cannot write ", ledger, ": ", std::strerror(error));
}

}  // namespace penstock::pserver
