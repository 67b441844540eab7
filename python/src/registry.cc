// Bindings for Fluid's op tests and pass writers: the registry of ops and their gradients, and changes of
// single ops and declarations that only they make.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/autodiff/grad_ops.h"
#include "framework/op/op_registry.h"
#include "framework/op/unknown_ops.h"
#include "operators/all_ops.h"
#include "python/src/attrs.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/program_class.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using Id = std::uint64_t;

// (name, takes several arguments, is optional, is kept only for the gradient, documentation)
py::list SlotTuples(const std::vector<SlotDef>& slots) {
  py::list facts;
  for (const SlotDef& slot : slots) {
    facts.append(py::make_tuple(slot.name, slot.repeated, slot.optional, slot.intermediate, slot.doc));
  }
  return facts;
}

// (summary, inputs, outputs, [(attribute, kind, documentation)])
py::tuple FactsOf(const std::string& type) {
  const OpDef* def = Take(AllOps().Require(Op(type)));
  py::list attrs;
  for (const AttrDef& attr : def->attrs()) {
    attrs.append(py::make_tuple(attr.name, static_cast<int>(attr.kind), attr.doc));
  }
  return py::make_tuple(def->summary(), SlotTuples(def->inputs()), SlotTuples(def->outputs()),
                        std::move(attrs));
}

// (a new program with the gradient ops, {gradient: forward variable})
py::tuple GradOpsOf(const ProgramBox& box, int block, Id id, const std::vector<std::string>& no_grad,
                    int grad_block) {
  const Op& op = box.ReadOp(block, static_cast<OpId>(id));
  GradNames names;
  const std::vector<Op> grads =
      Take(MakeGradOps(AllOps(), op, NameSet(no_grad.begin(), no_grad.end()), names,
                       {.program = &box.program, .block = block, .grad_block = grad_block}));
  auto made = std::make_shared<ProgramBox>();
  py::dict forward_of;
  for (Op grad : grads) {
    for (const std::vector<Slot>* slots : {&grad.inputs(), &grad.outputs()}) {
      for (const Slot& slot : *slots) {
        for (const std::string& name : slot.args) {
          const std::string& forward = names.ForwardOf(name);
          if (!forward.empty()) forward_of[py::cast(name)] = forward;
        }
      }
    }
    if (const OpDef* def = AllOps().Find(grad.type()); def != nullptr) def->FillDefaults(grad);
    made->program.MutableBlock(0).Append(std::move(grad));
  }
  return py::make_tuple(std::move(made), std::move(forward_of));
}

template <typename Change>
void ReplaceOp(ProgramBox& box, int block, Id id, Change change) {
  Op op = box.ReadOp(block, static_cast<OpId>(id));
  change(op);
  box.WriteBlock(block).Replace(static_cast<OpId>(id), std::move(op));
}

Id InsertEmptyOp(ProgramBox& box, int block, int position) {
  Block& into = box.WriteBlock(block);
  const int end = static_cast<int>(into.ops().size());
  if (position < -1 || position > end) {
    throw StatusError(InvalidArgument("E-op-position", "an op cannot stand at position ", position,
                                      " of a block with ", end, " ops"));
  }
  return static_cast<Id>(into.Insert(position < 0 ? end : position, Op()));
}

void CheckAttrs(ProgramBox& box, int block, Id id) {
  const OpDef* def = Take(AllOps().Require(box.ReadOp(block, static_cast<OpId>(id))));
  ReplaceOp(box, block, id, [&](Op& op) { def->FillDefaults(op); });
}

// Infers the types of the op's outputs as if the op were in `into_block` of `into`, and declares them there.
void InferOp(ProgramBox& into, int into_block, const ProgramBox& box, int block, Id id) {
  into.ReadBlock(into_block);
  // A copy, because the declarations may replace the block that contains the op.
  const auto op = std::make_unique<Op>(box.ReadOp(block, static_cast<OpId>(id)));
  Check(InferAndDeclare(AllOps(), into.program, into_block, *op));
}

void SetVarLodLevel(ProgramBox& box, int block, const std::string& name, int level) {
  Var var = box.ReadVar(block, name);
  if (!var.type) var.type.emplace();
  var.type->lod_level = level;
  var.wire_bytes.clear();
  box.WriteBlock(block).SetVar(std::move(var));
}

void BindSingleOps(py::module_& m) {
  m.def("unknown_ops", [](const ProgramBox& box) { return UnknownOps(AllOps(), box.program); });
  m.def("insert_empty_op", &InsertEmptyOp);
  m.def("check_op_attrs", &CheckAttrs);
  m.def("infer_op", &InferOp);
  m.def("set_op_type", [](ProgramBox& box, int block, Id id, const std::string& type) {
    ReplaceOp(box, block, id, [&](Op& op) { op.SetType(type); });
  });
  m.def("set_op_blocks", [](ProgramBox& box, int block, Id id, const std::string& name,
                            const std::vector<std::int32_t>& blocks, bool several) {
    std::vector<BlockRef> refs;
    refs.reserve(blocks.size());
    for (const std::int32_t index : blocks) refs.push_back(BlockRef{box.ReadBlock(index).index()});
    ReplaceOp(box, block, id, [&](Op& op) {
      if (several) {
        op.Set(name, Attr(std::move(refs)));
      } else {
        op.Set(name, Attr(refs.at(0)));
      }
    });
  });
  m.def("copy_op", [](ProgramBox& box, int block, Id id, const ProgramBox& from, int from_block, Id from_id) {
    Op op = from.ReadOp(from_block, static_cast<OpId>(from_id));
    ReplaceOp(box, block, id, [&](Op& into) { into = std::move(op); });
  });
  m.def("set_var_lod_level", &SetVarLodLevel);
}

