// The methods of ProgramDesc for variables, which a Python Variable calls. Each reads or changes the program
// value.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/src/errors.h"
#include "python/src/program_class.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

template <typename Change>
void ChangeVar(ProgramBox& box, int block, const std::string& name, Change change) {
  Var var = box.ReadVar(block, name);
  change(var);
  var.wire_bytes.clear();
  box.WriteBlock(block).SetVar(std::move(var));
}

// A new declaration. Type and shape may be set later by the op that writes the variable.
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

VarKind CheckedKind(int number) {
  const auto kind = static_cast<VarKind>(number);
  switch (kind) {
    case VarKind::kTensor:
    case VarKind::kSelectedRows:
    case VarKind::kFeed:
    case VarKind::kFetch:
    case VarKind::kStepScopes:
    case VarKind::kRankTable:
    case VarKind::kTensorArray:
    case VarKind::kPlaceList:
    case VarKind::kReader:
    case VarKind::kRaw:
    case VarKind::kTuple:
      return kind;
  }
  throw StatusError(InvalidArgument("E-var-kind", "there is no kind of variables of number ", number));
}

void CreateVar(ProgramBox& box, int block, NewVar what) {
  Var var = TensorVar(what.name, what.dtype ? CheckedDType(*what.dtype) : DType::kFp32,
                      Shape(what.shape.value_or(std::vector<Dim>())), what.lod_level.value_or(0));
  var.kind = CheckedKind(what.kind);
  const bool typed =
      var.kind == VarKind::kTensor || var.kind == VarKind::kSelectedRows || var.kind == VarKind::kTensorArray;
  if (!typed) var.type.reset();
  var.persistable = what.persistable;
  var.need_check_feed = what.need_check_feed;
  var.facts.stop_gradient = what.stop_gradient;
  var.facts.is_data = what.is_data;
  box.WriteBlock(block).SetVar(std::move(var));
}

// Creates a parameter in block 0. An existing variable keeps its type and shape and gets the new facts.
void CreateParameter(ProgramBox& box, const std::string& name, int kind, int dtype, std::vector<Dim> shape,
                     int lod_level, const VarFacts& facts) {
  const Var* there = box.program.main().FindVar(name);
  Var var =
      there != nullptr ? *there : TensorVar(name, CheckedDType(dtype), Shape(std::move(shape)), lod_level);
  var.kind = CheckedKind(kind);
  var.persistable = true;
  var.facts = facts;
  var.wire_bytes.clear();
  box.WriteBlock(0).SetVar(std::move(var));
}

void BindVarReaders(ProgramClass& program) {
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
      .def("create_parameter",
           [](ProgramBox& box, const std::string& name, int kind, int dtype, std::vector<Dim> shape,
              int lod_level, bool trainable, bool is_distributed, bool stop_gradient, float learning_rate) {
             CreateParameter(box, name, kind, dtype, std::move(shape), lod_level,
                             {.is_parameter = true,
                              .trainable = trainable,
                              .is_distributed = is_distributed,
                              .learning_rate = learning_rate,
                              .stop_gradient = stop_gradient});
           })
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
             return py::tuple(py::cast(std::vector<Dim>(box.ReadVar(b, n).shape().dims())));
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
      // The tensors that a reader returns: [(element type, shape, LoD level)].
      .def("var_reader",
           [](const ProgramBox& box, int b, const std::string& n) {
             py::list parts;
             for (const TensorType& part : box.ReadVar(b, n).reader) {
               parts.append(py::make_tuple(static_cast<int>(part.dtype), std::vector<Dim>(part.shape.dims()),
                                           part.lod_level));
             }
             return parts;
           })
      .def("var_facts",
           [](const ProgramBox& box, int b, const std::string& n) { return box.ReadVar(b, n).facts; });
}

void BindVarWriters(ProgramClass& program) {
  program
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
             ChangeVar(box, b, n, [&](Var& var) { var.kind = CheckedKind(kind); });
           })
      .def("set_var_persistable",
           [](ProgramBox& box, int b, const std::string& n, bool value) {
             ChangeVar(box, b, n, [&](Var& var) {
               var.persistable = value;
               var.has_persistable = true;
             });
           })
      .def("set_var_reader",
           [](ProgramBox& box, int b, const std::string& n,
              const std::vector<std::tuple<int, std::vector<Dim>, int>>& parts) {
             ChangeVar(box, b, n, [&](Var& var) {
               var.reader.clear();
               for (const auto& [dtype, dims, lod_level] : parts) {
                 var.reader.push_back({CheckedDType(dtype), Shape(dims), lod_level, true});
               }
             });
           })
      .def("set_var_facts", [](ProgramBox& box, int b, const std::string& n, const VarFacts& facts) {
        ChangeVar(box, b, n, [&](Var& var) { var.facts = facts; });
      });
}

}  // namespace

void BindVars(ProgramClass& program) {
  BindVarReaders(program);
  BindVarWriters(program);
}

}  // namespace penstock::python
