#include "tools/cmd_ckpt_files.h"

#include <gflags/gflags.h>

#include <iostream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "executor/checkpoint/export.h"
#include "executor/checkpoint/export_parts.h"
#include "executor/checkpoint/writer.h"
#include "framework/text/program_file.h"
#include "tools/command.h"

DECLARE_string(main);
DEFINE_bool(numpy, false, "export: NAME.npy of each variable, instead of Fluid's files");
DEFINE_bool(safetensors, false,
            "export: safetensors files, for serving: TABLE.part-K with rows of a table, and variables");
DEFINE_int64(part_mb, 0,
             "export of arrays: MB (2^20 bytes) of a part of a table; memory for one part is used. "
             "safetensors: 256. NumPy: a table is one array, if this is not given");
DEFINE_int64(since, 0,
             "export of arrays: rows of tables that have changed after the checkpoint of this step, "
             "and TABLE.gone, the ids that have lost their rows");
DEFINE_bool(states, true, "export of arrays in parts: with what updates keep, such as moments");
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

namespace {

Status ExportAsTold(const checkpoint::Reader& reader, const std::string& out) {
  const bool parts = FLAGS_safetensors || FLAGS_part_mb != 0 || FLAGS_since != 0 || !FLAGS_states;
  if (FLAGS_numpy && FLAGS_safetensors)
    return InvalidArgument("E-usage", "ckpt export: give --numpy or --safetensors, not both");
  if (parts && !FLAGS_numpy && !FLAGS_safetensors) {
    return InvalidArgument("E-usage", "ckpt export: --part_mb, --since and --states need --numpy or ",
                           "--safetensors");
  }
  if (FLAGS_part_mb < 0 || FLAGS_part_mb > (std::int64_t{1} << 30) || FLAGS_since < 0) {
    return InvalidArgument("E-usage", "ckpt export: --part_mb ", FLAGS_part_mb, " and --since ", FLAGS_since,
                           " must not be below 0, and --part_mb at most 2^30");
  }
  if (!parts) {
    return FLAGS_numpy ? checkpoint::ExportNumpy(SystemDisk(), reader, out)
                       : checkpoint::ExportFluid(SystemDisk(), reader, out);
  }
  checkpoint::PartsOptions options{
      .format = FLAGS_numpy ? checkpoint::ArrayFormat::kNumpy : checkpoint::ArrayFormat::kSafetensors,
      .states = FLAGS_states};
  if (FLAGS_part_mb > 0) options.part_bytes = static_cast<std::size_t>(FLAGS_part_mb) << 20;
  if (FLAGS_since > 0) options.since = static_cast<std::uint64_t>(FLAGS_since);
  return checkpoint::ExportParts(SystemDisk(), reader, out, options);
}

}  // namespace

int ExportCheckpoint(const checkpoint::Found& found, const std::string& out) {
  const Result<checkpoint::Reader> reader = checkpoint::Reader::Make(SystemDisk(), found);
  if (!reader.ok()) return BadInput(reader.status());
  const Status status = ExportAsTold(*reader, out);
  if (!status.ok()) return BadInput(status);
  std::cout << "step " << found.step << "  " << reader->wholes().size() << " variables in " << out << "\n";
  return kExitOk;
}

int ImportCheckpoint(const std::string& folder, const std::string& to) {
  const Status status = Import(folder, to);
  return status.ok() ? kExitOk : BadInput(status);
}

}  // namespace penstock::tools
