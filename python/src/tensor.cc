// Bindings of LoDTensor, SelectedRows, and Scope with its variables.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"
#include "python/src/arrivals.h"
#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using Lengths = std::vector<std::vector<std::uint64_t>>;

LoD OffsetsOf(const Lengths& lengths) {
  LoD lod;
  for (const auto& level : lengths) {
    LoDLevel offsets = {0};
    for (const std::uint64_t length : level) offsets.push_back(offsets.back() + length);
    lod.push_back(std::move(offsets));
  }
  return lod;
}

Lengths LengthsOf(const LoD& lod) {
  Lengths lengths;
  for (const LoDLevel& level : lod) {
    lengths.emplace_back();
    for (std::size_t i = 1; i < level.size(); ++i) lengths.back().push_back(level[i] - level[i - 1]);
  }
  return lengths;
}

Status InUse(const std::string& name) {
  return FailedPrecondition("E-scope-in-use", name,
                            " cannot be changed or erased while a run is in progress that may use it");
}

// Valid offsets of a level do not decrease; they begin with 0 and end with the number of sequences of the
// level below, or of rows for the last level.
bool IsValid(const LoD& lod, Dim rows) {
  for (std::size_t level = 0; level < lod.size(); ++level) {
    const LoDLevel& offsets = lod[level];
    if (offsets.size() < 2 || offsets.front() != 0) return false;
    for (std::size_t i = 1; i < offsets.size(); ++i) {
      if (offsets[i] < offsets[i - 1]) return false;
    }
    const bool last = level + 1 == lod.size();
    const std::uint64_t below = last ? static_cast<std::uint64_t>(rows) : lod[level + 1].size() - 1;
    if (offsets.back() != below) return false;
  }
  return true;
}

Dim RowsOf(const Tensor& tensor) { return tensor.shape().rank() == 0 ? 0 : tensor.shape()[0]; }

// Sequences may be set before the values: then their number of rows is that of the values.
void RequireValid(const LoD& lod, const Tensor& tensor) {
  if (!tensor.initialized()) {
    if (lod.empty() || (!lod.back().empty() && IsValid(lod, static_cast<Dim>(lod.back().back())))) return;
    throw StatusError(InvalidArgument("E-lod-cover",
                                      "the levels of sequences do not fit together: each must begin with 0, "
                                      "never fall, and end with the number of sequences of the level below"));
  }
  if (IsValid(lod, RowsOf(tensor))) return;
  throw StatusError(
      InvalidArgument("E-lod-cover", "the sequences do not cover the ", RowsOf(tensor),
                      " rows of the tensor: each level must begin with 0, never fall, and end with the "
                      "number of rows, or of sequences of the level below"));
}

void SetLoD(TensorHandle& handle, LoD lod) {
  handle.RequireIdle();
  RequireValid(lod, handle.tensor());
  handle.tensor().set_lod(std::move(lod));
}

// As in Fluid, the sequences are kept, so they may be set before the values. A run may use a scope's variable
// at any time, so there the sequences are kept only if they fit the new values.
void SetValues(TensorHandle& handle, const py::object& array) {
  Tensor& tensor = handle.tensor();
  handle.NoteChanged(/*by_load=*/false);
  if (handle.in_use()) {
    CopyValues(array, tensor);
    return;
  }
  LoD lod = tensor.lod();
  CopyArray(array, tensor);
  if (!handle.in_scope() || IsValid(lod, RowsOf(tensor))) tensor.set_lod(std::move(lod));
}

// Whether the variable holds an int, as Fluid's int variables do: an int32 tensor of rank 0, which no op
// writes.
bool IsInt(const VariableHandle& handle) {
  const auto* tensor = handle.variable().If<Tensor>();
  return tensor != nullptr && tensor->initialized() && tensor->dtype() == DType::kInt32 &&
         tensor->shape().rank() == 0;
}

void SetInt(VariableHandle& handle, std::int32_t value) {
  handle.RequireIdle();
  Tensor tensor(DType::kInt32, Shape{});
  *tensor.Data<std::int32_t>() = value;
  handle.variable().As<Tensor>() = std::move(tensor);
}

std::int32_t IntOf(const VariableHandle& handle) {
  if (IsInt(handle)) return *std::as_const(handle.variable()).If<Tensor>()->Data<std::int32_t>();
  throw StatusError(FailedPrecondition("E-int-kind", "the variable holds no int; set_int puts one there"));
}

// An array that shares the tensor's memory. Python may keep it, and read it when a later run has ended.
py::object ViewOf(const TensorHandle& handle) {
  if (handle.in_scope()) ArriveInRuns();
  return ViewAsArray(handle.tensor());
}

