#include "tools/cmd_ckpt_files.h"

#include <gflags/gflags.h>

#include <iostream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "executor/checkpoint/export.h"
#include "executor/checkpoint/writer.h"
#include "framework/text/program_file.h"
#include "tools/command.h"

DECLARE_string(main);
DEFINE_bool(numpy, false, "export: NAME.npy of each variable, instead of Fluid's files");
DEFINE_int64(step, 0, "import: the number of complete steps of the checkpoint; required");

namespace penstock::tools {
namespace {

using checkpoint::Described;
using checkpoint::ValueKind;

// What the updates of the program keep, or only read: the variables of ops with the slot Param.
void DescribeUpdates(const Program& program, std::map<std::string, Described>& variables) {
  for (const OpEntry& entry : program.main().ops()) {
    const std::string& param = entry.op->InputName("Param");
    if (param.empty()) continue;
    const std::vector<std::string> written = entry.op->OutputNames();
    for (const std::string& name : entry.op->InputNames()) {
      const Var* var = program.main().FindVar(name);
      if (var == nullptr || !var->persistable || name == entry.op->InputName("Grad")) continue;
      const bool keeps = std::ranges::find(written, name) != written.end();
      const ValueKind kind = name == param ? ValueKind::kParam
                             : keeps       ? ValueKind::kState
                                           : ValueKind::kConstant;
      variables[name] = {.kind = kind, .of = param};
    }
  }
}

std::map<std::string, Described> Describe(const Program& program) {
  std::map<std::string, Described> variables;
  DescribeUpdates(program, variables);
  for (const auto& var : program.main().vars()) {
    if (!var->persistable || var->kind != VarKind::kTensor || variables.contains(var->name)) continue;
    bool written = false;
    for (const OpEntry& entry : program.main().ops()) {
      const std::vector<std::string> names = entry.op->OutputNames();
      written = written || std::ranges::find(names, var->name) != names.end();
    }
    // Without an update: a counter of the schedule, a frozen parameter, or what only trainers have.
    variables[var->name] = {.kind = written ? ValueKind::kSchedule : ValueKind::kParam,
                            .of = written ? "" : var->name,
                            .optional = true};
  }
  return variables;
}

Status Import(const std::string& folder, const std::string& to) {
  if (FLAGS_main.empty()) return InvalidArgument("E-usage", "ckpt import: --main is missing");
  if (FLAGS_step <= 0)
    return InvalidArgument("E-usage", "ckpt import: --step must be above 0, not ", FLAGS_step);
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ReadProgramFile(FLAGS_main, &Threads()));
  const auto step = static_cast<std::uint64_t>(FLAGS_step);
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<checkpoint::Found> all,
                            checkpoint::FindCheckpoints(SystemDisk(), to));
  if (!all.empty()) {
    return FailedPrecondition("E-checkpoint-exists", to, " has a checkpoint already, of step ",
                              all.back().step)
        .With("give another folder");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<checkpoint::Value> values,
                            checkpoint::ImportFluid(SystemDisk(), folder, Describe(program)));
  checkpoint::Writer writer(SystemDisk(), {.folder = to, .keep = std::numeric_limits<int>::max()});
  PENSTOCK_RETURN_IF_ERROR(
      writer.Write({.step = step, .server = 0, .servers = 1, .run = "import", .values = {}}, values));
  std::cout << checkpoint::StepFolder(to, step) << ": " << values.size() << " values\n";
  return OkStatus();
}

}  // namespace

int ExportCheckpoint(const checkpoint::Found& found, const std::string& out) {
  const Result<checkpoint::Reader> reader = checkpoint::Reader::Make(SystemDisk(), found);
  if (!reader.ok()) return BadInput(reader.status());
  const Status status = FLAGS_numpy ? checkpoint::ExportNumpy(SystemDisk(), *reader, out)
                                    : checkpoint::ExportFluid(SystemDisk(), *reader, out);
  if (!status.ok()) return BadInput(status);
  std::cout << "step " << found.step << "  " << reader->wholes().size() << " variables in " << out << "\n";
  return kExitOk;
}

int ImportCheckpoint(const std::string& folder, const std::string& to) {
  const Status status = Import(folder, to);
  return status.ok() ? kExitOk : BadInput(status);
}

}  // namespace penstock::tools
