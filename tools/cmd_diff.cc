// penstock diff A B: compares two programs, or two folders of role programs, op by op.
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/case/role_files.h"
#include "tools/command.h"
#include "tools/diff/diff.h"

namespace penstock::tools {
namespace {

// Keyed by the file name without its extension: "trainer_t1" for trainer_t1.pb and trainer_t1.pb.gz.
using Roles = std::map<std::string, Program>;

Result<Roles> ReadRoles(const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const check::RoleFiles files, ReadRoleFiles(folder, &Threads()));
  Roles roles;
  for (const check::RoleProgram* file : files.All())
    roles.emplace(file->file.substr(0, file->file.find('.')), file->program);
  return roles;
}

// Prints the differences; returns whether there are any.
bool Print(const std::string& name, const Program& a, const Program& b) {
  const ProgramDiff diff = DiffPrograms(AllOps(), a, b);
  if (diff.equal()) return false;
  std::cout << name << ": " << CountText(diff) << "\n" << diff.text;
  return true;
}

int DiffFolders(const Roles& a, const Roles& b) {
  std::set<std::string> names;
  for (const auto& [name, program] : a) names.insert(name);
  for (const auto& [name, program] : b) names.insert(name);
  int differing = 0;
  for (const std::string& name : names) {
    const auto left = a.find(name), right = b.find(name);
    if (left != a.end() && right != b.end()) {
      differing += Print(name, left->second, right->second) ? 1 : 0;
      continue;
    }
    std::cout << name << ": only in the " << (left == a.end() ? "second" : "first") << " folder\n";
    ++differing;
  }
  std::cout << "diff: " << differing << " of " << names.size() << " programs differ\n";
  return differing == 0 ? kExitOk : kExitFindings;
}

}  // namespace

int RunDiff(const Arguments& arguments) {
  if (arguments.size() != 2) return BadUsage("diff", "A B");
  std::error_code error;
  const bool folder = std::filesystem::is_directory(arguments[0], error);
  if (folder != std::filesystem::is_directory(arguments[1], error)) {
    return BadInput(InvalidArgument("E-diff-kinds", "diff: ", arguments[folder ? 0 : 1],
                                    " is a folder of role programs, ", arguments[folder ? 1 : 0], " is not"));
  }
  if (folder) {
    const Result<Roles> a = ReadRoles(arguments[0]);
    if (!a.ok()) return BadInput(a.status());
    const Result<Roles> b = ReadRoles(arguments[1]);
    return b.ok() ? DiffFolders(*a, *b) : BadInput(b.status());
  }
  const Result<Program> a = ReadProgramFile(arguments[0], &Threads());
  if (!a.ok()) return BadInput(a.status());
  const Result<Program> b = ReadProgramFile(arguments[1], &Threads());
  if (!b.ok()) return BadInput(b.status());
  const bool differ = Print(arguments[1], *a, *b);
  if (!differ) std::cout << "diff: equal\n";
  return differ ? kExitFindings : kExitOk;
}

}  // namespace penstock::tools
