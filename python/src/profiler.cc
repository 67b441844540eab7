// Bindings of the op timer, which fluid.profiler uses, and of the merging of traces, which the launcher uses.
#include "python/src/profiler.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "executor/observe/trace/merge.h"
#include "framework/runtime/clock.h"
#include "python/src/bind.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

std::int64_t TicksOf(Nanoseconds span) { return span.count(); }

// [(type, calls, total, min, max)], in nanoseconds
py::list Times() {
  py::list out;
  for (const exec::OpTimes& times : TimerOfThisProcess().Times()) {
    out.append(py::make_tuple(times.type, times.count, TicksOf(times.total), TicksOf(times.min),
                              TicksOf(times.max)));
  }
  return out;
}

// ([(index into times, thread, begin, end)], number of events that were not kept)
py::tuple Events() {
  py::list out;
  for (const exec::OpEvent& event : TimerOfThisProcess().Events()) {
    out.append(py::make_tuple(event.type, event.thread, TicksOf(event.begin), TicksOf(event.end)));
  }
  return py::make_tuple(std::move(out), TimerOfThisProcess().events_left_out());
}

// Merges the traces in `folder` into the file `out`. [(role, file, events, events left out)]
py::list Merge(const std::string& folder, const std::string& out) {
  const trace::MergedTrace merged = Take(trace::MergeTraces(folder, out));
  py::list processes;
  for (const trace::MergedTrace::Process& one : merged.processes)
    processes.append(py::make_tuple(one.role, one.file, one.events, one.left_out));
  return processes;
}

}  // namespace

exec::OpTimer& TimerOfThisProcess() {
  static auto* timer = new exec::OpTimer(SystemClock(), trace::Tracer::OfThisProcess());
  return *timer;
}

void BindProfiler(py::module_& m) {
  m.def("start_op_timer", [] { TimerOfThisProcess().Start(); });
  m.def("stop_op_timer", [] { TimerOfThisProcess().Stop(); });
  m.def("reset_op_timer", [] { TimerOfThisProcess().Reset(); });
  m.def("op_timer_runs", [] { return TimerOfThisProcess().profiles(); });
  m.def("op_times", &Times);
  m.def("op_events", &Events);
  m.def("merge_traces", &Merge);
}

}  // namespace penstock::python
