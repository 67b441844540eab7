#include "tools/profile/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "executor/graph/explain.h"
#include "executor/observe/trace/perfetto.h"
#include "framework/base/strings.h"
#include "tools/profile/op_work.h"
#include "tools/profile/steps.h"

namespace penstock::profile {
namespace {

std::string NameOf(const trace::ProcessTrace& process) {
  return process.role.empty() ? StrCat("process ", process.pid) : process.role;
}

// The process of the question and its runs.
struct Found {
  const trace::ProcessTrace* process = nullptr;
  Steps steps;
};

std::string ProgramText(const Question& question) {
  return StrCat(question.program, " with a batch of ", question.batch);
}

Status NoRuns(const std::vector<std::string>& looked_in, const Question& question) {
  const std::string where = Join(looked_in, ", ");
  if (question.plan == nullptr)
    return InvalidArgument("E-profile-runs", "profile: the trace of ", where, " has no run of a program");
  return InvalidArgument("E-profile-runs", "profile: the trace of ", where,
                         " has no whole run of block 0 of ", ProgramText(question));
}

Result<Found> Find(const std::vector<trace::ProcessTrace>& job, const Question& question) {
  std::vector<std::string> names, looked_in;
  for (const std::size_t i : trace::OrderOf(job)) {
    names.push_back(NameOf(job[i]));
    if (!question.role.empty() && names.back() != question.role) continue;
    looked_in.push_back(names.back());
    Found found{&job[i], {}};
    std::vector<Run> runs = RunsOf(job[i]);
    if (question.plan != nullptr) {
      found.steps = StepsOf(*question.plan, runs);
    } else {
      found.steps.runs = std::move(runs);
    }
    if (!found.steps.runs.empty()) return found;
  }
  if (looked_in.empty()) {
    return InvalidArgument("E-profile-role", "profile: no process of the trace is ", Quote(question.role),
                           "; it has ", Join(names, ", "));
  }
  return NoRuns(looked_in, question);
}

void AddTimes(const std::vector<Run>& runs, Report& report) {
  std::map<std::string_view, std::size_t> index;
  std::vector<std::int64_t> durations;
  for (const Run& run : runs) {
    durations.push_back(run.ns());
    for (const OpRun& op : run.ops) {
      const auto [found, is_new] = index.try_emplace(op.type, report.types.size());
      if (is_new) report.types.push_back({.type = std::string(op.type)});
      TypeRow& row = report.types[found->second];
      ++row.calls;
      row.total_ns += op.self_ns;
      row.waited_ns += op.waited_ns;
      report.op_ns += op.self_ns;
    }
  }
  report.runs = runs.size();
  report.median_ns = MedianOf(durations);
  report.least_ns = std::ranges::min(durations);
  report.most_ns = std::ranges::max(durations);
  report.run_ns = std::accumulate(durations.begin(), durations.end(), std::int64_t{0});
}

OpRow RowOf(const exec::Specialisation& plan, std::size_t i, std::int64_t ns, const bench::Peaks& peaks) {
  const exec::Instruction& instruction = plan.block->instructions[i];
  OpRow row{.type = instruction.op->type(), .line = instruction.op->location()};
  row.position = instruction.position;
  row.ns = ns;
  const auto outputs = plan.OutputsOf(i);
  if (!outputs.empty()) {
    row.result = plan.block->slots[static_cast<std::size_t>(outputs[0].slot)].name;
    row.result_type = exec::TypeText(plan.type(outputs[0].type));
  }
  const OpWork work = WorkOf(plan, i);
  row.flops = work.flops;
  row.bytes = work.bytes;
  if (work.bytes) row.least_ns = *work.bytes / peaks.bytes * 1e9;
  if (work.flops) row.least_ns = std::max(row.least_ns.value_or(0), *work.flops / peaks.flops * 1e9);
  return row;
}

void AddWork(const std::vector<OpRow>& ops, std::vector<TypeRow>& types) {
  for (const OpRow& op : ops) {
    const auto row = std::ranges::find(types, op.type, &TypeRow::type);
    if (row == types.end() || op.ns < 0) continue;
    const auto ns = static_cast<double>(op.ns);
    if (op.flops) row->flops += *op.flops, row->flops_ns += ns, ++row->known_flops;
    if (op.bytes) row->bytes += *op.bytes, row->bytes_ns += ns, ++row->known_bytes;
  }
}

// When each instruction began in a run; one that the run does not have, when the one before it did.
std::vector<std::int64_t> BeginsIn(const Run& run, const InstructionOf& match, std::size_t instructions) {
  std::vector<std::int64_t> begins(instructions, -1);
  for (std::size_t k = 0; k < match.size(); ++k) {
    if (match[k] >= 0) begins[static_cast<std::size_t>(match[k])] = run.ops[k].begin_ns - run.begin_ns;
  }
  std::int64_t last = 0;
  for (std::int64_t& begin : begins) last = begin = std::max(begin, last);
  return begins;
}

// "backward", "updates": from the first op with the role.
std::vector<Phase> PhasesOf(const exec::CompiledBlock& block, const std::vector<std::int64_t>& begins) {
  std::vector<Phase> phases;
  const auto add = [&](const char* name, OpRole role) {
    const auto has_role = [role](const exec::Instruction& instruction) {
      return Has(instruction.op->role(), role);
    };
    const auto first = std::ranges::find_if(block.instructions, has_role);
    if (first != block.instructions.end() && first != block.instructions.begin())
      phases.push_back({name, begins[static_cast<std::size_t>(first - block.instructions.begin())]});
  };
  add("backward", OpRole::kBackward);
  add("updates", OpRole::kOptimize);
  return phases;
}

void AddPlan(const Question& question, const Steps& steps, Report& report) {
  const exec::Specialisation& plan = *question.plan;
  report.has_plan = true;
  report.program = question.program;
  report.batch = question.batch;
  report.peaks = question.peaks;
  report.source_of_flops = question.source_of_flops;
  report.source_of_bytes = question.source_of_bytes;
  for (std::size_t i = 0; i < plan.block->instructions.size(); ++i)
    report.ops.push_back(RowOf(plan, i, steps.median_ns[i], question.peaks));
  AddWork(report.ops, report.types);
  report.begins = BeginsIn(steps.runs[steps.median_run], steps.matches[steps.median_run], report.ops.size());
  report.phases = PhasesOf(*plan.block, report.begins);
  report.memory = LiveMemoryOf(plan);
  for (const LiveValue& value : report.memory.at_peak) {
    report.peak_names.push_back(plan.block->slots[static_cast<std::size_t>(value.slot)].name);
    const auto place = std::ranges::find(plan.places, value.slot, &exec::Place::slot);
    report.peak_types.push_back(exec::TypeText(plan.type(place->type)));
  }
}

}  // namespace

Result<Report> MakeReport(const std::vector<trace::ProcessTrace>& job, const Question& question) {
  PENSTOCK_ASSIGN_OR_RETURN(const Found found, Find(job, question));
  Report report;
  report.role = NameOf(*found.process);
  AddTimes(found.steps.runs, report);
  std::ranges::stable_sort(report.types, std::greater<>(), &TypeRow::total_ns);
  if (question.plan != nullptr) AddPlan(question, found.steps, report);
  return report;
}

}  // namespace penstock::profile
