// ProgramDesc and UniqueNames: what Python's handles call. No logic: a read, or one change of the program
// value.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/ir/prune.h"
#include "framework/ir/unique_name.h"
#include "framework/ir/wire.h"
#include "framework/op/op_registry.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "python/src/attrs.h"
#include "python/src/bind.h"
#include "python/src/build_op.h"
#include "python/src/errors.h"
#include "python/src/program_box.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using Id = std::uint64_t;
using Class = py::class_<ProgramBox, std::shared_ptr<ProgramBox>>;

std::uint64_t AppendOp(ProgramBox& box, int block, int position, const std::string& type,
                       const py::object& inputs, const py::object& outputs, const py::object& attrs,
                       const OpContext& context) {
  Op op = BuildOp(type, inputs, outputs, attrs, context);
  box.ReadBlock(block);
  Check(InferAndDeclare(AllOps(), box.program, block, op));
  Block& into = box.program.MutableBlock(block);
  return static_cast<Id>(position < 0 ? into.Append(std::move(op)) : into.Insert(position, std::move(op)));
}

template <typename Change>
void ChangeOp(ProgramBox& box, int block, Id id, Change change) {
  Op op = box.ReadOp(block, static_cast<OpId>(id));
  change(op);
  box.WriteBlock(block).Replace(static_cast<OpId>(id), std::move(op));
}

template <typename Change>
void ChangeVar(ProgramBox& box, int block, const std::string& name, Change change) {
  Var var = box.ReadVar(block, name);
  change(var);
  var.wire_bytes.clear();
  box.WriteBlock(block).SetVar(std::move(var));
}

py::dict SlotsToPython(const std::vector<Slot>& slots) {
  py::dict out;
  for (const Slot& slot : slots) out[py::str(slot.name)] = py::cast(slot.args);
  return out;
}

// A new declaration. Type and shape may come later, from the op that writes the variable.
struct NewVar {
  std::string name;
  int kind;
  std::optional<int> dtype;
  std::optional<std::vector<Dim>> shape;
  std::optional<int> lod_level;
  bool persistable;
  bool stop_gradient;
  bool is_data;
  bool need_check_feed;
};

DType CheckedDType(int number) {
  if (!IsDType(number))
    throw StatusError(InvalidArgument("E-dtype", "there is no element type number ", number));
  return static_cast<DType>(number);
}

void CreateVar(ProgramBox& box, int block, NewVar what) {
  Var var = TensorVar(what.name, what.dtype ? CheckedDType(*what.dtype) : DType::kFp32,
                      Shape(what.shape.value_or(std::vector<Dim>())), what.lod_level.value_or(0));
  var.kind = static_cast<VarKind>(what.kind);
  const bool typed =
      var.kind == VarKind::kTensor || var.kind == VarKind::kSelectedRows || var.kind == VarKind::kTensorArray;
  if (!typed) var.type.reset();
  var.persistable = what.persistable;
  var.need_check_feed = what.need_check_feed;
  var.facts.stop_gradient = what.stop_gradient;
  var.facts.is_data = what.is_data;
  box.WriteBlock(block).SetVar(std::move(var));
}

void BindBlocks(Class& program) {
  program.def("num_blocks", [](const ProgramBox& box) { return box.program.block_count(); })
      .def("append_block", [](ProgramBox& box, int parent) { return box.program.AddBlock(parent).index(); })
      .def("parent", [](const ProgramBox& box, int block) { return box.ReadBlock(block).parent(); })
      .def("forward_block",
           [](const ProgramBox& box, int block) { return box.ReadBlock(block).forward_block(); })
      .def("ops",
           [](const ProgramBox& box, int block) {
             std::vector<Id> ids;
             for (const OpEntry& op : box.ReadBlock(block).ops()) ids.push_back(static_cast<Id>(op.id));
             return ids;
           })
      .def("op_count", [](const ProgramBox& box, int block) { return box.ReadBlock(block).ops().size(); })
      .def("vars", [](const ProgramBox& box, int block) {
        std::vector<std::string> names;
        for (const VarRef& var : box.ReadBlock(block).vars()) names.push_back(var->name);
        return names;
      });
}

