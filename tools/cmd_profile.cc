// penstock profile: writes a page about the steps of a program, from the trace of the process that ran it.
#include <gflags/gflags.h>

#include <iostream>

#include "executor/observe/trace/read.h"
#include "executor/schedule/memory_need.h"
#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "framework/text/program_file.h"
#include "operators/all_ops.h"
#include "tools/command.h"
#include "tools/feed_shapes.h"
#include "tools/plan/numbers.h"
#include "tools/profile/page.h"
#include "tools/profile/report.h"
#include "tools/source.h"

DECLARE_int64(batch);
DEFINE_string(program, "", "the program that ran: its main program, or a role's; requires --batch");
DEFINE_string(role, "",
              "the process, as in `penstock trace`: \"trainer 0\"; default: the first that ran the program");
DEFINE_double(gemm_gflops, 0, "peak of products of matrices, in GFLOP/s; 0: measured now");
DEFINE_double(copy_gbytes, 0, "peak of memory, in GB/s read and written; 0: measured now");
DEFINE_int32(threads, 0, "threads with which peaks are measured; 0: OMP_NUM_THREADS, else all cores");

namespace penstock::tools {
namespace {

Status CheckFlags() {
  if (IsGiven("program") != IsGiven("batch"))
    return InvalidArgument("E-usage", "profile: --program and --batch are given together or not at all");
  if (!IsGiven("program") &&
      (IsGiven("feed") || IsGiven("gemm_gflops") || IsGiven("copy_gbytes") || IsGiven("threads")))
    return InvalidArgument("E-usage", "profile: --feed and the peaks of the machine require --program");
  if (FLAGS_gemm_gflops < 0 || FLAGS_copy_gbytes < 0 || FLAGS_threads < 0)
    return InvalidArgument("E-usage",
                           "profile: --gemm-gflops, --copy-gbytes and --threads must not be negative");
  return OkStatus();
}

// Sets the peaks and where they come from.
void AddPeaks(profile::Question& question) {
  const int threads = FLAGS_threads > 0 ? FLAGS_threads : bench::DefaultThreads();
  const std::string measured = StrCat("measured with ", Count(threads, "thread"));
  const bool measures = FLAGS_gemm_gflops == 0 || FLAGS_copy_gbytes == 0;
  const bench::Peaks now = measures ? bench::MeasurePeaks(threads) : bench::Peaks();
  question.peaks = {.flops = FLAGS_gemm_gflops > 0 ? FLAGS_gemm_gflops * 1e9 : now.flops,
                    .bytes = FLAGS_copy_gbytes > 0 ? FLAGS_copy_gbytes * 1e9 : now.bytes};
  question.source_of_flops = FLAGS_gemm_gflops > 0 ? "given" : measured;
  question.source_of_bytes = FLAGS_copy_gbytes > 0 ? "given" : measured;
}

Result<profile::Report> Profile(const std::string& folder) {
  PENSTOCK_RETURN_IF_ERROR(CheckFlags());
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<trace::ProcessTrace> job, trace::ReadFolder(folder));
  profile::Question question{.role = FLAGS_role};
  if (!IsGiven("program")) return profile::MakeReport(job, question);
  PENSTOCK_ASSIGN_OR_RETURN(const exec::FedShapes fed, ReadFedShapes("profile"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program program, ReadProgramFile(FLAGS_program, &Threads()));
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<const exec::Specialisation> plan,
                            exec::PlanForFeeds(AllOps(), program, fed, exec::PlanOptionsBySetting()));
  question.plan = plan.get();
  question.program = FLAGS_program;
  question.batch = FLAGS_batch;
  AddPeaks(question);
  return profile::MakeReport(job, question);
}

}  // namespace

int RunProfile(const Arguments& arguments) {
  if (arguments.empty() || arguments.size() > 2) return BadUsage("profile", "DIR [FILE]");
  const std::string out = arguments.size() > 1 ? arguments[1] : StrCat(arguments[0], "/profile.html");
  const Result<profile::Report> report = Profile(arguments[0]);
  if (!report.ok()) return BadInput(report.status());
  if (const Status written = WriteFile(out, profile::PageOf(*report)); !written.ok())
    return BadInput(written);
  std::cout << Count(static_cast<std::int64_t>(report->runs), report->has_plan ? "step" : "run") << " of "
            << report->role << ", median " << Fixed(static_cast<double>(report->median_ns) / 1e6, 3)
            << " ms\n"
            << "open " << out << " in a browser\n";
  return kExitOk;
}

}  // namespace penstock::tools
