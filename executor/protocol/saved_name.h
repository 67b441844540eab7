// How a trainer names a file that a server is to write (checkpoint_notify): by its path in a folder that both
// know.
//
//   NameInFolder("/data/job7", "/data/job7/model/t_0");    // "model/t_0"
//   NameInFolder("/data/job7", "model/t_0");               // "model/t_0"
#pragma once

#include <filesystem>
#include <string>

namespace penstock::protocol {

// The folder's list of what servers have written there; no name of a saved file.
inline constexpr char kSavedLedger[] = ".penstock_saved";

// In this process's file system, simplified, without a slash at the end.
std::filesystem::path AbsoluteOf(const std::string& path);

// Whether a name is one of a file below the folder, by its text.
bool IsInside(const std::filesystem::path& name);

// For a trainer that has the same folder: the name in it of a path that lies in it; other paths as they are.
std::string NameInFolder(const std::string& folder, const std::string& path);

}  // namespace penstock::protocol
