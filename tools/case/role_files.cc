#include "tools/case/role_files.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "framework/text/program_file.h"

namespace penstock::tools {
namespace {

namespace fs = std::filesystem;

// role ("trainer", "pserver_startup") -> number -> path. trainer.pb has number 0.
using Found = std::map<std::string, std::map<int, fs::path>>;

struct RoleName {
  std::string role;
  int number = 0;
};

// "pserver_startup_3.pb.gz" -> pserver_startup, 3. nullopt if the file name is not that of a role program.
std::optional<RoleName> ParseName(std::string_view name) {
  const auto drop = [&name](std::string_view suffix) {
    const bool there = name.ends_with(suffix);
    if (there) name.remove_suffix(suffix.size());
    return there;
  };
  drop(".gz");
  if (!drop(".pb")) return std::nullopt;
  for (const std::string_view role : {"trainer_startup", "trainer", "pserver_startup", "pserver"}) {
    if (!name.starts_with(role)) continue;
    std::string_view rest = name.substr(role.size());
    if (rest.empty()) return RoleName{std::string(role), 0};
    if (!rest.starts_with('_')) continue;
    rest.remove_prefix(1);
    if (role.starts_with("trainer") && rest.starts_with('t')) rest.remove_prefix(1);
    int number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc() && end == rest.data() + rest.size() && number >= 0)
      return RoleName{std::string(role), number};
  }
  return std::nullopt;
}

Result<Found> FindFiles(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return InvalidArgument("E-roles-folder", folder, ": ", error.message());
  Found found;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const std::optional<RoleName> role = ParseName(name);
    if (!role) continue;
    const auto [it, first] = found[role->role].emplace(role->number, entry.path());
    if (!first) {
      return InvalidArgument("E-roles-twice", folder, ": ", it->second.filename().string(), " and ", name,
                             " are the same role");
    }
  }
  return found;
}

Result<std::vector<check::RoleProgram>> Read(const std::map<int, fs::path>& files, ThreadPool* threads) {
  std::vector<check::RoleProgram> programs;
  for (const auto& [number, path] : files) {
    PENSTOCK_ASSIGN_OR_RETURN(Program program, ReadProgramFile(path.string(), threads));
    programs.push_back({path.filename().string(), std::move(program)});
  }
  return programs;
}

// Startup programs are matched by position, so a set must have all of them or none.
Status RequireMatching(const std::string& folder, Found& found, const std::string& role) {
  if (found["trainer_startup"].empty() && found["pserver_startup"].empty()) return OkStatus();
  const auto& startups = found[role + "_startup"];
  for (const auto& [number, path] : found[role]) {
    if (startups.contains(number)) continue;
    return InvalidArgument("E-roles-startup", folder, ": ", path.filename().string(),
                           " has no startup program beside it");
  }
  return OkStatus();
}

}  // namespace

Result<check::RoleFiles> ReadRoleFiles(const std::string& folder, ThreadPool* threads) {
  PENSTOCK_ASSIGN_OR_RETURN(Found found, FindFiles(folder));
  if (found["trainer"].empty())
    return InvalidArgument("E-roles-missing", folder, ": no trainer program (trainer*.pb)");
  for (const char* role : {"trainer", "pserver"})
    PENSTOCK_RETURN_IF_ERROR(RequireMatching(folder, found, role));
  check::RoleFiles roles;
  PENSTOCK_ASSIGN_OR_RETURN(roles.trainers, Read(found["trainer"], threads));
  PENSTOCK_ASSIGN_OR_RETURN(roles.trainer_startups, Read(found["trainer_startup"], threads));
  PENSTOCK_ASSIGN_OR_RETURN(roles.pservers, Read(found["pserver"], threads));
  PENSTOCK_ASSIGN_OR_RETURN(roles.pserver_startups, Read(found["pserver_startup"], threads));
  return roles;
}

Status RemoveOtherRoleFiles(const std::string& folder, const std::set<std::string>& kept) {
  std::vector<fs::path> others;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (ParseName(name) && !kept.contains(name)) others.push_back(entry.path());
  }
  for (const fs::path& path : others) {
    if (!error) fs::remove(path, error);
  }
  return error ? InvalidArgument("E-roles-folder", folder, ": ", error.message()) : OkStatus();
}

}  // namespace penstock::tools
