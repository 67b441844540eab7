// Selected rows in kernels that want each row once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"

namespace penstock {

// Adds up what belongs to one row. Keeps its memory between calls.
class RowMerger {
 public:
  // `out` gets each row of `x` once: in x's order if no row occurs twice, else ascending, as Fluid. Values of
  // a row are added in x's order. `out` may be `x` only if no row of x occurs twice.
  template <typename T>
  void Merge(const SelectedRows& x, SelectedRows& out) {
    const bool repeats = Sort(x.rows);
    out.height = x.height;
    if (!x.value.initialized()) {  // no rows, and so no width either
      out.rows.clear();
      out.value.Reset(DTypeOfT<T>::kValue, {0});
      return;
    }
    const Dim width = x.value.shape().RowWidth();
    if (!repeats) {
      if (&out == &x) return;
      out.rows = x.rows;
      out.value.Reset(x.value.dtype(), x.value.shape());
      std::copy_n(x.value.Data<T>(), x.value.count(), out.value.Data<T>());
      return;
    }
    out.rows.clear();
    for (const auto& [row, position] : order_) {
      if (out.rows.empty() || out.rows.back() != row) out.rows.push_back(row);
    }
    out.value.Reset(x.value.dtype(), x.value.shape().WithRows(static_cast<Dim>(out.rows.size())));
    T* to = out.value.Data<T>();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const T* const from = x.value.Data<T>() + order_[i].second * width;
      if (i > 0 && order_[i].first == order_[i - 1].first) {
        for (Dim j = 0; j < width; ++j) to[j - width] += from[j];
      } else {
        std::copy_n(from, width, to);
        to += width;
      }
    }
  }

 private:
  // (row, position in x), sorted. Whether a row occurs twice.
  bool Sort(const std::vector<std::int64_t>& rows) {
    order_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) order_.emplace_back(rows[i], static_cast<Dim>(i));
    std::sort(order_.begin(), order_.end());
    const auto same_row = [](const auto& a, const auto& b) { return a.first == b.first; };
    return std::adjacent_find(order_.begin(), order_.end(), same_row) != order_.end();
  }

  std::vector<std::pair<std::int64_t, Dim>> order_;
};

// The values of an operand that is a tensor or selected rows, for kernels that write a result of X's kind and
// shape.
class DenseOrMergedRows {
 public:
  // X's values: the tensor, or its rows, each once. Makes Out's rows alike.
  template <typename T>
  const Tensor& Of(KernelRun& k, const Operand& x, const Operand& out) {
    if (x.kind == VarKind::kTensor) return k[x];
    merger_.Merge<T>(k.Var(x).As<SelectedRows>(), merged_);
    auto& rows = k.Var(out).As<SelectedRows>();
    rows.rows = merged_.rows;
    rows.height = merged_.height;
    rows.value.Reset(merged_.value.dtype(), merged_.value.shape());
    return merged_.value;
  }
  // Where the results go. After Of.
  Tensor& Out(KernelRun& k, const Operand& out) {
    return out.kind == VarKind::kTensor ? k[out] : k.Var(out).As<SelectedRows>().value;
  }

 private:
  RowMerger merger_;
  SelectedRows merged_;
};

}  // namespace penstock
