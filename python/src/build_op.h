// An op from Python's arguments, as Fluid's Operator makes one: slots and attributes in the order of the
// schema, absent slots as declared but empty, attributes that the schema does not know dropped, defaults
// filled in.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "framework/ir/op.h"

namespace penstock::python {

// What the program guard of the moment says of a new op.
struct OpContext {
  int role = 0;
  std::vector<std::string> role_var;
  std::string name_scope = "/";
  std::string device;
  std::string location;
};

// inputs, outputs: None or {slot: name, Variable, or a list of these}; attrs: None or {name: value}.
Op BuildOp(const std::string& type, const pybind11::object& inputs, const pybind11::object& outputs,
           const pybind11::object& attrs, const OpContext& context);

}  // namespace penstock::python
