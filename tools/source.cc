#include "tools/source.h"

#include <gflags/gflags.h>

#include <optional>

#include "framework/base/files.h"
#include "framework/text/program_file.h"
#include "tools/command.h"

DEFINE_string(main, "", "the main program, after minimize");
DEFINE_string(startup, "", "its startup program");
DEFINE_string(facts, "",
              "program.json: what the programs do not say of their parameters (tools/case/README.md)");
DEFINE_string(
    config, "",
    "case.json: addresses, trainers, slicing and mode; its keys are listed in tools/case/README.md");
DEFINE_string(compat, "", "fluid-1.8: role programs as Fluid 1.8.5 makes them, its defects included");
DEFINE_string(split_method, "",
              "who gets which slice: RoundRobin, HashName or SizeBalanced; wins over --config");
DEFINE_string(slicing, "", "how parameters are cut: fluid, even or mxnet; wins over --config");
DEFINE_string(
    clip, "",
    "whose gradients are clipped: local (each trainer's) or global (their mean); wins over --config");
DEFINE_int32(staleness, -1,
             "async: steps that a trainer may be ahead of the slowest; -1: any number; wins over --config");
DEFINE_int32(backup_trainers, 0,
             "sync: trainers that a step does not wait for, fewer than there are; wins over --config");
DEFINE_string(
    compression, "",
    "of gradients, as \"two_bit 0.5 from 65536, fc.w: none\": none, fp16, bf16, two_bit THRESHOLD or "
    "top_k RATIO, from so many elements on, and by parameter; wins over --config");

namespace penstock::tools {
namespace {

constexpr char kFluid18[] = "fluid-1.8";

Status Require(std::string_view command, std::string_view flag, const std::string& value) {
  if (!value.empty()) return OkStatus();
  return InvalidArgument("E-usage", command, ": --", flag, " is missing");
}

Status ApplyPolicyFlags(plan::TranspileConfig& config) {
  if (IsGiven("staleness"))
    config.staleness = FLAGS_staleness == -1 ? std::nullopt : std::optional<int>(FLAGS_staleness);
  if (IsGiven("backup_trainers")) config.backup_trainers = FLAGS_backup_trainers;
  if (FLAGS_compression.empty()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(config.compression, ParseCompression(FLAGS_compression));
  return OkStatus();
}

// What the command line says beside the file.
Status ApplyFlags(std::string_view command, plan::TranspileConfig& config) {
  config.dialect = FLAGS_compat.empty() ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  if (!FLAGS_split_method.empty()) {
    const std::optional<plan::Placement> placement = plan::PlacementFromName(FLAGS_split_method);
    if (!placement) {
      return InvalidArgument("E-usage", command, ": --split-method must be one of ", plan::PlacementNames(),
                             ", not ", Quote(FLAGS_split_method));
    }
    config.placement = *placement;
  }
  if (!FLAGS_slicing.empty()) {
    const std::optional<plan::Slicing> slicing = plan::SlicingFromName(FLAGS_slicing);
    if (!slicing) {
      return InvalidArgument("E-usage", command, ": --slicing must be one of ", plan::SlicingNames(),
                             ", not ", Quote(FLAGS_slicing));
    }
    config.slicing = *slicing;
  }
  if (!FLAGS_clip.empty()) {
    const std::optional<plan::Clip> clip = plan::ClipFromName(FLAGS_clip);
    if (!clip) {
      return InvalidArgument("E-usage", command, ": --clip must be one of local, global, not ",
                             Quote(FLAGS_clip));
    }
    config.clip = *clip;
  }
  return ApplyPolicyFlags(config);
}

}  // namespace

bool IsGiven(const char* flag) { return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default; }

bool HasSourcePrograms() { return !FLAGS_main.empty() || !FLAGS_startup.empty(); }

Result<Source> ReadSourcePrograms(std::string_view command) {
  PENSTOCK_RETURN_IF_ERROR(Require(command, "main", FLAGS_main));
  PENSTOCK_RETURN_IF_ERROR(Require(command, "startup", FLAGS_startup));
  Source source;
  PENSTOCK_ASSIGN_OR_RETURN(source.main, ReadProgramFile(FLAGS_main, &Threads()));
  PENSTOCK_ASSIGN_OR_RETURN(source.startup, ReadProgramFile(FLAGS_startup, &Threads()));
  if (FLAGS_facts.empty()) return source;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string facts, ReadFile(FLAGS_facts));
  Status applied = ApplyFacts(facts, source.main, source.startup);
  if (!applied.ok()) return std::move(applied).In(FLAGS_facts);
  return source;
}

Result<Source> ReadSource(std::string_view command) {
  if (!FLAGS_compat.empty() && FLAGS_compat != kFluid18) {
    return InvalidArgument("E-usage", command, ": --compat must be ", kFluid18, ", not ",
                           Quote(FLAGS_compat));
  }
  PENSTOCK_RETURN_IF_ERROR(Require(command, "config", FLAGS_config));
  PENSTOCK_ASSIGN_OR_RETURN(Source source, ReadSourcePrograms(command));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string config, ReadFile(FLAGS_config));
  Result<CaseFile> job = ParseCase(config);
  if (!job.ok()) return std::move(job).status().In(FLAGS_config);
  source.job = *std::move(job);
  PENSTOCK_RETURN_IF_ERROR(ApplyFlags(command, source.job.config));
  return source;
}

}  // namespace penstock::tools
