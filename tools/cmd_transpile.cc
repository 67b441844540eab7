// penstock transpile: the programs of all roles, from one program and a description of the job.
#include <gflags/gflags.h>

#include <filesystem>
#include <map>

#include "framework/base/files.h"
#include "framework/ir/wire.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/case/case_file.h"
#include "tools/command.h"
#include "transpiler/pipeline/transpile.h"

DEFINE_string(main, "", "the main program, after minimize");
DEFINE_string(startup, "", "its start-up program");
DEFINE_string(facts, "", "program.json: what the programs do not say of their parameters");
DEFINE_string(config, "", "case.json: addresses, trainers, slicing and mode");
DEFINE_string(compat, "", "fluid-1.8: role programs as Fluid 1.8.5 makes them, its defects included");
DEFINE_string(out, "", "the folder that the role programs and plan.txt are written to");

namespace penstock::tools {
namespace {

constexpr char kFluid18[] = "fluid-1.8";

Status RequireFlags() {
  const std::map<std::string, std::string> required = {
      {"main", FLAGS_main}, {"startup", FLAGS_startup}, {"config", FLAGS_config}, {"out", FLAGS_out}};
  for (const auto& [name, value] : required) {
    if (value.empty()) return InvalidArgument("E-usage", "transpile: --", name, " is missing");
  }
  if (FLAGS_compat.empty() || FLAGS_compat == kFluid18) return OkStatus();
  return InvalidArgument("E-usage", "transpile: --compat must be ", kFluid18, ", not ", Quote(FLAGS_compat));
}

struct Inputs {
  Program main, startup;
  CaseFile job;
};

Result<Inputs> ReadInputs() {
  Inputs inputs;
  PENSTOCK_ASSIGN_OR_RETURN(inputs.main, ReadProgramFile(FLAGS_main));
  PENSTOCK_ASSIGN_OR_RETURN(inputs.startup, ReadProgramFile(FLAGS_startup));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config, ReadFile(FLAGS_config));
  Result<CaseFile> job = ParseCase(config);
  if (!job.ok()) return std::move(job).status().In(FLAGS_config);
  inputs.job = *std::move(job);
  inputs.job.config.dialect = FLAGS_compat.empty() ? Dialect::kDefault : Dialect::kFluid18;
  if (FLAGS_facts.empty()) return inputs;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string facts, ReadFile(FLAGS_facts));
  Status applied = ApplyFacts(facts, inputs.main, inputs.startup);
  if (!applied.ok()) return std::move(applied).In(FLAGS_facts);
  return inputs;
}

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
  Status flags = RequireFlags();
  if (!flags.ok()) return BadInput(flags);
  const Result<Inputs> inputs = ReadInputs();
  if (!inputs.ok()) return BadInput(inputs.status());
  const Result<RoleSet> roles = Transpile(AllOps(), inputs->main, inputs->startup, inputs->job.config);
  if (!roles.ok()) return BadInput(roles.status());
  const Status written = WriteRoles(*roles, inputs->job);
  return written.ok() ? kExitOk : BadInput(written);
}

}  // namespace penstock::tools
