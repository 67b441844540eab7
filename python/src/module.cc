// penstock._penstock, the C++ side of the Python package: calls every function of bind.h.
#include <pybind11/pybind11.h>

#include "python/src/bind.h"

PYBIND11_MODULE(_penstock, m) {
  m.attr("__version__") = PENSTOCK_VERSION;
  penstock::python::BindErrors(m);
  penstock::python::BindProgram(m);
  penstock::python::BindTensor(m);
  penstock::python::BindScope(m);
  penstock::python::BindAutodiff(m);
  penstock::python::BindCheckpoints(m);
  penstock::python::BindConversion(m);
  penstock::python::BindDatasets(m);
  penstock::python::BindEnvironment(m);
  penstock::python::BindExecutor(m);
  penstock::python::BindHostFunctions(m);
  penstock::python::BindKeyStore(m);
  penstock::python::BindKvLocal(m);
  penstock::python::BindKvTable(m);
  penstock::python::BindMemory(m);
  penstock::python::BindPlaces(m);
  penstock::python::BindProfiler(m);
  penstock::python::BindRankArrays(m);
  penstock::python::BindReaders(m);
  penstock::python::BindRemoteParams(m);
  penstock::python::BindRegistry(m);
  penstock::python::BindTranspiler(m);
  penstock::python::ExplainArguments(m);
}
