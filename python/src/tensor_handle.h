// LoDTensor and Scope as Python holds them. A tensor is either one of its own, or what a name means in a
// scope at the time of each call, so it is never left pointing at a variable that is gone.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

#include "executor/client/initial_values.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/variable.h"

namespace penstock::python {

// A scope and what keeps its parents alive.
struct ScopeBox {
  explicit ScopeBox(std::shared_ptr<ScopeBox> above = nullptr)
      : parent(std::move(above)), scope(parent == nullptr ? nullptr : &parent->scope) {}
  std::shared_ptr<ScopeBox> parent;
  Scope scope;
  int runs = 0;  // in progress, in this scope or below; read and written with the GIL held
  // Of this scope, what Python has set since a trainer's program ran; written with the GIL held.
  client::ChangedVars changed;
};

// Counts a run in its scope and all above it. Made and destroyed with the GIL held.
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

  Variable& variable() const;  // throws StateError if the scope does not hold the name any more
  // Whether a run may use the variable now: an op prepared for its type, shape and offsets must meet them.
  bool in_use() const;
  bool in_scope() const { return scope_ != nullptr; }
  // The value in the scope is Python's now, `by_load` that of a file.
  void NoteChanged(bool by_load) const;
  ScopeBox* holder() const;  // the scope that has the name; null if none has
  void RequireIdle() const;  // throws StateError if a value is in use
  // Takes over the value of one that nobody else uses; of a value in use only the elements may change. False:
  // the same tensor was there.
  bool Assign(const VariableHandle& from) const;

 private:
  std::shared_ptr<Variable> own_;
  std::shared_ptr<ScopeBox> scope_;
  std::string name_;
};

// Each makes an empty value in a variable without one, and throws StateError if the variable holds something
// else.
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
  bool is_value_of_rows = false;  // it is the tensor in selected rows
};

// Throws ProgramError E-lod-cover where the tensor has sequences that do not cover its rows. A LoDTensor of
// its own may be like that between a set() and a set_lod(); what enters a run or a queue may not.
void RequireWholeSequences(const Tensor& tensor);

// The memory of a tensor, for Python's buffer protocol.
struct TensorMemory {
  Tensor tensor;
};
void BindTensorMemory(pybind11::module_& m);

// A tensor that shares an array's memory and keeps it where it is: until the last owner lets go, the array
// cannot be resized. A copy where the array is small, not contiguous, not of floats, or not numpy's own
// memory.
Tensor BorrowArray(pybind11::handle array);
// Copies an array into a tensor.
void CopyArray(pybind11::handle array, Tensor& out);
// The same for a tensor in use: throws StateError if its type or shape would change.
void CopyValues(pybind11::handle array, Tensor& out);
// A new numpy array that shares the tensor's memory and keeps it alive.
pybind11::object ViewAsArray(const Tensor& tensor);

// An array of tensors: one of its own, or what a scope's variable holds.
struct ArrayHandle : VariableHandle {
  using VariableHandle::VariableHandle;
  explicit ArrayHandle(const VariableHandle& held) : VariableHandle(held) {}
  TensorArray& array() const;       // throws StateError if the variable holds something else
  Tensor& At(std::size_t i) const;  // throws IndexError
};

}  // namespace penstock::python
