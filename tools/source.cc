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
DEFINE_string(
    exchange, "",
    "sync: how dense gradients are added up: pserver, allreduce (among the trainers, whose "
    "addresses are in --config) or auto (for each parameter what the cost model finds faster); wins "
    "over --config");
DEFINE_double(exchange_gbit, 10,
              "--exchange auto: what a link carries each way, in Gbit/s; wins over --config");
DEFINE_double(exchange_message_us, 20,
              "--exchange auto: what a message costs beside its bytes, in microseconds; wins over --config");
DEFINE_string(
    on_uneven, "",
    "what trainers do whose batches differ in size or number: join, pad or error; wins over --config");

namespace penstock::tools {
namespace {

constexpr char kFluid18[] = "fluid-1.8";

Status Require(std::string_view command, std::string_view flag, const std::string& value) {
  if (!value.empty()) return OkStatus();
  return InvalidArgument("E-usage", command, ": --", flag, " is missing");
}

// One of a setting's words, or an error that lists them.
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

// What the command line says beside the file.
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