void BindLoDTensor(py::module_& m) {
  py::class_<TensorHandle>(m, "LoDTensor")
      .def(py::init<>())
      .def(py::init([](const Lengths& lengths) {
             TensorHandle handle;
             SetLoD(handle, OffsetsOf(lengths));
             return handle;
           }),
           py::arg("recursive_sequence_lengths"))
      .def(
          "set", [](TensorHandle& t, const py::object& array, const py::object&) { SetValues(t, array); },
          py::arg("array"), py::arg("place") = py::none())
      .def("shape", [](const TensorHandle& t) { return std::vector<Dim>(t.tensor().shape().dims()); })
      .def("_dtype", [](const TensorHandle& t) { return static_cast<int>(t.tensor().dtype()); })
      .def("_is_initialized", [](const TensorHandle& t) { return t.tensor().initialized(); })
      .def("_view", &ViewOf)
      .def(
          "__array__",
          [](const TensorHandle& t, const py::object& dtype, const py::object& copy) {
            // A copy unless the caller passes copy=False, because the next run may write the tensor.
            if (!copy.is_none() && !copy.cast<bool>()) return ViewOf(t);
            const py::object view = ViewAsArray(t.tensor());
            return py::object(view.attr("astype")(dtype.is_none() ? view.attr("dtype") : dtype));
          },
          py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__len__",
           [](const TensorHandle& t) { return t.tensor().shape().rank() == 0 ? 0 : t.tensor().shape()[0]; })
      .def("lod", [](const TensorHandle& t) { return t.tensor().lod(); })
      .def("set_lod", &SetLoD, py::arg("lod"))
      .def("recursive_sequence_lengths", [](const TensorHandle& t) { return LengthsOf(t.tensor().lod()); })
      .def(
          "set_recursive_sequence_lengths",
          [](TensorHandle& t, const Lengths& lengths) { SetLoD(t, OffsetsOf(lengths)); },
          py::arg("recursive_sequence_lengths"))
      .def("has_valid_recursive_sequence_lengths",
           [](const TensorHandle& t) { return IsValid(t.tensor().lod(), RowsOf(t.tensor())); });
}

void BindSelectedRows(py::module_& m) {
  py::class_<RowsHandle>(m, "SelectedRows")
      .def(py::init<>())
      .def(py::init([](std::vector<std::int64_t> rows, std::int64_t height) {
             RowsHandle handle;
             handle.rows() = {std::move(rows), height, Tensor()};
             return handle;
           }),
           py::arg("rows"), py::arg("height"))
      .def("rows", [](const RowsHandle& h) { return h.rows().rows; })
      .def(
          "set_rows",
          [](RowsHandle& h, std::vector<std::int64_t> rows) {
            h.RequireIdle();
            h.rows().rows = std::move(rows);
          },
          py::arg("rows"))
      .def("height", [](const RowsHandle& h) { return h.rows().height; })
      .def(
          "set_height",
          [](RowsHandle& h, std::int64_t height) {
            h.RequireIdle();
            h.rows().height = height;
          },
          py::arg("height"))
      .def("get_tensor", [](const RowsHandle& h) { return TensorHandle(h); })
      .def("numel",
           [](const RowsHandle& h) {
             const Tensor& value = h.rows().value;
             return value.initialized() ? value.count() : 0;
           })
      // In Fluid this builds an index for look-ups. Here each op reads the rows themselves.
      .def("sync_index", [](const RowsHandle&) {});
}

py::bytes FileBytes(const VariableHandle& held) {
  const Variable& variable = held.variable();
  const auto* rows = variable.If<SelectedRows>();
  const Tensor* tensor = rows != nullptr ? &rows->value : variable.If<Tensor>();
  if (tensor != nullptr && !tensor->initialized())
    throw StatusError(FailedPrecondition("E-save-empty", "a variable without a value has no bytes"));
  std::string bytes;
  if (rows != nullptr) {
    AppendSelectedRows(bytes, *rows);
  } else if (tensor != nullptr) {
    AppendTensor(bytes, *tensor);
  } else {
    throw StatusError(FailedPrecondition("E-save-kind", "only tensors and selected rows have a file format"));
  }
  return py::bytes(bytes);
}

// Reads one record from `bytes` at `offset`: (its value, the offset of the next record).
py::tuple FromFileBytes(const py::bytes& bytes, std::size_t offset, bool is_rows, const std::string& where) {
  std::string_view rest = static_cast<std::string_view>(bytes);
  const std::size_t whole = rest.size();
  rest.remove_prefix(std::min(offset, whole));
  const auto in_file = [&](Status status) { return StatusError(std::move(status).In(where)); };
  Variable value;
  if (is_rows) {
    Result<SelectedRows> rows = ReadSelectedRows(rest);
    if (!rows.ok()) throw in_file(std::move(rows).status());
    value.As<SelectedRows>() = *std::move(rows);
  } else {
    Result<Tensor> tensor = ReadTensor(rest);
    if (!tensor.ok()) throw in_file(std::move(tensor).status());
    value.As<Tensor>() = *std::move(tensor);
  }
  return py::make_tuple(VariableHandle(std::move(value)), whole - rest.size());
}

