#include "executor/pserver/checkpoint_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace penstock::pserver {
namespace {

namespace fs = std::filesystem;

constexpr char kLedger[] = ".penstock_saved";

fs::path AbsoluteOf(const std::string& path) {
  std::error_code ignored;
  fs::path absolute = fs::absolute(path.empty() ? "." : path, ignored).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();  // without a slash at the end
}

// Whether a name is one of a file below the folder, by its text.
bool IsInside(const fs::path& name) {
  if (name.empty() || name.is_absolute() || !name.has_filename() || name.filename() == ".") return false;
  return std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; }) &&
         name.filename() != kLedger;
}

bool IsPlainText(const std::string& name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Result<std::string> CheckpointFolder::Claim(const std::string& name) {
  // Before it is simplified: "a/../b" is no name either.
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
  std::ifstream ledger(AbsoluteOf(folder_) / kLedger);
  for (std::string line; std::getline(ledger, line);) {
    if (line == name) return true;
  }
  return false;
}

Status CheckpointFolder::Wrote(const std::string& path) const {
  const std::string name = fs::path(path).lexically_relative(AbsoluteOf(folder_)).string();
  if (WasWritten(name)) return OkStatus();
  const std::string ledger = (AbsoluteOf(folder_) / kLedger).string();
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

std::string NameInFolder(const std::string& folder, const std::string& path) {
  const fs::path name = AbsoluteOf(path).lexically_relative(AbsoluteOf(folder));
  return IsInside(name) ? name.string() : path;
}

}  // namespace penstock::pserver
