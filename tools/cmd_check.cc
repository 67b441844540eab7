// penstock check DIR: proves from a folder of role programs that they fit together; prints what it finds.
#include <algorithm>
#include <iostream>

#include "operators/all_ops.h"
#include "tools/command.h"
#include "tools/role_files.h"
#include "transpiler/check/check.h"

namespace penstock::tools {

int RunCheck(const Arguments& arguments) {
  if (arguments.size() != 1) return BadUsage("check", "DIR");
  const Result<RoleFiles> roles = ReadRoleFiles(arguments[0]);
  if (!roles.ok()) return BadInput(roles.status());
  const CheckReport report = CheckRoles(*roles, AllOps());
  std::cout << report.ToString();
  return report.errors() == 0 ? kExitOk : kExitFindings;
}

}  // namespace penstock::tools
