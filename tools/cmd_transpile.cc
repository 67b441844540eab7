// penstock transpile: makes the programs of all roles from one program and a job configuration.
#include <gflags/gflags.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/files.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tools/case/role_files.h"
#include "tools/command.h"
#include "tools/source.h"
#include "tools/step_writer.h"
#include "transpiler/pipeline/check_role_set.h"
#include "transpiler/pipeline/transpile.h"

DEFINE_string(steps, "", "folder for the program after each pass, as text, in one folder per role");
DEFINE_string(out, "", "folder for the role programs and plan.txt; replaces the role programs already in it");

namespace penstock::tools {
namespace {

Status WriteRoles(const RoleSet& roles, const CaseFile& job) {
  std::error_code error;
  std::filesystem::create_directories(FLAGS_out, error);
  if (error) return InvalidArgument("E-file-write", FLAGS_out, ": ", error.message());
  const std::filesystem::path folder(FLAGS_out);
  // Files for Fluid do not contain data for which Fluid's format has no field.
  const WireOptions form{.extra = job.config.dialect == plan::Dialect::kDefault};
  const check::RoleFiles files = FilesOf(roles);
  const std::vector<const check::RoleProgram*> all = files.All();
  std::set<std::string> names;
  for (const check::RoleProgram* role : all) {
    const std::string& name = job.FileOf(role->file);
    if (names.insert(name).second) continue;
    return InvalidArgument("E-case", "key \"files\": two roles are to be written to ", name);
  }
  std::vector<Status> statuses(all.size());
  Threads().ForEach(all.size(), [&](std::size_t i) {
    statuses[i] =
        WriteFile((folder / job.FileOf(all[i]->file)).string(), SerializeProgram(all[i]->program, form));
  });
  for (Status& status : statuses) PENSTOCK_RETURN_IF_ERROR(std::move(status));
  PENSTOCK_RETURN_IF_ERROR(RemoveOtherRoleFiles(FLAGS_out, names));
  return WriteFile((folder / "plan.txt").string(), plan::PrintPlan(roles.plan));
}

}  // namespace

int RunTranspile(const Arguments& arguments) {
  if (!arguments.empty()) return BadUsage("transpile", "--main F --startup F --config F --out DIR");
  if (FLAGS_out.empty()) return BadInput(InvalidArgument("E-usage", "transpile: --out is missing"));
  const Result<Source> source = ReadSource("transpile");
  if (!source.ok()) return BadInput(source.status());
  StepWriter steps(FLAGS_steps);
  PassOptions options{.threads = &Threads()};
  if (!FLAGS_steps.empty()) options.observe = [&](const PassEvent& event) { steps.Write(event); };
  const Result<RoleSet> roles =
      Transpile(AllOps(), source->main, source->startup, source->job.config, options);
  if (!steps.status().ok()) return BadInput(steps.status());
  if (!roles.ok()) return BadInput(roles.status());
  const check::CheckReport report = CheckRoleSet(AllOps(), *roles, source->main, source->startup, &Threads());
  for (const check::Finding& finding : report.findings) {
    if (finding.severity != check::Severity::kNote) std::cerr << finding.ToString() << "\n";
  }
  if (report.errors() > 0) return kExitFindings;
  const Status written = WriteRoles(*roles, source->job);
  return written.ok() ? kExitOk : BadInput(written);
}

}  // namespace penstock::tools
