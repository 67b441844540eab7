// Places: runs a program for each of several places of this process at once.
#include <omp.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/process/place_rings.h"
#include "executor/schedule/executor.h"
#include "framework/runtime/batch_queue.h"
#include "framework/runtime/read_turns.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/feeds.h"
#include "python/src/place_threads.h"
#include "python/src/profiler.h"
#include "python/src/program_box.h"
#include "python/src/runner.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// What one place runs in a step.
struct PlaceRun {
  PlaceRun(const ProgramBox& box, std::shared_ptr<ScopeBox> scope_of_place, const py::list& fed,
           std::vector<std::string> fetched)
      : program(box.program),  // a copy shares everything, and stays as it is
        scope(std::move(scope_of_place)),
        in_use(scope),
        feeds(FeedsOf(fed)),
        fetches(std::move(fetched)) {}

  const Program program;
  const std::shared_ptr<ScopeBox> scope;
  const ScopeInUse in_use;
  const std::vector<exec::Feed> feeds;
  const std::vector<std::string> fetches;
  std::optional<Result<std::vector<Variable>>> result = {};
};

class PyPlaces {
 public:
  explicit PyPlaces(int places) : places_(places) { Make(); }

  // [(program, scope, feeds, fetches)] of the first places -> [a list of values, for each of them]. If the
  // places are independent, their programs exchange nothing: fewer runs than places are allowed, and a place
  // whose reader has ended yields None unless all have.
  py::list Run(const py::list& runs, bool independent) {
    std::vector<std::unique_ptr<PlaceRun>> all;
    for (const py::handle& run : runs) {
      const auto parts = run.cast<py::tuple>();
      all.push_back(std::make_unique<PlaceRun>(
          parts[0].cast<const ProgramBox&>(), parts[1].cast<std::shared_ptr<ScopeBox>>(),
          parts[2].cast<py::list>(), parts[3].cast<std::vector<std::string>>()));
    }
    if (all.empty() || all.size() > executors_.size() || (!independent && all.size() < executors_.size()))
      throw StatusError(InvalidArgument("E-collective-size", executors_.size(), " places are given ",
                                        all.size(), " programs"));
    if (failed_) Make();  // rings do not outlive an error
    turns_ = std::make_unique<ReadTurns>(static_cast<int>(all.size()));
    RunInterruptibly([&] { RunAll(all, independent); },
                     [&] {
                       for (const auto& executor : executors_) executor->Cancel();
                       Fail(Cancelled("E-cancelled", "the run was interrupted"));
                       BatchQueue::CancelWaits();
                     });
    if (failed_) throw StatusError(first_failure_);
    const bool all_ended = std::all_of(all.begin(), all.end(), [](const auto& run) { return Ended(*run); });
    py::list out;
    for (const auto& run : all) {
      if (Ended(*run) && !all_ended) {
        out.append(py::none());
      } else {
        out.append(HandlesOf(Take(*std::move(run->result))));
      }
    }
    return out;
  }

 private:
  void Make() {
    executors_.clear();
    rings_ = Take(process::MakePlaceRings(places_));
    for (const auto& rings : rings_) {
      executors_.push_back(std::make_unique<exec::Executor>(
          AllOps(), exec::ExecutorOptions{.threads = std::max(1, omp_get_max_threads() / places_),
                                          .rings = rings.get(),
                                          .timer = &TimerOfThisProcess()}));
    }
    failed_ = false;
    first_failure_ = OkStatus();
  }

  // Whether the place's reader has no more data.
  static bool Ended(const PlaceRun& run) { return run.result->status().id() == "E-read-end"; }

  void RunAll(const std::vector<std::unique_ptr<PlaceRun>>& all, bool independent) {
    const auto run = [&](std::size_t place) {
      const ReadTurns::Member here(*turns_, static_cast<int>(place));
      PlaceRun& own = *all[place];
      own.result = executors_[place]->Run(own.program, own.scope->scope, own.feeds, own.fetches);
      if (!own.result->ok() && !(independent && Ended(own))) Fail(own.result->status());
    };
    if (Status started = threads_.Run(all.size(), run); !started.ok()) Fail(started);
  }

  // The first error is that of the run: it ends the waits of all places, which fail because of it.
  void Fail(const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_) return;
      failed_ = true;
      first_failure_ = why;
    }
    for (const auto& rings : rings_) rings->Abort(why);
    turns_->Abort();
  }

  const int places_;
  std::vector<std::unique_ptr<process::PlaceRings>> rings_;
  std::vector<std::unique_ptr<exec::Executor>> executors_;
  PlaceThreads threads_;
  std::unique_ptr<ReadTurns> turns_;  // of the current run: place r reads the r-th next batch
  std::mutex mutex_;
  bool failed_ = false;
  Status first_failure_;
};

}  // namespace

void BindPlaces(py::module_& m) {
  py::class_<PyPlaces>(m, "Places").def(py::init<int>()).def("run", &PyPlaces::Run);
}

}  // namespace penstock::python
