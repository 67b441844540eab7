// The value of a variable at run time: empty, a dense tensor, selected rows of a tall tensor, an array of
// tensors, a table of sequence lengths, or the scopes that runs of a block have left.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "framework/tensor/tensor.h"

namespace penstock {

class RowStart;
class Scope;

// Some rows of a tensor of `height` rows: row i of the value is row rows[i]. A row number may occur more than
// once (the values add up). value.shape() is [rows.size(), width...].
struct SelectedRows {
  std::vector<std::int64_t> rows;
  std::int64_t height = 0;
  Tensor value;
  // Initial values of the rows that are not listed (row_start.h); null: those rows do not exist.
  std::shared_ptr<const RowStart> start = nullptr;

  // Gives `value` a type and shape, as Tensor::Reset, for a new list of rows; drops `start`.
  void ResetValue(DType type, const Shape& shape) {
    value.Reset(type, shape);
    start.reset();
  }
};

using TensorArray = std::vector<Tensor>;

// The sequences of one LoD level, longest first; equal lengths keep their order.
struct RankTable {
  struct Item {
    std::int64_t index = 0;   // of the sequence within its level
    std::int64_t length = 0;  // in elements of the level below
  };
  LoD coarse;  // the levels above the ranked one
  std::vector<Item> items;
};

// The scopes that runs of a block keep for its gradient, one per run, in order.
using StepScopes = std::vector<std::shared_ptr<Scope>>;

class Variable {
 public:
  bool initialized() const;
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  // The value as a T; if it has another type, replaces it by a default T. Before reading a value that other
  // code wrote, check its type with Is.
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
