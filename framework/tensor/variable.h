// What a name stands for at run time: nothing yet, a dense tensor, rows of a tall tensor, an array of
// tensors, sequences by their lengths, or what a block has left behind.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock {

class RowStart;
class Scope;

// Some rows of a tensor of `height` rows: value row i belongs to row rows[i]. A row may occur more than once
// (its values add up). value.shape() is [rows.size(), width...].
struct SelectedRows {
  std::vector<std::int64_t> rows;
  std::int64_t height = 0;
  Tensor value;
  // What the rows that are not listed are (row_start.h); null: there is nothing about them.
  std::shared_ptr<const RowStart> start = nullptr;

  // Values for a new list of rows, as Tensor::Reset gives them; the rows that it does not list are nothing.
  void ResetValue(DType type, const Shape& shape) {
    value.Reset(type, shape);
    start.reset();
  }
};

using TensorArray = std::vector<Tensor>;

// The sequences of one LoD level, longest first, equal ones in their order.
struct RankTable {
  struct Item {
    std::int64_t index = 0;   // of the sequence within its level
    std::int64_t length = 0;  // in elements of the level below
  };
  LoD coarse;  // the levels above the ranked one
  std::vector<Item> items;
};

// What the runs of a block have left for its gradient: one scope for each, in the order they ran.
using StepScopes = std::vector<std::shared_ptr<Scope>>;

class Variable {
 public:
  bool initialized() const;
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  // The value as a T; a default one is made if it was something else. Check with Is before reading what
  // others wrote.
  template <typename T>
  T& As() {
    if (!Is<T>()) value_ = T();
    return *std::get_if<T>(&value_);
  }
  template <typename T>
  const T* If() const {
    return std::get_if<T>(&value_);
  }
  template <typename T>
  T* If() {
    return std::get_if<T>(&value_);
  }
  void Clear() { value_ = std::monostate(); }

 private:
  std::variant<std::monostate, Tensor, SelectedRows, TensorArray, RankTable, StepScopes> value_;
};

inline bool Variable::initialized() const {
  if (const auto* tensor = If<Tensor>()) return tensor->initialized();
  return !Is<std::monostate>();
}

}  // namespace penstock
