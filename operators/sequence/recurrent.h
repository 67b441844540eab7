// Shared by the kernels of recurrent ops: scratch memory, initial states, and bias.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "operators/common/lod.h"

namespace penstock {

// Scratch memory of one run.
template <typename T>
class Scratch {
 public:
  void Prepare(KernelSetup& k, Dim count) { id_ = k.Workspace(static_cast<std::size_t>(count) * sizeof(T)); }
  T* At(KernelRun& k) const { return reinterpret_cast<T*>(k.Workspace(id_)); }

 private:
  WorkspaceId id_;
};

// An output that may be absent; scratch memory then takes its place.
template <typename T>
class OutputOrScratch {
 public:
  void Prepare(KernelSetup& k, std::string_view slot, Dim count) {
    output_ = k.Output(slot);
    if (!output_) scratch_.Prepare(k, count);
  }
  T* At(KernelRun& k) const { return output_ ? k[output_].template Data<T>() : scratch_.At(k); }

 private:
  Operand output_;
  Scratch<T> scratch_;
};

// The initial state: an optional input with one row per sequence.
template <typename T>
class InitialState {
 public:
  void Prepare(const KernelSetup& k, std::string_view slot, Dim width) {
    operand_ = k.Input(slot);
    what_ = StrCat(k.op().type(), ": ", slot);
    width_ = width;
  }
  Dim rows() const { return operand_ && operand_.shape.rank() > 0 ? operand_.shape[0] : 0; }
  // Returns its values, or null if the input is absent. kInvalidArgument: the number of rows is not
  // `sequences`.
  Result<const T*> Find(KernelRun& k, Dim sequences) const {
    if (!operand_) return static_cast<const T*>(nullptr);
    const Tensor& tensor = k[operand_];
    PENSTOCK_RETURN_IF_ERROR(CheckRows(what_, tensor, sequences, width_));
    return tensor.Data<T>();
  }

 private:
  Operand operand_;
  std::string what_;
  Dim width_ = 0;
};

// to[row, j] += bias[j]
template <typename T>
void AddToRows(const T* bias, Dim rows, Dim width, T* to) {
  for (Dim r = 0; r < rows; ++r, to += width) {
    for (Dim j = 0; j < width; ++j) to[j] += bias[j];
  }
}

// to[j] = sum over the rows of from[row, j]
template <typename T>
void SumRows(const T* from, Dim rows, Dim width, T* to) {
  std::fill_n(to, width, T{0});
  for (Dim r = 0; r < rows; ++r, from += width) {
    for (Dim j = 0; j < width; ++j) to[j] += from[j];
  }
}

}  // namespace penstock
