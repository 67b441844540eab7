#include "tests/fuzz/executor/workers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "framework/base/check.h"
#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "tests/support/temp_dir.h"

namespace penstock::fuzz {
namespace {

constexpr std::size_t kReportBytes = 6000;

// One worker's cases: the numbers of its remainder, from `next` on. `at` is the current one of its process.
struct Worker {
  pid_t process = -1;
  std::uint64_t next = 0;
  std::atomic<std::uint64_t>* at = nullptr;
  std::string log;
};

class Crew {
 public:
  Crew(std::uint64_t first, std::uint64_t count, const WorkerOptions& options,
       const std::function<void(std::uint64_t)>& run)
      : end_(first + count),
        options_(options),
        run_(run),
        workers_(static_cast<std::size_t>(options.processes)) {
    const std::size_t bytes = sizeof(std::atomic<std::uint64_t>) * workers_.size();
    void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    PENSTOCK_CHECK(shared != MAP_FAILED, "no shared memory");
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].at =
          new (static_cast<std::atomic<std::uint64_t>*>(shared) + i) std::atomic<std::uint64_t>(0);
      workers_[i].next = first + i;
      workers_[i].log = dir_ / StrCat(i);
    }
  }

  std::vector<Finding> Run() {
    for (Worker& worker : workers_) Start(worker);
    for (;;) {
      int status = 0;
      const pid_t process = waitpid(-1, &status, 0);
      if (process < 0) return std::move(findings_);
      const auto ended = std::ranges::find(workers_, process, &Worker::process);
      if (ended == workers_.end()) continue;
      ended->process = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      findings_.push_back({ended->at->load(), Report(*ended, status)});
      if (static_cast<int>(findings_.size()) >= options_.findings_max) continue;
      ended->next = ended->at->load() + workers_.size();
      Start(*ended);
    }
  }

 private:
  void Start(Worker& worker) {
    if (worker.next >= end_) return;
    worker.process = fork();
    PENSTOCK_CHECK(worker.process >= 0, "no process");
    if (worker.process > 0) return;
    const int log = open(worker.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, STDERR_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    for (std::uint64_t n = worker.next; n < end_; n += workers_.size()) {
      worker.at->store(n);
      (void)ftruncate(log, 0);
      (void)lseek(log, 0, SEEK_SET);
      alarm(options_.seconds_max);
      RunOne(n);
    }
    _exit(0);
  }

  // An uncaught exception ends the process, as it would end a user's.
  void RunOne(std::uint64_t n) noexcept { run_(n); }

  static std::string Report(const Worker& worker, int status) {
    const std::string how = !WIFSIGNALED(status)          ? StrCat("exit ", WEXITSTATUS(status))
                            : WTERMSIG(status) == SIGALRM ? std::string("it does not end")
                                                          : StrCat("signal ", WTERMSIG(status));
    const Result<std::string> log = ReadFile(worker.log);
    return StrCat(how, "\n", log.ok() ? log->substr(0, kReportBytes) : "");
  }

  const test::TempDir dir_;
  const std::uint64_t end_;
  const WorkerOptions options_;
  const std::function<void(std::uint64_t)>& run_;
  std::vector<Worker> workers_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> RunCases(std::uint64_t first, std::uint64_t count, const WorkerOptions& options,
                              const std::function<void(std::uint64_t)>& run) {
  return Crew(first, count, options, run).Run();
}

}  // namespace penstock::fuzz

// A buffer larger than memory is an error of the run; single allocations of C++ code are never that large.
extern "C" const char* __asan_default_options();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "allocator_may_return_null=1:max_allocation_size_mb=1024:handle_abort=1:detect_leaks=0";
}
