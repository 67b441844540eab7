// Bindings that rewrite a program to use less memory, and that estimate how much memory a program needs.
#include "transpiler/memory/memory.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "executor/schedule/memory_need.h"
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

// (bytes planned, bytes if no two temporaries shared memory, ops whose sizes depend on values)
py::tuple Need(const ProgramBox& box, Dim batch) {
  const exec::MemoryNeed need = Take(exec::MemoryNeedOf(AllOps(), box.program, batch));
  return py::make_tuple(need.Planned(), need.Unshared(), need.late_ops);
}

}  // namespace

void BindMemory(py::module_& m) {
  m.def("reuse_buffers", &Reuse);
  m.def("release_buffers", &Release);
  m.def("memory_need", &Need);
}

}  // namespace penstock::python
