// The update of single rows of a table by an optimizer. A kernel that changes only the rows that the gradient
// lists implements this beside Kernel, with the same arithmetic, so that a row may keep its value and its
// states in one place instead of in columns.
//
//   const std::shared_ptr<const RowRule> rule = RowRuleOf(def, op, DType::kFp32);   // null: updates all rows
//   const RowStep step = {.columns = offsets, .width = 16, .rate = rate, .whole = powers};
//   rule->Update(step, rows);            // in parts, each row once
//   rule->Advance(step);                 // at the end of the step
//
// Bytes are those of the kernel. Thread-safe for different rows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "framework/op/kernel.h"
#include "framework/tensor/dtype.h"

namespace penstock {

// What all rows of a step have in common.
struct RowStep {
  // Where Param, then each StateSlicing::kWithParam state in the order of OptimizerDef begins: bytes from the
  // begin of a row.
  std::span<const std::size_t> columns = {};
  Dim width = 0;                           // elements of each
  const std::byte* rate = nullptr;         // the learning rate, one element
  std::span<std::byte* const> whole = {};  // the StateSlicing::kWhole states, one element each

  template <typename T>
  T Rate() const {
    return *reinterpret_cast<const T*>(rate);
  }
  template <typename T>
  T& Whole(std::size_t state) const {
    return *reinterpret_cast<T*>(whole[state]);
  }
};

struct RowOfStep {
  std::byte* row = nullptr;
  std::byte* gradient = nullptr;

  template <typename T>
  T* Column(const RowStep& step, std::size_t column) const {
    return reinterpret_cast<T*>(row + step.columns[column]);
  }
  template <typename T>
  const T* Gradient() const {
    return reinterpret_cast<const T*>(gradient);
  }
};

class RowRule {
 public:
  virtual ~RowRule() = default;
  // Reads the attributes. False: with these, the op changes rows that the gradient does not list.
  virtual bool PrepareRows(const KernelSetup& k) = 0;
  virtual void Update(const RowStep& step, std::span<const RowOfStep> rows) const = 0;
  // Changes the whole states.
  virtual void Advance(const RowStep&) const {}
};

// The rule of an op with arguments of this type; null if its kernel has none, or the op changes other rows.
std::shared_ptr<const RowRule> RowRuleOf(const OpDef& def, const Op& op, DType type);

}  // namespace penstock
