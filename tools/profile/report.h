// What the page of a step says: times by op type and by op, the work of each op beside the peaks of the
// machine, and the memory of the run.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const Report report, MakeReport(job, {.plan = plan.get(), .peaks = peaks}));
//   PENSTOCK_RETURN_IF_ERROR(WriteFile("step.html", PageOf(report)));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/graph/specialise.h"
#include "executor/observe/trace/read.h"
#include "framework/base/status.h"
#include "tools/peaks/peaks.h"
#include "tools/profile/live_memory.h"

namespace penstock::profile {

struct Question {
  std::string role = {};  // of the process; "": the first one that ran the program
  // The plan of the program that ran; null: the page has only times, of all runs.
  const exec::Specialisation* plan = nullptr;
  std::string program = {};  // its file
  std::int64_t batch = 0;
  bench::Peaks peaks = {};
  std::string source_of_flops = {}, source_of_bytes = {};  // "measured with 2 threads"
};

// Of all ops of one type, in all runs of the report.
struct TypeRow {
  std::string type;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;   // without the ops of blocks that it runs
  std::int64_t waited_ns = 0;  // of that
  // Of a step, and of the ops whose work is known.
  double flops = 0, flops_ns = 0, bytes = 0, bytes_ns = 0;
  int known_flops = 0, known_bytes = 0;
};

// An instruction of the plan.
struct OpRow {
  std::string type, result, result_type, line;
  int position = 0;
  std::int64_t ns = 0;  // the median of all runs
  std::optional<double> flops, bytes;
  // The least time at the machine's peaks, absent where nothing is known of the op's work.
  std::optional<double> least_ns;
};

// When a part of the step begins.
struct Phase {
  std::string name;
  std::int64_t ns = 0;
};

struct Report {
  std::string role;
  std::size_t runs = 0;
  std::int64_t median_ns = 0, least_ns = 0, most_ns = 0;  // of a run
  std::int64_t run_ns = 0, op_ns = 0;                     // of all runs; of all their ops
  std::vector<TypeRow> types;                             // the longest first
  // With a plan:
  bool has_plan = false;
  std::string program, source_of_flops, source_of_bytes;
  std::int64_t batch = 0;
  bench::Peaks peaks;
  std::vector<OpRow> ops;            // in the order of the plan
  std::vector<std::int64_t> begins;  // of each instruction, in the run with the median duration
  std::vector<Phase> phases;
  LiveMemory memory;
  std::vector<std::string> peak_names, peak_types;  // of memory.at_peak
};

// kInvalidArgument E-profile-role: no process has the role. E-profile-runs: the process has no run, or none
// of the program.
Result<Report> MakeReport(const std::vector<trace::ProcessTrace>& job, const Question& question);

}  // namespace penstock::profile
