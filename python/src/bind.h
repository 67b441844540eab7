// The functions that bind classes and functions to Python, one per source file. module.cc calls all of them.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

void BindErrors(pybind11::module_& m);
void BindProgram(pybind11::module_& m);
void BindTensor(pybind11::module_& m);
void BindScope(pybind11::module_& m);
void BindAutodiff(pybind11::module_& m);
void BindCheckpoints(pybind11::module_& m);
void BindConversion(pybind11::module_& m);
void BindDatasets(pybind11::module_& m);
void BindEnvironment(pybind11::module_& m);
void BindExecutor(pybind11::module_& m);
void BindHostFunctions(pybind11::module_& m);
void BindKeyStore(pybind11::module_& m);
void BindKvLocal(pybind11::module_& m);
void BindKvTable(pybind11::module_& m);
void BindMemory(pybind11::module_& m);
void BindPlaces(pybind11::module_& m);
void BindProfiler(pybind11::module_& m);
void BindRankArrays(pybind11::module_& m);
void BindReaders(pybind11::module_& m);
void BindRegistry(pybind11::module_& m);
void BindRemoteParams(pybind11::module_& m);
void BindTranspiler(pybind11::module_& m);

// Call it last: it gives every function of the module errors that name wrong arguments.
void ExplainArguments(pybind11::module_& m);

}  // namespace penstock::python
