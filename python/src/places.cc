// Places: runs a program on several places of this process at once.
#include "executor/process/places.h"

#include <omp.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/runtime/batch_queue.h"
#include "operators/all_ops.h"
#include "python/src/arrivals.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/feeds.h"
#include "python/src/profiler.h"
#include "python/src/program_box.h"
#include "python/src/runner.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

class PyPlaces {
 public:
  explicit PyPlaces(int places)
      : places_(Take(process::Places::Make(AllOps(), {.places = places,
                                                      .threads = std::max(1, omp_get_max_threads() / places),
                                                      .timer = &TimerOfThisProcess()}))) {}

  // Parts of the first places, [(scope, feeds)] -> [a list of values, for each of them]. With `apart`, a
  // place whose reader has ended yields None unless all have.
  py::list Run(const ProgramBox& box, const std::vector<std::string>& fetches, const py::list& parts,
               bool apart) {
    const Program program = box.program;  // a copy shares everything, and stays as it is
    std::vector<std::shared_ptr<ScopeBox>> scopes;
    std::vector<std::unique_ptr<ScopeInUse>> in_use;
    std::vector<process::PlacePart> all;
    for (const py::handle& part : parts) {
      const auto given = part.cast<py::tuple>();
      scopes.push_back(given[0].cast<std::shared_ptr<ScopeBox>>());
      in_use.push_back(std::make_unique<ScopeInUse>(scopes.back()));
      all.push_back({.scope = &scopes.back()->scope, .feeds = FeedsOf(given[1].cast<py::list>())});
    }
    AwaitAllArrivals();
    Status status;
    const auto are = apart ? process::PlacesAre::kApart : process::PlacesAre::kTogether;
    RunInterruptibly([&] { status = places_->Run(program, fetches, all, are); },
                     [&] {
                       places_->Cancel(Cancelled("E-cancelled", "the run was interrupted"));
                       BatchQueue::CancelWaits();
                     });
    Check(status);
    py::list out;
    for (process::PlacePart& part : all) {
      if (part.end_of_reader.ok()) {
        out.append(HandlesOf(std::move(part.values)));
      } else {
        out.append(py::none());
      }
    }
    return out;
  }

  // For tests: how many programs were compiled, plans and frames made.
  py::dict Stats() const {
    const exec::ExecutorStats stats = places_->stats();
    py::dict out;
    out["compiled"] = stats.compiled_count;
    out["plans"] = stats.specialised_count;
    out["frames"] = stats.frame_count;
    return out;
  }

 private:
  const std::unique_ptr<process::Places> places_;
};

}  // namespace

void BindPlaces(py::module_& m) {
  py::class_<PyPlaces>(m, "Places")
      .def(py::init<int>())
      .def("run", &PyPlaces::Run)
      .def("stats", &PyPlaces::Stats);
  m.def("written_at_each_place",
        [](const ProgramBox& box) { return process::WrittenAtEachPlace(box.program); });
}

}  // namespace penstock::python
