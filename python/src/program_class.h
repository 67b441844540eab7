// The Python class ProgramDesc, which is bound in three files: program.cc, program_ops.cc, program_vars.cc.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "python/src/program_box.h"

namespace penstock::python {

using ProgramClass = pybind11::class_<ProgramBox, std::shared_ptr<ProgramBox>>;

void BindOps(ProgramClass& program);   // program_ops.cc
void BindVars(ProgramClass& program);  // program_vars.cc

}  // namespace penstock::python
