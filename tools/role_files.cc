#include "tools/role_files.h"

#include <filesystem>
#include <map>
#include <regex>

#include "framework/text/program_file.h"

namespace penstock::tools {
namespace {

namespace fs = std::filesystem;

// role ("trainer", "pserver_startup") -> number -> path. trainer.pb has number 0.
using Found = std::map<std::string, std::map<int, fs::path>>;

Result<Found> FindFiles(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return InvalidArgument("E-roles-folder", folder, ": ", error.message());
  static const std::regex kName(
      R"((trainer|trainer_startup|pserver|pserver_startup)(?:_t?(\d{1,6}))?\.pb(\.gz)?)");
  Found found;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    std::smatch match;
    if (!std::regex_match(name, match, kName)) continue;
    const int number = match[2].matched ? std::stoi(match[2].str()) : 0;
    const auto [it, first] = found[match[1].str()].emplace(number, entry.path());
    if (!first) {
      return InvalidArgument("E-roles-twice", folder, ": ", it->second.filename().string(), " and ", name,
                             " are the same role");
    }
  }
  return found;
}

Result<std::vector<RoleProgram>> Read(const std::map<int, fs::path>& files) {
  std::vector<RoleProgram> programs;
  for (const auto& [number, path] : files) {
    PENSTOCK_ASSIGN_OR_RETURN(Program program, ReadProgramFile(path.string()));
    programs.push_back({path.filename().string(), std::move(program)});
  }
  return programs;
}

// Start-up programs are matched by position, so a set has all of them or none.
Status RequireMatching(const std::string& folder, Found& found, const std::string& role) {
  const auto& startups = found[role + "_startup"];
  if (startups.empty()) return OkStatus();
  for (const auto& [number, path] : found[role]) {
    if (startups.contains(number)) continue;
    return InvalidArgument("E-roles-startup", folder, ": ", path.filename().string(),
                           " has no start-up program beside it");
  }
  return OkStatus();
}

}  // namespace

Result<RoleFiles> ReadRoleFiles(const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(Found found, FindFiles(folder));
  for (const char* role : {"trainer", "pserver"}) {
    if (found[role].empty())
      return InvalidArgument("E-roles-missing", folder, ": no ", role, " program (", role, "*.pb)");
    PENSTOCK_RETURN_IF_ERROR(RequireMatching(folder, found, role));
  }
  RoleFiles roles;
  PENSTOCK_ASSIGN_OR_RETURN(roles.trainers, Read(found["trainer"]));
  PENSTOCK_ASSIGN_OR_RETURN(roles.trainer_startups, Read(found["trainer_startup"]));
  PENSTOCK_ASSIGN_OR_RETURN(roles.pservers, Read(found["pserver"]));
  PENSTOCK_ASSIGN_OR_RETURN(roles.pserver_startups, Read(found["pserver_startup"]));
  return roles;
}

}  // namespace penstock::tools
