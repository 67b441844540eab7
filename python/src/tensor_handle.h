// The classes behind Python's LoDTensor and Scope. A handle either owns its tensor, or looks up a name in a
// scope at each call, so it never points to a variable that was erased.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

#include "executor/client/initial_values.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"

namespace penstock::python {

// A scope that keeps its parent scopes alive.
struct ScopeBox {
  explicit ScopeBox(std::shared_ptr<ScopeBox> above = nullptr)
      : parent(std::move(above)), scope(parent == nullptr ? nullptr : &parent->scope) {}
  std::shared_ptr<ScopeBox> parent;
  Scope scope;
  int runs = 0;  // runs in progress in this scope or its descendants; read and written with the GIL held
  // Variables of this scope that Python has set since a trainer's program last ran; written with the GIL
  // held.
  client::ChangedVars changed;
};

// Counts a run in its scope and all ancestors. Created and destroyed with the GIL held.
class ScopeInUse {
 public:
  explicit ScopeInUse(std::shared_ptr<ScopeBox> box) : box_(std::move(box)) { Count(1); }
  ~ScopeInUse() { Count(-1); }
  ScopeInUse(const ScopeInUse&) = delete;
  ScopeInUse& operator=(const ScopeInUse&) = delete;

 private:
  void Count(int by) {
    for (ScopeBox* at = box_.get(); at != nullptr; at = at->parent.get()) at->runs += by;
  }
  std::shared_ptr<ScopeBox> box_;
};

class VariableHandle {
 public:
  VariableHandle() : own_(std::make_shared<Variable>()) {}
  explicit VariableHandle(Variable value) : own_(std::make_shared<Variable>(std::move(value))) {}
  VariableHandle(std::shared_ptr<ScopeBox> scope, std::string name)
      : scope_(std::move(scope)), name_(std::move(name)) {}

  Variable& variable() const;  // throws StateError if the scope no longer has the name
  // Whether a run may use the variable now. Then type, shape and offsets must not change, because ops are
  // prepared for them.
  bool in_use() const;
  bool in_scope() const { return scope_ != nullptr; }
  // Records that Python has set the value in the scope; `by_load`: to a value from a file.
  void NoteChanged(bool by_load) const;
  // Whether Python has set the value since a trainer's program last ran.
  bool is_changed() const;
  ScopeBox* holder() const;  // the scope that has the name, or null
  void RequireIdle() const;  // throws StateError E-scope-in-use if a run may use the variable
  // Moves the value of `from` into this variable if no other handle uses it; in a variable in use only the
  // elements may change. Returns false if both handles already have the same tensor.
  bool Assign(const VariableHandle& from) const;

 private:
  std::shared_ptr<Variable> own_;
  std::shared_ptr<ScopeBox> scope_;
  std::string name_;
};

// rows() and tensor() create an empty value in a variable without one, and throw StateError if the variable
// holds a value of another kind.
struct RowsHandle : VariableHandle {
  using VariableHandle::VariableHandle;
  explicit RowsHandle(const VariableHandle& variable) : VariableHandle(variable) {}
  SelectedRows& rows() const;
};
struct TensorHandle : VariableHandle {
  using VariableHandle::VariableHandle;
  explicit TensorHandle(const VariableHandle& variable) : VariableHandle(variable) {}
  explicit TensorHandle(const RowsHandle& rows) : VariableHandle(rows), is_value_of_rows(true) {}
  Tensor& tensor() const;
  bool is_value_of_rows = false;  // this is the value tensor of selected rows
};

// Throws ProgramError E-lod-cover if the tensor has sequences that do not cover its rows. A LoDTensor outside
// of scopes may be in this state between set() and set_lod(); a tensor that enters a run or a queue may not.
void RequireWholeSequences(const Tensor& tensor);

// The memory of a tensor, for Python's buffer protocol.
struct TensorMemory {
  Tensor tensor;
};
void BindTensorMemory(pybind11::module_& m);

// Returns a tensor that shares and pins the array's memory: the array cannot be resized until the last owner
// releases the tensor. Copies instead if the array is smaller than 4 KiB, not contiguous, not aligned, not of
// floats, or if numpy does not own its memory.
Tensor BorrowArray(pybind11::handle array);
// Copies an array into a tensor, with the array's type and shape.
void CopyArray(pybind11::handle array, Tensor& out);
// Copies an array into a tensor in use. Throws StateError E-scope-in-use if its type or shape would change.
void CopyValues(pybind11::handle array, Tensor& out);
// A new numpy array that shares the tensor's memory and keeps it alive.
pybind11::object ViewAsArray(const Tensor& tensor);

// A tensor array: owned by the handle, or held by a variable of a scope.
struct ArrayHandle : VariableHandle {
  using VariableHandle::VariableHandle;
  explicit ArrayHandle(const VariableHandle& held) : VariableHandle(held) {}
  TensorArray& array() const;       // throws StateError if the variable holds a value of another kind
  Tensor& At(std::size_t i) const;  // throws IndexError
};

}  // namespace penstock::python
