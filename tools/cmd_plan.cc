// penstock plan: reports the memory, traffic and expected speed of a job, from a folder of role programs or
// from the source programs, which it transpiles first; or prints the plan by which the executor runs one
// program.
#include <gflags/gflags.h>

#include <iostream>

#include "executor/plan/plan_text.h"
#include "executor/schedule/memory_need.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/case/role_files.h"
#include "tools/command.h"
#include "tools/feed_shapes.h"
#include "tools/plan/rate.h"
#include "tools/plan/report.h"
#include "tools/source.h"
#include "transpiler/pipeline/transpile.h"

DEFINE_int64(rows_per_step, -1, "rows of each sparse table that one trainer touches in a step; -1: unknown");
DEFINE_int64(batch, -1, "examples in one trainer's step, for activations and looked-up rows; -1: unknown");
DEFINE_int32(steps_per_exchange, -1,
             "steps between two exchanges, in geo mode and local SGD; -1: as configured");
DEFINE_string(net, "", "bandwidth of a link each way, as 10Gbit or 1.2GB (per second); requires --step-ms");
DEFINE_double(step_ms, 0, "time of a step of one trainer alone, in milliseconds; requires --net");
DEFINE_double(message_us, 20, "cost of a message besides its bytes, in microseconds");
DEFINE_bool(pieces, false, "list the pieces of each pserver");
DEFINE_string(
    exec, "",
    "print the plan by which the executor runs this program, with --batch examples; "
    "PENSTOCK_LAYOUTS=plain turns off the choice of layouts, PENSTOCK_FUSION=off the fusion of ops");
DEFINE_bool(json, false, "print JSON; tools/plan/README.md lists its keys");
DEFINE_bool(dot, false, "print a graph in the dot language of Graphviz");

namespace penstock::tools {
namespace {

// -1 means that the flag is not set; the cost model checks all other values.
template <typename Int>
std::optional<Int> IfGiven(Int value) {
  return value == -1 ? std::nullopt : std::optional(value);
}

Result<JobQuestion> ReadQuestion() {
  if (FLAGS_json && FLAGS_dot) return InvalidArgument("E-usage", "plan: --json and --dot exclude each other");
  if (IsGiven("net") != IsGiven("step_ms")) {
    return InvalidArgument("E-usage", "plan: --net and --step-ms are given together or not at all");
  }
  JobQuestion question;
  question.cost = {.rows_per_step = IfGiven(FLAGS_rows_per_step),
                   .batch = IfGiven(FLAGS_batch),
                   .steps_per_exchange = IfGiven(FLAGS_steps_per_exchange)};
  if (!IsGiven("net")) return question;
  PENSTOCK_ASSIGN_OR_RETURN(const double rate, ParseRate(FLAGS_net));
  question.network = {.bits_per_second = rate, .step_ms = FLAGS_step_ms, .message_us = FLAGS_message_us};
  return question;
}

std::vector<cost::JobProgram> Named(const std::vector<check::RoleProgram>& programs) {
  std::vector<cost::JobProgram> out;
  out.reserve(programs.size());
  for (const check::RoleProgram& one : programs) out.push_back({one.file, &one.program});
  return out;
}

Result<cost::Job> JobOfFolder(const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const check::RoleFiles roles, ReadRoleFiles(folder, &Threads()));
  Result<cost::Job> job = cost::ReadJob(AllOps(), {.trainers = Named(roles.trainers),
                                                   .trainer_startups = Named(roles.trainer_startups),
                                                   .pservers = Named(roles.pservers)});
  return job.ok() ? std::move(job) : Result<cost::Job>(std::move(job).status().In(folder));
}

// A setting that role programs do not contain, or contain only as control flow.
std::optional<int> StepsPerExchange(const plan::TranspileConfig& config) {
  if (config.kind == plan::Kind::kGeo) return config.geo_push_every;
  if (config.collective_mode == "local_sgd") return config.local_sgd_k_steps;
  return std::nullopt;
}

Result<cost::Job> JobOfSource(JobQuestion& question) {
  PENSTOCK_ASSIGN_OR_RETURN(const Source source, ReadSource("plan"));
  question.like = source.job.config;
  if (!question.cost.steps_per_exchange)
    question.cost.steps_per_exchange = StepsPerExchange(source.job.config);
  PENSTOCK_ASSIGN_OR_RETURN(const RoleSet roles,
                            Transpile(AllOps(), source.main, source.startup, source.job.config));
  cost::JobPrograms programs;
  for (const TrainerPrograms& role : roles.trainers) {
    programs.trainers.push_back({StrCat("trainer ", role.trainer_id), &role.main});
    programs.trainer_startups.push_back({StrCat("trainer ", role.trainer_id, "'s startup"), &role.startup});
  }
  for (const PserverPrograms& role : roles.pservers) {
    programs.pservers.push_back({StrCat("pserver ", programs.pservers.size()), &role.main});
  }
  return cost::ReadJob(AllOps(), programs);
}

Result<JobReport> Report(const Arguments& arguments) {
  PENSTOCK_ASSIGN_OR_RETURN(JobQuestion question, ReadQuestion());
  PENSTOCK_ASSIGN_OR_RETURN(cost::Job job,
                            arguments.empty() ? JobOfSource(question) : JobOfFolder(arguments[0]));
  return MakeJobReport(std::move(job), question);
}

Result<std::string> ExecPlan() {
  if (FLAGS_batch <= 0) return InvalidArgument("E-usage", "plan: --exec requires --batch, at least 1");
  PENSTOCK_ASSIGN_OR_RETURN(const exec::FedShapes fed, ReadFedShapes("plan"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ReadProgramFile(FLAGS_exec, &Threads()));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<const exec::Specialisation> plan,
                            exec::PlanForFeeds(AllOps(), program, fed, exec::PlanOptionsBySetting()));
  return exec::PlanText(*plan);
}

int RunExecPlan(const Arguments& arguments) {
  if (!arguments.empty()) return BadUsage("plan", "--exec F --batch N");
  const Result<std::string> text = ExecPlan();
  if (!text.ok()) return BadInput(text.status());
  std::cout << *text;
  return kExitOk;
}

}  // namespace

int RunPlan(const Arguments& arguments) {
  if (IsGiven("exec")) return RunExecPlan(arguments);
  if (IsGiven("feed")) return BadInput(InvalidArgument("E-usage", "plan: --feed requires --exec"));
  if (arguments.size() != (HasSourcePrograms() ? 0 : 1)) {
    return BadUsage("plan", "DIR, or --main F --startup F --config F");
  }
  const Result<JobReport> report = Report(arguments);
  if (!report.ok()) return BadInput(report.status());
  std::cout << (FLAGS_json  ? ReportJson(*report)
                : FLAGS_dot ? ReportDot(*report)
                            : ReportText(*report, {.pieces = FLAGS_pieces}));
  return kExitOk;
}

}  // namespace penstock::tools