// Element i of a tensor in row-major order.
template <typename T>
T& ElementOf(TensorHandle& handle, std::int64_t i) {
  Tensor& tensor = handle.tensor();
  if (!tensor.initialized() || tensor.dtype() != DTypeOfT<T>::kValue) {
    throw StatusError(FailedPrecondition("E-element-type", "the tensor does not hold values of type ",
                                         DTypeName(DTypeOfT<T>::kValue)));
  }
  if (i < 0 || i >= tensor.count()) throw py::index_error(StrCat("element ", i, " of ", tensor.count()));
  return tensor.Data<T>()[i];
}

template <typename T>
void BindElements(const py::object& cls, const std::string& name) {
  const std::string get = StrCat("_get_", name, "_element"), set = StrCat("_set_", name, "_element");
  cls.attr(get.c_str()) = py::cpp_function(
      [](TensorHandle& handle, std::int64_t i) { return ElementOf<T>(handle, i); }, py::is_method(cls));
  cls.attr(set.c_str()) = py::cpp_function(
      [](TensorHandle& handle, std::int64_t i, T value) {
        handle.NoteChanged(/*by_load=*/false);
        ElementOf<T>(handle, i) = value;
      },
      py::is_method(cls));
}

}  // namespace

TensorArray& ArrayHandle::array() const {
  Variable& held = variable();
  if (held.Is<std::monostate>() || held.Is<TensorArray>()) return held.As<TensorArray>();
  throw StatusError(FailedPrecondition("E-array-kind", "the variable holds no array of tensors"));
}

Tensor& ArrayHandle::At(std::size_t i) const {
  TensorArray& tensors = array();
  if (i >= tensors.size()) throw py::index_error(StrCat("tensor ", i, " of ", tensors.size()));
  return tensors[i];
}

namespace {

TensorHandle CopyOf(const Tensor& tensor) {
  Variable copy;
  copy.As<Tensor>() = tensor.initialized() ? tensor.Clone() : Tensor();
  copy.As<Tensor>().set_lod(tensor.lod());
  return TensorHandle(VariableHandle(std::move(copy)));
}

void BindArray(py::module_& m) {
  py::class_<ArrayHandle>(m, "LoDTensorArray")
      .def(py::init<>())
      .def("__len__", [](const ArrayHandle& handle) { return handle.array().size(); })
      .def("__getitem__", [](const ArrayHandle& handle, std::size_t i) { return CopyOf(handle.At(i)); })
      .def("__setitem__",
           [](const ArrayHandle& handle, std::size_t i, const TensorHandle& tensor) {
             handle.RequireIdle();
             handle.At(i) = CopyOf(tensor.tensor()).tensor();
           })
      .def(
          "append",
          [](const ArrayHandle& handle, const TensorHandle& tensor) {
            handle.RequireIdle();
            handle.array().push_back(CopyOf(tensor.tensor()).tensor());
          },
          py::arg("tensor"));
  const py::object variable = m.attr("RuntimeVariable");
  variable.attr("get_lod_tensor_array") = py::cpp_function(
      [](const VariableHandle& handle) { return ArrayHandle(handle); }, py::is_method(variable));
  // A copy, as it is now.
  py::class_<RankTable>(m, "LoDRankTable").def("items", [](const RankTable& table) {
    py::list items;
    for (const RankTable::Item& item : table.items) items.append(py::make_tuple(item.index, item.length));
    return items;
  });
  variable.attr("get_lod_rank_table") = py::cpp_function(
      [](const VariableHandle& handle) {
        if (const RankTable* table = handle.variable().If<RankTable>()) return *table;
        throw StatusError(FailedPrecondition("E-rank-table-kind", "the variable holds no rank table"));
      },
      py::is_method(variable));
}

void BindTensorParts(py::module_& m) {
  const py::object cls = m.attr("LoDTensor");
  BindElements<float>(cls, "float");
  BindElements<double>(cls, "double");
  const py::object variable = m.attr("RuntimeVariable");
  // 'tensor', 'rows', 'array', 'other', or '' for a variable without a value.
  variable.attr("_holds") = py::cpp_function(
      [](const VariableHandle& handle) -> std::string {
        const Variable& held = handle.variable();
        if (held.Is<Tensor>()) return "tensor";
        if (held.Is<SelectedRows>()) return "rows";
        if (held.Is<TensorArray>()) return "array";
        return held.initialized() ? "other" : "";
      },
      py::is_method(variable));
}

}  // namespace

void BindRegistry(py::module_& m) {
  m.def("op_types", [] {
    std::vector<std::string> types;
    for (const OpDef* def : AllOps().All()) types.push_back(def->type());
    return types;
  });
  m.def("op_facts", &FactsOf);
  // The numbers of the element types for which the op has a CPU kernel.
  m.def("op_kernel_types", [](const std::string& type) {
    std::vector<int> types;
    const OpDef* def = AllOps().Find(type);
    for (int number = 0; def != nullptr && number <= 21; ++number) {
      if (!IsDType(number)) continue;
      if (def->FindKernel(DeviceKind::kCpu, static_cast<DType>(number)) != nullptr) types.push_back(number);
    }
    return types;
  });
  m.def("op_has_gradient", [](const std::string& type) {
    const OpDef* def = AllOps().Find(type);
    return def != nullptr && def->has_grad();
  });
  m.def("grad_ops_of", &GradOpsOf);
  BindSingleOps(m);
  BindArray(m);
  BindTensorParts(m);
}

}  // namespace penstock::python