void BindVariable(py::module_& m) {
  py::class_<VariableHandle>(m, "RuntimeVariable")
      .def("get_tensor", [](const VariableHandle& v) { return TensorHandle(v); })
      .def("get_selected_rows",
           [](const VariableHandle& v) {
             // As in Fluid, a variable without a value holds selected rows from now on: an op that may write
             // either kind then writes rows.
             RowsHandle rows(v);
             if (v.variable().Is<std::monostate>()) rows.rows();
             return rows;
           })
      .def("set_int", &SetInt, py::arg("value"))
      .def("is_int", &IsInt)
      .def("get_int", &IntOf)
      .def("is_initialized", [](const VariableHandle& v) { return v.variable().initialized(); })
      .def("_has_no_rows",
           [](const VariableHandle& v) {
             const auto* rows = v.variable().If<SelectedRows>();
             return rows != nullptr && rows->rows.empty();
           })
      .def("_to_file_bytes", &FileBytes)
      .def_static("_from_file_bytes", &FromFileBytes)
      .def("_rows_crc32c",
           [](const VariableHandle& v) {
             const Tensor& values = RowsHandle(v).rows().value;
             return Crc32c(0, values.raw(), values.bytes());
           })
      .def("_assign", &VariableHandle::Assign)
      .def("_note_changed", &VariableHandle::NoteChanged, py::arg("by_load"))
      .def("_is_changed", &VariableHandle::is_changed);
}

}  // namespace

void RequireWholeSequences(const Tensor& tensor) { RequireValid(tensor.lod(), tensor); }

Variable& VariableHandle::variable() const {
  if (scope_ == nullptr) return *own_;
  if (const Variable* found = scope_->scope.Find(name_)) AwaitArrival(*found);
  Variable* found = scope_->scope.Find(name_);  // another thread may have erased it during the wait
  if (found == nullptr) {
    throw StatusError(FailedPrecondition("E-scope-gone", "variable ", name_, " is no longer in its scope"));
  }
  return *found;
}

ScopeBox* VariableHandle::holder() const {
  ScopeBox* holder = scope_.get();
  while (holder != nullptr && holder->scope.FindLocal(name_) == nullptr) holder = holder->parent.get();
  return holder;
}

bool VariableHandle::in_use() const {
  const ScopeBox* scope = holder();
  return scope != nullptr && scope->runs > 0 && variable().initialized();
}

void VariableHandle::NoteChanged(bool by_load) const {
  if (ScopeBox* scope = holder()) scope->changed[name_] |= by_load;
}

bool VariableHandle::is_changed() const {
  const ScopeBox* scope = holder();
  return scope != nullptr && scope->changed.contains(name_);
}

void VariableHandle::RequireIdle() const {
  if (in_use()) throw StatusError(InUse(name_));
}

bool VariableHandle::Assign(const VariableHandle& from) const {
  Tensor* to = variable().If<Tensor>();
  const auto* value = from.variable().If<Tensor>();
  const bool alike = to != nullptr && to->initialized() && value != nullptr &&
                     value->dtype() == to->dtype() && value->shape() == to->shape() &&
                     value->lod() == to->lod();
  if (alike && std::memcmp(to->raw(), value->raw(), value->bytes()) == 0) return false;
  if (alike && in_use()) {
    to->CopyFrom(*value);
  } else {
    RequireIdle();
    variable() = from.variable();
  }
  return true;
}

SelectedRows& RowsHandle::rows() const {
  Variable& held = variable();
  if (held.Is<std::monostate>() || held.Is<SelectedRows>()) return held.As<SelectedRows>();
  throw StatusError(FailedPrecondition("E-rows-kind", "the variable holds no selected rows"));
}

Tensor& TensorHandle::tensor() const {
  if (is_value_of_rows) return RowsHandle(*this).rows().value;
  Variable& held = variable();
  if (held.Is<std::monostate>() || held.Is<Tensor>()) return held.As<Tensor>();
  throw StatusError(FailedPrecondition("E-tensor-kind", "the variable holds no dense tensor"));
}

void BindTensor(py::module_& m) {
  BindTensorMemory(m);
  BindVariable(m);
  BindLoDTensor(m);
  BindSelectedRows(m);
}

void BindScope(py::module_& m) {
  py::class_<ScopeBox, std::shared_ptr<ScopeBox>>(m, "Scope")
      .def(py::init<>())
      .def("new_scope", [](const std::shared_ptr<ScopeBox>& box) { return std::make_shared<ScopeBox>(box); })
      .def(
          "var",
          [](const std::shared_ptr<ScopeBox>& box, const std::string& name) {
            box->scope.FindOrCreate(name);
            return VariableHandle(box, name);
          },
          py::arg("name"))
      .def(
          "find_var",
          [](const std::shared_ptr<ScopeBox>& box, const std::string& name) -> py::object {
            if (box->scope.Find(name) == nullptr) return py::none();
            return py::cast(VariableHandle(box, name));
          },
          py::arg("name"))
      .def("local_var_names", [](const ScopeBox& box) { return box.scope.Names(); })
      .def(
          "erase",
          [](ScopeBox& box, const std::string& name) {
            if (box.runs > 0 && box.scope.FindLocal(name) != nullptr) throw StatusError(InUse(name));
            return box.scope.Erase(name);
          },
          py::arg("name"))
      .def("drop_kids", [](ScopeBox&) {});
}

}  // namespace penstock::python
