// penstock check DIR: proves that the role programs in a folder fit together, and prints its findings.
#include <iostream>
#include <optional>

#include "operators/all_ops.h"
#include "tools/case/role_files.h"
#include "tools/command.h"
#include "tools/source.h"
#include "transpiler/check/check.h"
#include "transpiler/plan/unwritten_parts.h"

namespace penstock::tools {

int RunCheck(const Arguments& arguments) {
  if (arguments.size() != 1) return BadUsage("check", "DIR [--main F --startup F [--facts F]]");
  const Result<check::RoleFiles> roles = ReadRoleFiles(arguments[0], &Threads());
  if (!roles.ok()) return BadInput(roles.status());
  std::optional<check::SourcePrograms> programs;
  Result<Source> source = Source();
  if (HasSourcePrograms()) {
    source = ReadSourcePrograms("check");
    if (!source.ok()) return BadInput(source.status());
    // The default dialect removes gradients that no op writes from Fluid's programs.
    std::optional<Program> mended = plan::WithoutUnwrittenParts(source->main);
    const bool as_mended =
        !roles->trainers.empty() && !plan::WithoutUnwrittenParts(roles->trainers.front().program);
    if (mended && as_mended) source->main = *std::move(mended);
    programs.emplace(check::SourcePrograms{source->main, source->startup});
  }
  const check::CheckReport report =
      check::CheckRoles(*roles, AllOps(), {.source = programs ? &*programs : nullptr, .threads = &Threads()});
  std::cout << report.ToString();
  return report.errors() == 0 ? kExitOk : kExitFindings;
}

}  // namespace penstock::tools
