// The update of single rows of a table by an optimizer. A kernel whose update of an element reads only that
// element implements this beside Kernel, with the same arithmetic, so that a row may keep its value and its
// states in one place instead of in columns, and costs nothing in steps whose gradient does not list it.
//
//   const std::shared_ptr<const RowRule> rule = RowRuleOf(def, op, DType::kFp32);   // null: by columns only
//   std::unique_ptr<StepHistory> history = rule->MakeHistory();   // null: other rows do not change
//   const RowStep step = {.columns = offsets, .width = 16, .rate = rate, .whole = powers};
//   rule->CatchUp(step, *history, 7, row);     // a row with the first 7 steps gets those up to now
//   rule->Update(step, rows);                  // in parts, each row once
//   history->Add(rule->NumberOf(step));        // at the end of the step
//   rule->Advance(step);
//
// Bytes are those of the kernel, except that CatchUp may differ by rounding. Thread-safe for different rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "framework/op/kernel.h"
#include "framework/op/step_history.h"
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
  // Reads the attributes. False: with these there is no rule.
  virtual bool PrepareRows(const KernelSetup& k) = 0;
  virtual void Update(const RowStep& step, std::span<const RowOfStep> rows) const = 0;
  // Changes the whole states.
  virtual void Advance(const RowStep&) const {}

  // Whether a gradient without rows makes a step. If not, it changes nothing, and no row has missed it.
  virtual bool StepsWithoutRows() const { return true; }
  // An empty history, for an op that also changes rows that the gradient does not list.
  virtual std::unique_ptr<StepHistory> MakeHistory() const { return nullptr; }
  // What the history notes of a step; call it before Advance.
  virtual double NumberOf(const RowStep&) const { return 0; }
  // Changes a row as the steps after step `done` of the history would with gradients of 0; `done` is below
  // history.count(). Of `step`, only `columns` and `width` are used, and no gradient of the row.
  virtual void CatchUp(const RowStep&, const StepHistory&, std::uint64_t /*done*/, const RowOfStep&) const {}
};

// The rule of an op with arguments of this type; null if there is none.
std::shared_ptr<const RowRule> RowRuleOf(const OpDef& def, const Op& op, DType type);

}  // namespace penstock
