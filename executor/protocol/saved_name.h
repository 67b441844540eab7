// The name of a file that a server writes for a trainer (checkpoint_notify): its path relative to a folder
// that both sides know.
//
//   NameInFolder("/data/job7", "/data/job7/model/t_0");    // "model/t_0"
//   NameInFolder("/data/job7", "model/t_0");               // "model/t_0"
#pragma once

#include <filesystem>
#include <string>

namespace penstock::protocol {

// The file in which servers list what they have written to the folder; not a valid name of a saved file.
inline constexpr char kSavedLedger[] = ".penstock_saved";

// The absolute path in this process's file system, normalised, without a trailing slash.
std::filesystem::path AbsoluteOf(const std::string& path);

// Whether a relative name stays below the folder, judged by its text alone.
bool IsInside(const std::filesystem::path& name);

// For a trainer with the same folder: returns a path inside the folder relative to it, and other paths
// unchanged.
std::string NameInFolder(const std::string& folder, const std::string& path);

}  // namespace penstock::protocol
