// The methods of ProgramDesc for ops, which a Python Operator calls. Each reads or changes the program value.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/text/describe.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "python/src/attrs.h"
#include "python/src/build_op.h"
#include "python/src/errors.h"
#include "python/src/program_class.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using Id = std::uint64_t;

std::uint64_t AppendOp(ProgramBox& box, int block, int position, const std::string& type,
                       const py::object& inputs, const py::object& outputs, const py::object& attrs,
                       const OpContext& context) {
  Op op = BuildOp(type, inputs, outputs, attrs, context);
  const int end = static_cast<int>(box.ReadBlock(block).ops().size());
  const Status inferred = InferAndDeclare(AllOps(), box.program, block, op);
  if (!inferred.ok()) {
    throw StatusError(AtOp(inferred, box.program, block, position < 0 ? end : position, op));
  }
  Block& into = box.program.MutableBlock(block);
  return static_cast<Id>(position < 0 ? into.Append(std::move(op)) : into.Insert(position, std::move(op)));
}

template <typename Change>
void ChangeOp(ProgramBox& box, int block, Id id, Change change) {
  Op op = box.ReadOp(block, static_cast<OpId>(id));
  change(op);
  box.WriteBlock(block).Replace(static_cast<OpId>(id), std::move(op));
}

py::dict SlotsToPython(const std::vector<Slot>& slots) {
  py::dict out;
  for (const Slot& slot : slots) {
    py::list names;
    for (const std::string& name : slot.args) names.append(name);
    out[py::cast(slot.name.str())] = std::move(names);
  }
  return out;
}

void BindOpReaders(ProgramClass& program) {
  program
      .def("append_op", &AppendOp, py::arg("block"), py::arg("position"), py::arg("type"), py::arg("inputs"),
           py::arg("outputs"), py::arg("attrs"), py::arg("context"))
      .def("remove_op",
           [](ProgramBox& box, int block, Id id) {
             box.ReadOp(block, static_cast<OpId>(id));
             box.WriteBlock(block).Remove(static_cast<OpId>(id));
           })
      .def("op_position",
           [](const ProgramBox& box, int block, Id id) {
             box.ReadOp(block, static_cast<OpId>(id));
             return box.ReadBlock(block).PositionOf(static_cast<OpId>(id));
           })
      .def("op_type",
           [](const ProgramBox& box, int b, Id id) { return box.ReadOp(b, static_cast<OpId>(id)).type(); })
      .def("op_location", [](const ProgramBox& box, int b,
                             Id id) { return box.ReadOp(b, static_cast<OpId>(id)).location(); })
      .def("op_made_by",
           [](const ProgramBox& box, int b, Id id) { return box.ReadOp(b, static_cast<OpId>(id)).made_by(); })
      .def("op_inputs", [](const ProgramBox& box, int b,
                           Id id) { return SlotsToPython(box.ReadOp(b, static_cast<OpId>(id)).inputs()); })
      .def("op_outputs", [](const ProgramBox& box, int b,
                            Id id) { return SlotsToPython(box.ReadOp(b, static_cast<OpId>(id)).outputs()); })
      .def("op_attrs",
           [](const ProgramBox& box, int b, Id id) {
             py::dict out;
             for (const NamedAttr& attr : box.ReadOp(b, static_cast<OpId>(id)).attrs()) {
               out[py::cast(attr.name.str())] = AttrToPython(attr.value);
             }
             return out;
           })
      .def("op_attr_kind",
           [](const ProgramBox& box, int b, Id id, const std::string& name) -> py::object {
             const Attr* attr = box.ReadOp(b, static_cast<OpId>(id)).FindAttr(name);
             return attr == nullptr ? py::object(py::none()) : py::cast(static_cast<int>(KindOf(*attr)));
           })
      .def("op_to_string", [](const ProgramBox& box, int b, Id id) {
        return PrintOp(box.program, b, box.ReadOp(b, static_cast<OpId>(id)));
      });
}

void BindOpWriters(ProgramClass& program) {
  program
      .def("set_op_attr",
           [](ProgramBox& box, int block, Id id, const std::string& name, const py::object& value) {
             ChangeOp(box, block, id, [&](Op& op) {
               const OpDef* def = AllOps().Find(op.type());
               const AttrDef* attr = def == nullptr ? nullptr : def->FindAttr(name);
               const Attr* before = op.FindAttr(name);
               std::optional<AttrKind> kind;
               if (before != nullptr) kind = KindOf(*before);
               if (attr != nullptr) kind = attr->kind;
               op.Set(name, AttrFromPython(value, kind, op.type(), name));
             });
           })
      .def("remove_op_attr",
           [](ProgramBox& box, int block, Id id, const std::string& name) {
             ChangeOp(box, block, id, [&](Op& op) { op.RemoveAttr(name); });
           })
      .def("set_op_input",
           [](ProgramBox& box, int block, Id id, const std::string& slot,
              const std::vector<std::string>& names) {
             ChangeOp(box, block, id, [&](Op& op) { op.AddInput(slot, names); });
           })
      .def("set_op_output",
           [](ProgramBox& box, int block, Id id, const std::string& slot,
              const std::vector<std::string>& names) {
             ChangeOp(box, block, id, [&](Op& op) { op.AddOutput(slot, names); });
           })
      .def("rename_in_op", [](ProgramBox& box, int block, Id id, const std::string& from,
                              const std::string& to, bool inputs, bool outputs) {
        ChangeOp(box, block, id, [&](Op& op) {
          Op before = op;
          const auto renamed = [&](ArgList names) {
            std::replace(names.begin(), names.end(), from, to);
            return names;
          };
          for (const Slot& slot : before.inputs()) {
            if (inputs) op.AddInput(slot.name, renamed(slot.args));
          }
          for (const Slot& slot : before.outputs()) {
            if (outputs) op.AddOutput(slot.name, renamed(slot.args));
          }
        });
      });
}

}  // namespace

void BindOps(ProgramClass& program) {
  BindOpReaders(program);
  BindOpWriters(program);
}

}  // namespace penstock::python
