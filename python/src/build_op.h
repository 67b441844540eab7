// Builds an op from Python's arguments, as Fluid's Operator does: slots and attributes are in the order of
// the schema, missing input slots are empty, unknown attributes are dropped, and defaults are filled in.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "framework/ir/op.h"

namespace penstock::python {

// Attributes that a new op takes from the guards that are active.
struct OpContext {
  int role = 0;
  std::vector<std::string> role_var;
  std::string name_scope = "/";
  std::string device;
  std::string location;
};

// inputs, outputs: None or {slot: name, Variable, or a list of these}; attrs: None or {name: value}. Throws
// StatusError E-op-slot for a slot that the schema lacks.
Op BuildOp(const std::string& type, const pybind11::object& inputs, const pybind11::object& outputs,
           const pybind11::object& attrs, const OpContext& context);

}  // namespace penstock::python
