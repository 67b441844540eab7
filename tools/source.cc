#include "tools/source.h"

#include <gflags/gflags.h>

#include <optional>

#include "framework/base/files.h"
#include "framework/text/program_file.h"
#include "tools/command.h"

DEFINE_string(main, "", "the main program, after minimize");
DEFINE_string(startup, "", "its startup program");
DEFINE_string(facts, "", "program.json: properties that the programs do not contain (tools/case/README.md)");
DEFINE_string(config, "",
              "case.json: addresses, trainers, slicing and mode; tools/case/README.md lists its keys");
DEFINE_string(compat, "", "fluid-1.8: make the role programs of Fluid 1.8.5, including its defects");
DEFINE_string(split_method, "",
              "assigns slices to pservers: RoundRobin, HashName or SizeBalanced; overrides --config");
DEFINE_string(slicing, "", "how parameters are sliced: fluid, even or mxnet; overrides --config");
DEFINE_string(
    clip, "",
    "which gradients are clipped: local (each trainer's) or global (their mean); overrides --config");
DEFINE_int32(staleness, -1,
             "async: steps that a trainer may be ahead of the slowest; -1: unbounded; overrides --config");
DEFINE_int32(backup_trainers, 0,
             "sync: number of trainers for which a step does not wait; overrides --config");
DEFINE_string(
    compression, "",
    "compression of gradients, as \"two_bit 0.5 from 65536, fc.w: none\": none, fp16, bf16, two_bit "
    "THRESHOLD or top_k RATIO, by minimum number of elements and by parameter; overrides --config");
DEFINE_string(
    exchange, "",
    "sync: how dense gradients are summed: pserver, allreduce (among the trainers, whose addresses are "
    "in --config) or auto (for each parameter, the faster by the cost model); overrides --config");
DEFINE_double(exchange_gbit, 10,
              "--exchange auto: bandwidth of a link in each direction, in Gbit/s; overrides --config");
DEFINE_double(exchange_message_us, 20,
              "--exchange auto: cost of a message besides its bytes, in microseconds; overrides --config");
DEFINE_string(on_uneven, "",
              "if trainers' batches differ in size or number: join, pad or error; overrides --config");

namespace penstock::tools {
namespace {

constexpr char kFluid18[] = "fluid-1.8";

Status Require(std::string_view command, std::string_view flag, const std::string& value) {
  if (!value.empty()) return OkStatus();
  return InvalidArgument("E-usage", command, ": --", flag, " is missing");
}

// Sets `setting` to the parsed `word`; an unknown word is an error that lists the known ones.
template <typename Value>
Status ApplyWord(std::string_view command, std::string_view flag, const std::string& word,
                 std::optional<Value> known, std::string_view words, Value& setting) {
  if (word.empty()) return OkStatus();
  if (!known) {
    return InvalidArgument("E-usage", command, ": --", flag, " must be one of ", words, ", not ",
                           Quote(word));
  }
  setting = *known;
  return OkStatus();
}

Status ApplyPolicyFlags(plan::TranspileConfig& config) {
  if (IsGiven("staleness"))
    config.staleness = FLAGS_staleness == -1 ? std::nullopt : std::optional<int>(FLAGS_staleness);
  if (IsGiven("backup_trainers")) config.backup_trainers = FLAGS_backup_trainers;
  if (FLAGS_compression.empty()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(config.compression, ParseCompression(FLAGS_compression));
  return OkStatus();
}

// The flags that override the file's settings.
Status ApplyFlags(std::string_view command, plan::TranspileConfig& config) {
  config.dialect = FLAGS_compat.empty() ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  PENSTOCK_RETURN_IF_ERROR(ApplyWord(command, "split-method", FLAGS_split_method,
                                     plan::PlacementFromName(FLAGS_split_method), plan::PlacementNames(),
                                     config.placement));
  PENSTOCK_RETURN_IF_ERROR(ApplyWord(command, "slicing", FLAGS_slicing, plan::SlicingFromName(FLAGS_slicing),
                                     plan::SlicingNames(), config.slicing));
  PENSTOCK_RETURN_IF_ERROR(
      ApplyWord(command, "clip", FLAGS_clip, plan::ClipFromName(FLAGS_clip), "local, global", config.clip));
  PENSTOCK_RETURN_IF_ERROR(ApplyWord(command, "exchange", FLAGS_exchange,
                                     plan::DenseExchangeFromName(FLAGS_exchange), "pserver, allreduce, auto",
                                     config.dense));
  if (IsGiven("exchange_gbit")) config.exchange_gbit = FLAGS_exchange_gbit;
  if (IsGiven("exchange_message_us")) config.exchange_message_us = FLAGS_exchange_message_us;
  PENSTOCK_RETURN_IF_ERROR(ApplyWord(command, "on-uneven", FLAGS_on_uneven, OnUnevenFromName(FLAGS_on_uneven),
                                     "join, pad, error", config.on_uneven));
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
  Status flags;
  Result<CaseFile> job = ParseCase(config, {}, [&](plan::TranspileConfig& read) {
    flags = ApplyFlags(command, read);
    return flags;
  });
  PENSTOCK_RETURN_IF_ERROR(std::move(flags));
  if (!job.ok()) return std::move(job).status().In(FLAGS_config);
  source.job = *std::move(job);
  return source;
}

}  // namespace penstock::tools
