#include "transpiler/pipeline/check_role_set.h"

#include <optional>

#include "framework/verify/verifier.h"
#include "transpiler/plan/unwritten_parts.h"

namespace penstock {

check::RoleFiles FilesOf(const RoleSet& roles) {
  check::RoleFiles files;
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    const TrainerPrograms& role = roles.trainers[i];
    const std::string suffix = i == 0 ? "" : StrCat("_t", role.trainer_id);
    files.trainers.push_back({StrCat("trainer", suffix, ".pb"), role.main});
    files.trainer_startups.push_back({StrCat("trainer_startup", suffix, ".pb"), role.startup});
  }
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    files.pservers.push_back({StrCat("pserver_", i, ".pb"), roles.pservers[i].main});
    files.pserver_startups.push_back({StrCat("pserver_startup_", i, ".pb"), roles.pservers[i].startup});
  }
  return files;
}

check::CheckReport CheckRoleSet(const OpRegistry& ops, const RoleSet& roles, const Program& main,
                                const Program& startup, ThreadPool* threads) {
  const bool compat = roles.plan.dialect == plan::Dialect::kFluid18;
  const std::optional<Program> mended =
      roles.plan.lacks_unwritten_parts ? plan::WithoutUnwrittenParts(main) : std::nullopt;
  const check::SourcePrograms source{mended ? *mended : main, startup};
  // The pass manager has verified the results of the passes; all other parts are as the user built them.
  const bool verified = !compat && VerifyProgram(source.main, {.ops = &ops}).ok();
  check::CheckReport report =
      check::CheckRoles(FilesOf(roles), ops, {.source = &source, .verified = verified, .threads = threads});
  if (!compat) return report;
  for (check::Finding& finding : report.findings) {
    if (finding.severity == check::Severity::kError) finding.severity = check::Severity::kWarning;
  }
  return report;
}

Status FirstError(const check::CheckReport& report) {
  for (const check::Finding& finding : report.findings) {
    if (finding.severity != check::Severity::kError) continue;
    Status status = InvalidArgument(finding.id, "check: ", finding.file, ": ", finding.message);
    for (const std::string& line : finding.details) status.With(line);
    return status;
  }
  return OkStatus();
}

}  // namespace penstock
