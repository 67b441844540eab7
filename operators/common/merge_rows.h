// Selected rows in kernels that want each row once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/rows.h"

namespace penstock {

// Adds up what belongs to one row. Keeps its memory between calls. What it is given fits RequireRowValues.
class RowMerger {
 public:
  // `out` gets each row of all of `from`, which are rows of one tensor, once: in their order if no row occurs
  // twice, else ascending, as Fluid. Values of a row are added in that order. `out` is none of them.
  template <typename T>
  void Merge(std::span<const SelectedRows* const> from, SelectedRows& out) {
    const bool repeats = List<T>(from);
    if (!repeats) {  // back into the given order
      std::sort(entries_.begin(), entries_.end(),
                [](const Entry& a, const Entry& b) { return a.position < b.position; });
    }
    Collect<T>(from, out);
  }
  template <typename T>
  void Merge(const SelectedRows& x, SelectedRows& out) {
    const SelectedRows* const from[] = {&x};
    Merge<T>(from, out);
  }
  // The same, always ascending.
  template <typename T>
  void MergeAscending(const SelectedRows& x, SelectedRows& out) {
    const SelectedRows* const from[] = {&x};
    List<T>(from);
    Collect<T>(from, out);
  }

 private:
  struct Entry {
    std::int64_t row;
    std::size_t position;  // among all that were given
    const void* values;
  };

  // Entries by row, those of one row in the given order. Whether a row occurs twice.
  template <typename T>
  bool List(std::span<const SelectedRows* const> from) {
    entries_.clear();
    for (const SelectedRows* x : from) {
      if (!x->value.initialized()) continue;  // no rows, and so no width either
      const Dim width = x->value.shape().RowWidth();
      const T* values = x->value.Data<T>();
      for (const std::int64_t row : x->rows) {
        entries_.push_back({row, entries_.size(), values});
        values += width;
      }
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.row != b.row ? a.row < b.row : a.position < b.position;
    });
    const auto same_row = [](const Entry& a, const Entry& b) { return a.row == b.row; };
    return std::adjacent_find(entries_.begin(), entries_.end(), same_row) != entries_.end();
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
      const T* const values = static_cast<const T*>(entries_[i].values);
      if (i > 0 && entries_[i].row == entries_[i - 1].row) {
        for (Dim j = 0; j < width; ++j) to[j - width] += values[j];
      } else {
        to = std::copy_n(values, width, to);
      }
    }
  }

  std::vector<Entry> entries_;
  Shape shape_;  // of the result; kept for its memory
};

// The values of an operand that is a tensor or selected rows, for kernels that write a result of X's kind and
// shape.
class DenseOrMergedRows {
 public:
  void Prepare(const Operand& x, const Operand& out) {
    x_ = x;
    out_ = out;
  }
  // X's values are the tensor's, or those of its rows, each once. Makes Out's rows alike.
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
  // After Load, of the same run.
  const Tensor& From(KernelRun& k) const { return x_.kind == VarKind::kTensor ? k[x_] : merged_.value; }
  Tensor& To(KernelRun& k) const {
    return out_.kind == VarKind::kTensor ? k[out_] : k.Var(out_).As<SelectedRows>().value;
  }

 private:
  Operand x_, out_;
  RowMerger merger_;
  SelectedRows merged_;
};

}  // namespace penstock
