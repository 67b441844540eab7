// Merges duplicate rows of selected rows, for kernels that need each row once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/order_rows.h"
#include "operators/common/rows.h"

namespace penstock {

// Sums the values of each row. Reuses its memory between calls. Inputs must satisfy RequireRowValues.
class RowMerger {
 public:
  struct Entry {
    std::int64_t row;
    const void* values;

    template <typename T>
    const T* Values() const {
      return static_cast<const T*>(values);
    }
  };

  // Sets `out` to the rows of all of `from`, each once. All of `from` are rows of one tensor. The rows keep
  // their order if no row occurs twice; otherwise they are in ascending order, as in Fluid. The values of a
  // row are added in the order of `from`. `out` must not be one of `from`.
  template <typename T>
  void Merge(std::span<const SelectedRows* const> from, SelectedRows& out) {
    List<T>(from);
    OrderByRow(entries_, spare_);
    if (!Repeats()) List<T>(from);  // restores the given order
    Collect<T>(from, out);
  }
  template <typename T>
  void Merge(const SelectedRows& x, SelectedRows& out) {
    const SelectedRows* const from[] = {&x};
    Merge<T>(from, out);
  }
  // Does the same, but the result is always in ascending order.
  template <typename T>
  void MergeAscending(const SelectedRows& x, SelectedRows& out) {
    const SelectedRows* const from[] = {&x};
    List<T>(from);
    OrderByRow(entries_, spare_);
    Collect<T>(from, out);
  }
  // Does the same without a copy: the values of a row that occurs once are x's own. The result is valid until
  // the next call, and as long as x is unchanged.
  template <typename T>
  std::span<const Entry> Distinct(const SelectedRows& x) {
    const SelectedRows* const from[] = {&x};
    List<T>(from);
    OrderByRow(entries_, spare_);
    if (Repeats()) AddRepeated<T>(x.value.shape().RowWidth());
    return entries_;
  }

 private:
  static bool SameRow(const Entry& a, const Entry& b) { return a.row == b.row; }
  bool Repeats() const {
    return std::adjacent_find(entries_.begin(), entries_.end(), SameRow) != entries_.end();
  }

  // Makes an entry for each row, in the given order.
  template <typename T>
  void List(std::span<const SelectedRows* const> from) {
    entries_.clear();
    for (const SelectedRows* x : from) {
      if (!x->value.initialized()) continue;  // without rows, the width is not known
      const Dim width = x->value.shape().RowWidth();
      const T* values = x->value.Data<T>();
      for (const std::int64_t row : x->rows) {
        entries_.push_back({row, values});
        values += width;
      }
    }
  }

  // Merges the entries of each row into one. The entries must be sorted by row.
  template <typename T>
  void AddRepeated(Dim width) {
    const auto bytes = static_cast<std::size_t>(width) * sizeof(T);
    sums_.resize(entries_.size() / 2 * bytes);  // an upper bound
    std::byte* next_sum = sums_.data();
    std::size_t kept = 0;
    for (std::size_t i = 0, end = 0; i < entries_.size(); i = end) {
      Entry entry = entries_[i];
      for (end = i + 1; end < entries_.size() && SameRow(entry, entries_[end]);) ++end;
      if (end > i + 1) {
        T* const sum = reinterpret_cast<T*>(std::exchange(next_sum, next_sum + bytes));
        std::copy_n(entry.Values<T>(), width, sum);
        for (std::size_t other = i + 1; other < end; ++other) Add(entries_[other].Values<T>(), width, sum);
        entry.values = sum;
      }
      entries_[kept++] = entry;
    }
    entries_.resize(kept);
  }

  template <typename T>
  static void Add(const T* values, Dim width, T* sum) {
    for (Dim j = 0; j < width; ++j) sum[j] += values[j];
  }

  template <typename T>
  void Collect(std::span<const SelectedRows* const> from, SelectedRows& out) {
    out.height = from.empty() ? 0 : from.front()->height;
    out.rows.clear();
    for (const Entry& entry : entries_) {
      if (out.rows.empty() || out.rows.back() != entry.row) out.rows.push_back(entry.row);
    }
    const auto shaped =
        std::find_if(from.begin(), from.end(), [](const SelectedRows* x) { return x->value.initialized(); });
    if (shaped == from.end()) {
      out.ResetValue(DTypeOfT<T>::kValue, NoRows());
      return;
    }
    shape_ = (*shaped)->value.shape();
    const Dim width = shape_.RowWidth();
    shape_.Set(0, static_cast<Dim>(out.rows.size()));
    out.ResetValue(DTypeOfT<T>::kValue, shape_);
    T* to = out.value.Data<T>();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const T* const values = entries_[i].Values<T>();
      if (i > 0 && SameRow(entries_[i], entries_[i - 1])) {
        Add(values, width, to - width);
      } else {
        to = std::copy_n(values, width, to);
      }
    }
  }

  std::vector<Entry> entries_, spare_;
  std::vector<std::byte> sums_;
  Shape shape_;  // of the result; a member to reuse its memory
};

// Access to an operand X that is a tensor or selected rows, for kernels whose result has X's kind and shape.
class DenseOrMergedRows {
 public:
  void Prepare(const Argument& x, const Argument& out) {
    x_ = x;
    out_ = out;
  }
  // Reads X: the values of the tensor, or of its rows, merged so that each occurs once. Sets the rows of Out
  // to match.
  template <typename T>
  Status Load(KernelRun& k, std::string_view op) {
    if (x_.kind == VarKind::kTensor) return OkStatus();
    const SelectedRows& x = k.Var(x_).As<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(RequireRowValues(op, "X", x, DTypeOfT<T>::kValue));
    merger_.Merge<T>(x, merged_);
    SelectedRows& out = k.Var(out_).As<SelectedRows>();
    out.rows = merged_.rows;
    out.height = merged_.height;
    out.ResetValue(merged_.value.dtype(), merged_.value.shape());
    return OkStatus();
  }
  // Call after Load in the same run.
  const Tensor& From(KernelRun& k) const { return x_.kind == VarKind::kTensor ? k[x_] : merged_.value; }
  Tensor& To(KernelRun& k) const {
    return out_.kind == VarKind::kTensor ? k[out_] : k.Var(out_).As<SelectedRows>().value;
  }

 private:
  TypedOperand x_, out_;
  RowMerger merger_;
  SelectedRows merged_;
};

}  // namespace penstock