void BindOps(Class& program) {
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
               out[py::str(attr.name)] = AttrToPython(attr.value);
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
          const auto renamed = [&](std::vector<std::string> names) {
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

void BindVars(Class& program) {
  program
      .def(
          "create_var",
          [](ProgramBox& box, int block, std::string name, int kind, std::optional<int> dtype,
             std::optional<std::vector<Dim>> shape, std::optional<int> lod_level, bool persistable,
             bool stop_gradient, bool is_data, bool need_check_feed) {
            CreateVar(box, block,
                      {std::move(name), kind, dtype, std::move(shape), lod_level, persistable, stop_gradient,
                       is_data, need_check_feed});
          },
          py::arg("block"), py::arg("name"), py::arg("kind") = static_cast<int>(VarKind::kTensor),
          py::arg("dtype") = py::none(), py::arg("shape") = py::none(), py::arg("lod_level") = py::none(),
          py::arg("persistable") = false, py::arg("stop_gradient") = false, py::arg("is_data") = false,
          py::arg("need_check_feed") = false)
      .def("has_var", [](const ProgramBox& box, int b,
                         const std::string& name) { return box.ReadBlock(b).FindVar(name) != nullptr; })
      // The block that declares the variable, as seen from `block`; -1 if none does.
      .def("block_of_var", [](const ProgramBox& box, int b,
                              const std::string& name) { return box.program.BlockOfVar(b, name); })
      .def("remove_var",
           [](ProgramBox& box, int b, const std::string& name) { box.WriteBlock(b).RemoveVar(name); })
      .def("rename_var", [](ProgramBox& box, int b, const std::string& from,
                            const std::string& to) { return box.WriteBlock(b).RenameVar(from, to); })
      .def("var_kind", [](const ProgramBox& box, int b,
                          const std::string& n) { return static_cast<int>(box.ReadVar(b, n).kind); })
      .def("var_shape",
           [](const ProgramBox& box, int b, const std::string& n) {
             return py::tuple(py::cast(box.ReadVar(b, n).shape().dims()));
           })
      .def("var_dtype",
           [](const ProgramBox& box, int b, const std::string& n) {
             const Var& var = box.ReadVar(b, n);
             return static_cast<int>(var.type ? var.type->dtype : DType::kFp32);
           })
      .def("var_lod_level",
           [](const ProgramBox& box, int b, const std::string& n) {
             const Var& var = box.ReadVar(b, n);
             return var.type ? var.type->lod_level : 0;
           })
      .def("var_persistable",
           [](const ProgramBox& box, int b, const std::string& n) { return box.ReadVar(b, n).persistable; })
      .def("var_need_check_feed", [](const ProgramBox& box, int b,
                                     const std::string& n) { return box.ReadVar(b, n).need_check_feed; })
      .def("var_facts",
           [](const ProgramBox& box, int b, const std::string& n) { return box.ReadVar(b, n).facts; })
      .def("set_var_shape",
           [](ProgramBox& box, int b, const std::string& n, std::vector<Dim> dims) {
             ChangeVar(box, b, n, [&](Var& var) {
               if (!var.type) var.type.emplace();
               var.type->shape = Shape(std::move(dims));
             });
           })
      .def("set_var_dtype",
           [](ProgramBox& box, int b, const std::string& n, int dtype) {
             ChangeVar(box, b, n, [&](Var& var) {
               if (!var.type) var.type.emplace();
               var.type->dtype = CheckedDType(dtype);
             });
           })
      .def("set_var_kind",
           [](ProgramBox& box, int b, const std::string& n, int kind) {
             ChangeVar(box, b, n, [&](Var& var) { var.kind = static_cast<VarKind>(kind); });
           })
      .def("set_var_persistable",
           [](ProgramBox& box, int b, const std::string& n, bool value) {
             ChangeVar(box, b, n, [&](Var& var) {
               var.persistable = value;
               var.has_persistable = true;
             });
           })
      .def("set_var_facts", [](ProgramBox& box, int b, const std::string& n, const VarFacts& facts) {
        ChangeVar(box, b, n, [&](Var& var) { var.facts = facts; });
      });
}

void BindMeta(Class& program) {
  program
      .def_property(
          "version", [](const ProgramBox& box) { return box.program.meta().version; },
          [](ProgramBox& box, std::int64_t version) { box.program.mutable_meta().version = version; })
      .def_property(
          "random_seed", [](const ProgramBox& box) { return box.program.meta().random_seed; },
          [](ProgramBox& box, std::int64_t seed) { box.program.mutable_meta().random_seed = seed; })
      .def_property_readonly("plan", [](const ProgramBox& box) { return box.program.meta().plan; })
      .def_property_readonly("content_id", [](const ProgramBox& box) { return box.program.content_id(); })
      .def("serialize_to_string",
           [](const ProgramBox& box) { return py::bytes(SerializeProgram(box.program)); })
      .def_static(
          "parse",
          [](const py::bytes& bytes) {
            return std::make_shared<ProgramBox>(Take(ParseProgram(static_cast<std::string_view>(bytes))));
          })
      .def("copy", [](const ProgramBox& box) { return std::make_shared<ProgramBox>(box); })
      .def("assign", [](ProgramBox& box, const ProgramBox& other) { box.program = other.program; })
      .def("clone_for_test",
           [](const ProgramBox& box) {
             return std::make_shared<ProgramBox>(ProgramBox{CloneForTest(box.program)});
           })
      .def("prune",
           [](const ProgramBox& box, const std::vector<std::string>& feeds,
              const std::vector<std::string>& targets) {
             return std::make_shared<ProgramBox>(ProgramBox{Take(PruneTo(box.program, feeds, targets))});
           })
      .def("to_string", [](const ProgramBox& box, bool all) {
        PrintOptions options;
        options.defaults = all;
        options.locations = all;
        return PrintProgram(box.program, options);
      });
}

}  // namespace

void BindProgram(py::module_& m) {
  py::class_<OpContext>(m, "OpContext")
      .def(py::init<>())
      .def_readwrite("role", &OpContext::role)
      .def_readwrite("role_var", &OpContext::role_var)
      .def_readwrite("name_scope", &OpContext::name_scope)
      .def_readwrite("device", &OpContext::device)
      .def_readwrite("location", &OpContext::location);
  py::class_<VarFacts>(m, "VarFacts")
      .def_readwrite("is_parameter", &VarFacts::is_parameter)
      .def_readwrite("trainable", &VarFacts::trainable)
      .def_readwrite("is_distributed", &VarFacts::is_distributed)
      .def_readwrite("learning_rate", &VarFacts::learning_rate)
      .def_readwrite("stop_gradient", &VarFacts::stop_gradient)
      .def_readwrite("is_data", &VarFacts::is_data);
  py::class_<UniqueNames, std::shared_ptr<UniqueNames>>(m, "UniqueNames")
      .def(py::init<std::string>(), py::arg("prefix") = "")
      .def("__call__", [](UniqueNames& names, const std::string& key) { return names.Generate(key); })
      .def("peek", &UniqueNames::Peek)
      .def("set", &UniqueNames::Set)
      .def_property_readonly("prefix", &UniqueNames::prefix);
  Class program(m, "ProgramDesc");
  program.def(py::init<>());
  BindBlocks(program);
  BindOps(program);
  BindVars(program);
  BindMeta(program);
}

}  // namespace penstock::python
