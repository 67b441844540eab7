#include "python/src/build_op.h"

#include <optional>
#include <set>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/all_ops.h"
#include "python/src/attrs.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

std::string NameOf(py::handle argument) {
  if (PyUnicode_Check(argument.ptr())) return argument.cast<std::string>();
  if (PyBytes_Check(argument.ptr())) return argument.cast<std::string>();
  return argument.attr("name").cast<std::string>();
}

std::vector<std::string> NamesOf(py::handle arguments) {
  std::vector<std::string> names;
  if (arguments.is_none()) return names;
  if (PyList_Check(arguments.ptr()) || PyTuple_Check(arguments.ptr())) {
    for (const py::handle& argument : py::reinterpret_borrow<py::sequence>(arguments)) {
      names.push_back(NameOf(argument));
    }
  } else {
    names.push_back(NameOf(arguments));
  }
  return names;
}

// The argument of a slot in the caller's dict, or a null handle.
py::handle Find(const py::object& slots, const std::string& name) {
  if (slots.is_none()) return {};
  return PyDict_GetItemString(slots.ptr(), name.c_str());
}

void RefuseUnknownSlots(const std::string& type, const py::object& slots, const std::vector<SlotDef>& defs,
                        const char* side) {
  if (slots.is_none()) return;
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(slots)) {
    const std::string name = key.cast<std::string>();
    bool known = false;
    for (const SlotDef& def : defs) known = known || def.name == name;
    if (!known) {
      std::vector<std::string> names;
      names.reserve(defs.size());
      for (const SlotDef& def : defs) names.push_back(def.name);
      throw StatusError(InvalidArgument("E-op-slot", type, " has no ", side, " slot ", name, "; it has ",
                                        Join(names, ", ")));
    }
  }
}

// As in Fluid: without any inputs the op has no input slots; otherwise it has all slots of the schema.
void SetInputs(Op& op, const OpDef& def, const py::object& inputs) {
  if (inputs.is_none()) return;
  RefuseUnknownSlots(op.type(), inputs, def.inputs(), "input");
  for (const SlotDef& slot : def.inputs()) {
    const py::handle given = Find(inputs, slot.name);
    op.AddInput(slot.name, given ? NamesOf(given) : std::vector<std::string>());
  }
}

void SetOutputs(Op& op, const OpDef& def, const py::object& outputs) {
  if (outputs.is_none()) return;
  RefuseUnknownSlots(op.type(), outputs, def.outputs(), "output");
  for (const SlotDef& slot : def.outputs()) {
    const py::handle given = Find(outputs, slot.name);
    if (given) op.AddOutput(slot.name, NamesOf(given));
  }
}

void SetAttrs(Op& op, const OpDef& def, const py::object& attrs) {
  if (attrs.is_none()) return;
  for (const AttrDef& attr : def.attrs()) {
    const py::handle given = Find(attrs, attr.name);
    if (given && !given.is_none()) op.Set(attr.name, AttrFromPython(given, attr.kind, op.type(), attr.name));
  }
}

}  // namespace

Op BuildOp(const std::string& type, const py::object& inputs, const py::object& outputs,
           const py::object& attrs, const OpContext& context) {
  Op op(type);
  const OpDef* def = Take(AllOps().Require(op));
  SetInputs(op, *def, inputs);
  SetOutputs(op, *def, outputs);
  SetAttrs(op, *def, attrs);
  def->FillDefaults(op);
  op.SetRole(static_cast<OpRole>(context.role));
  op.Set(kRoleVarAttr, context.role_var);
  op.Set(kNameScopeAttr, context.name_scope);
  op.Set(kDeviceAttr, context.device);
  op.SetLocation(context.location);
  return op;
}

}  // namespace penstock::python
