// penstock check DIR: proves that the role programs in a folder fit together, and prints its findings.
#include <iostream>
#include <optional>

#include "operators/all_ops.h"
#include "tools/case/role_files.h"
#include "tools/command.h"
#include "tools/source.h"
#include "transpiler/check/check.h"
#include "transpiler/plan/plan.h"
#include "transpiler/plan/unwritten_parts.h"

namespace penstock::tools {
namespace {

// Whether the transpile removed unwritten parts from the source. Programs of Fluid's transpiler have no plan.
Result<bool> LackUnwrittenParts(const check::RoleFiles& roles) {
  if (roles.trainers.empty()) return false;
  const std::string& text = roles.trainers.front().program.meta().plan;
  if (text.empty()) return false;
  PENSTOCK_ASSIGN_OR_RETURN(const plan::PlacementPlan plan, plan::ParsePlan(text));
  return plan.lacks_unwritten_parts;
}

}  // namespace

int RunCheck(const Arguments& arguments) {
  if (arguments.size() != 1) return BadUsage("check", "DIR [--main F --startup F [--facts F]]");
  const Result<check::RoleFiles> roles = ReadRoleFiles(arguments[0], &Threads());
  if (!roles.ok()) return BadInput(roles.status());
  std::optional<check::SourcePrograms> programs;
  Result<Source> source = Source();
  if (HasSourcePrograms()) {
    source = ReadSourcePrograms("check");
    if (!source.ok()) return BadInput(source.status());
    const Result<bool> mended = LackUnwrittenParts(*roles);
    if (!mended.ok()) return BadInput(mended.status());
    if (*mended) source->main = plan::WithoutUnwrittenParts(source->main).value_or(source->main);
    programs.emplace(check::SourcePrograms{source->main, source->startup});
  }
  const check::CheckReport report =
      check::CheckRoles(*roles, AllOps(), {.source = programs ? &*programs : nullptr, .threads = &Threads()});
  std::cout << report.ToString();
  return report.errors() == 0 ? kExitOk : kExitFindings;
}

}  // namespace penstock::tools
