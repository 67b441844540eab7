// The gradient of an update, dense or selected rows. An optimizer writes its rule for one element; this class
// applies it to all elements that change.
//
//   PENSTOCK_RETURN_IF_ERROR(grad_.Prepare(k, WithoutGradient::kMoves));
//   ... each run:
//   PENSTOCK_RETURN_IF_ERROR(grad_.Load(k));
//   grad_.ForEach([=](std::int64_t i, T g) { out[i] = param[i] - rate * g; });
//
// Duplicate rows count with the sum of their values. A gradient of rows has the same effect as the dense
// gradient that is zero everywhere else.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/vector/optimizers.h"
#include "operators/common/merge_rows.h"
#include "operators/common/parallel.h"

namespace penstock {

// The treatment of rows that a gradient of rows does not list.
enum class WithoutGradient {
  kMoves,  // the rule is applied with a gradient of 0, so that their optimizer state decays
  kStays,  // the rule is not applied: with a gradient of 0 it changes nothing, or must not be applied
};

template <typename T>
class Gradient {
 public:
  // An input and the output with its new value. For kStays, Load first copies the input to the output if
  // these are different variables.
  using Kept = std::pair<Operand, Operand>;

  Status Prepare(const KernelSetup& k, WithoutGradient rest, std::initializer_list<Kept> kept = {}) {
    op_ = k.op().type();
    k.Bind(param_);
    grad_ = k.Input("Grad");
    moves_ = rest == WithoutGradient::kMoves;
    kept_.assign(kept);
    return OkStatus();
  }

  Status Load(KernelRun& k) { return Load(k, /*in_one_piece=*/false); }
  // Does the same, for rules that need values().
  Status LoadInOnePiece(KernelRun& k) { return Load(k, /*in_one_piece=*/true); }

  // Calls rule(i, g) for each element i that changes, once. Several threads may do so, each for a part of the
  // elements. Call it after Load in the same run.
  template <typename Rule>
  void ForEach(const Rule& rule) const {
    ForEachRange([&rule](std::int64_t begin, std::int64_t count, const T* grad) {
      if (grad == nullptr) {
        for (std::int64_t i = 0; i < count; ++i) rule(begin + i, T{0});
      } else {
        for (std::int64_t i = 0; i < count; ++i) rule(begin + i, grad[i]);
      }
    });
  }
  // Does the same for ranges: calls rule(begin, count, grad), where `grad` holds their gradients, or is null
  // if these are 0.
  template <typename Rule>
  void ForEachRange(const Rule& rule) const {
    if (grad_.kind == VarKind::kTensor) {
      const T* const grad = values_.data();
      ForElements(count_, kRuleNs, [&](Dim begin, Dim end) { rule(begin, end - begin, grad + begin); });
      return;
    }
    std::int64_t done = 0;
    for (const RowMerger::Entry& entry : rows_) {
      const std::int64_t begin = entry.row * width_;
      if (moves_ && done < begin) rule(done, begin - done, static_cast<const T*>(nullptr));
      rule(begin, width_, entry.Values<T>());
      done = begin + width_;
    }
    if (moves_ && done < count_) rule(done, count_ - done, static_cast<const T*>(nullptr));
  }
  // Calls rule(row, grad) once for each row that has a gradient, of `width` elements.
  template <typename Rule>
  void ForEachRow(Dim width, const Rule& rule) const {
    if (grad_.kind != VarKind::kTensor) {
      for (const RowMerger::Entry& entry : rows_) rule(entry.row, entry.Values<T>());
      return;
    }
    const T* const grad = values_.data();
    ForRows(width == 0 ? 0 : count_ / width, kRuleNs * static_cast<double>(width), [&](Dim begin, Dim end) {
      for (Dim row = begin; row < end; ++row) rule(row, grad + row * width);
    });
  }
  // Does the step of framework/vector/optimizers.h.
  template <typename Step>
  void Update(const Step& step) const {
    ForEachRange([&step](std::int64_t begin, std::int64_t count, const float* grad) {
      vec::Update(step, static_cast<std::size_t>(begin), static_cast<std::size_t>(count), grad);
    });
  }

  bool by_rows() const { return grad_.kind == VarKind::kSelectedRows; }
  // Returns all values of the gradient, without the zeros of rows that are not listed. For norms. Call it
  // after LoadInOnePiece.
  std::span<const T> values() const { return values_; }

 private:
  static constexpr double kRuleNs = 1;

  Status Load(KernelRun& k, bool in_one_piece) {
    count_ = k[param_].count();
    if (grad_.kind == VarKind::kTensor) {
      values_ = k[grad_].template Span<T>();
      return OkStatus();
    }
    const SelectedRows& grad = k.Var(grad_).template As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRows(op_, "Grad", grad, DTypeOfT<T>::kValue, k[param_].shape()));
    if (in_one_piece) {
      merger_.MergeAscending<T>(grad, merged_);
      values_ = merged_.value.template Span<T>();
    }
    rows_ = merger_.Distinct<T>(in_one_piece ? merged_ : grad);
    width_ = k[param_].shape().RowWidth();
    if (moves_) return OkStatus();
    for (const auto& [from, to] : kept_) {
      if (k[from].raw() != k[to].raw()) k[to].CopyFrom(k[from]);
    }
    return OkStatus();
  }

  std::string op_;
  TypedOperand grad_;
  In<"Param"> param_;
  bool moves_ = true;
  std::vector<Kept> kept_;
  RowMerger merger_;
  SelectedRows merged_;
  std::span<const RowMerger::Entry> rows_;
  std::span<const T> values_;
  std::int64_t count_ = 0, width_ = 0;
};

}  // namespace penstock
