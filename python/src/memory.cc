// Bindings that rewrite a program to use less memory, and that estimate how much memory a program needs.
#include "transpiler/memory/memory.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "executor/schedule/memory_need.h"
#include "framework/tensor/buffer_bytes.h"
#include "operators/all_ops.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

memory::NameSet Names(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

// (program, report)
py::tuple Pair(const memory::MemoryRewrite& less) {
  return py::make_tuple(std::make_shared<ProgramBox>(ProgramBox{less.program}), less.Report());
}

py::tuple Reuse(const ProgramBox& box, const std::vector<std::string>& keep, bool larger_buffers,
                bool skip_grads) {
  return Pair(Take(memory::ReuseBuffers(
      AllOps(), box.program,
      {.keep = Names(keep), .larger_buffers = larger_buffers, .skip_grads = skip_grads})));
}

py::tuple Release(const ProgramBox& box, const std::vector<std::string>& keep) {
  return Pair(Take(memory::ReleaseBuffers(AllOps(), box.program, Names(keep))));
}

// shapes: of feeds for which the batch size does not stand.
exec::MemoryNeed NeedOf(const ProgramBox& box, Dim batch,
                        const std::map<std::string, std::vector<Dim>>& shapes) {
  exec::FedShapes fed{.batch = batch};
  for (const auto& [name, extents] : shapes) fed.shapes.emplace(name, Shape(extents));
  return Take(exec::MemoryNeedOf(AllOps(), box.program, fed));
}

// (bytes planned, bytes if no two temporaries shared memory, ops whose sizes depend on values)
py::tuple Need(const ProgramBox& box, Dim batch, const std::map<std::string, std::vector<Dim>>& shapes) {
  const exec::MemoryNeed need = NeedOf(box, batch, shapes);
  return py::make_tuple(need.Planned(), need.Unshared(), need.late_ops);
}

py::dict NeedByPart(const ProgramBox& box, Dim batch, const std::map<std::string, std::vector<Dim>>& shapes) {
  const exec::MemoryNeed need = NeedOf(box, batch, shapes);
  py::dict parts;
  parts["persistable"] = need.persistable;
  parts["fed"] = need.fed;
  parts["arena"] = need.arena;
  parts["own_buffers"] = need.own_buffers;
  parts["workspace"] = need.workspace;
  return parts;
}

// (bytes that buffers hold now, at most since the last reset)
py::tuple Held() {
  const BufferBytes held = HeldByBuffers();
  return py::make_tuple(held.now, held.peak);
}

}  // namespace

void BindMemory(py::module_& m) {
  m.def("reuse_buffers", &Reuse);
  m.def("release_buffers", &Release);
  m.def("memory_need", &Need, py::arg("program"), py::arg("batch"),
        py::arg("shapes") = std::map<std::string, std::vector<Dim>>());
  m.def("memory_need_by_part", &NeedByPart);
  m.def("buffer_bytes", &Held);
  m.def("reset_peak_of_buffers", &ResetPeakOfBuffers);
}

}  // namespace penstock::python
