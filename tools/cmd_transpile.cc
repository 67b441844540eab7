// penstock transpile: the programs of all roles, from one program and a description of the job.
#include <gflags/gflags.h>

#include <filesystem>
#include <iostream>

#include "framework/base/files.h"
#include "framework/ir/wire.h"
#include "operators/all_ops.h"
#include "tools/command.h"
#include "tools/source.h"
#include "tools/step_writer.h"
#include "transpiler/pipeline/check_role_set.h"
#include "transpiler/pipeline/transpile.h"

DEFINE_string(steps, "", "a folder for the program after each pass, as text, in a folder for each role");
DEFINE_string(out, "", "the folder that the role programs and plan.txt are written to");

namespace penstock::tools {
namespace {

class RoleWriter {
 public:
  explicit RoleWriter(const CaseFile& job) : job_(job) {}

  Status Write(const std::string& role, const Program& program) {
    // What Fluid's form has no field for is left out of files that are to be Fluid's.
    const bool extra = job_.config.dialect == Dialect::kDefault;
    return WriteFile(Path(job_.FileOf(role)), SerializeProgram(program, {.extra = extra}));
  }
  std::string Path(const std::string& name) const {
    return (std::filesystem::path(FLAGS_out) / name).string();
  }

 private:
  const CaseFile& job_;
};

Status WriteRoles(const RoleSet& roles, const CaseFile& job) {
  std::error_code error;
  std::filesystem::create_directories(FLAGS_out, error);
  if (error) return InvalidArgument("E-file-write", FLAGS_out, ": ", error.message());
  RoleWriter writer(job);
  for (std::size_t i = 0; i < roles.trainers.size(); ++i) {
    const TrainerRole& trainer = roles.trainers[i];
    const std::string suffix = i == 0 ? "" : StrCat("_t", trainer.trainer_id);
    PENSTOCK_RETURN_IF_ERROR(writer.Write(StrCat("trainer", suffix, ".pb"), trainer.main));
    PENSTOCK_RETURN_IF_ERROR(writer.Write(StrCat("trainer_startup", suffix, ".pb"), trainer.startup));
  }
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(writer.Write(StrCat("pserver_", i, ".pb"), roles.pservers[i].main));
    PENSTOCK_RETURN_IF_ERROR(writer.Write(StrCat("pserver_startup_", i, ".pb"), roles.pservers[i].startup));
  }
  return WriteFile(writer.Path("plan.txt"), PrintPlan(roles.plan));
}

}  // namespace

int RunTranspile(const Arguments& arguments) {
  if (!arguments.empty()) return BadUsage("transpile", "--main F --startup F --config F --out DIR");
  if (FLAGS_out.empty()) return BadInput(InvalidArgument("E-usage", "transpile: --out is missing"));
  const Result<Source> source = ReadSource("transpile");
  if (!source.ok()) return BadInput(source.status());
  StepWriter steps(FLAGS_steps);
  PassOptions options;
  if (!FLAGS_steps.empty()) options.observe = [&](const PassEvent& event) { steps.Write(event); };
  const Result<RoleSet> roles =
      Transpile(AllOps(), source->main, source->startup, source->job.config, std::move(options));
  if (!steps.status().ok()) return BadInput(steps.status());
  if (!roles.ok()) return BadInput(roles.status());
  const CheckReport report = CheckRoleSet(AllOps(), *roles, source->main, source->startup);
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::kNote) std::cerr << finding.ToString() << "\n";
  }
  if (report.errors() > 0) return kExitFindings;
  const Status written = WriteRoles(*roles, source->job);
  return written.ok() ? kExitOk : BadInput(written);
}

}  // namespace penstock::tools
