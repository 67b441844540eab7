// Shared by the kernels of recurrent ops: scratch memory, initial states, bias, sums over rows, transposes,
// and shares of the sequences on several threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/runtime/compute_pool.h"
#include "framework/vector/gates.h"
#include "operators/common/lod.h"
#include "operators/sequence/step_batches.h"

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

// Memory whose size follows from the sequences, so that it is known only in Run. Aligned to 64 bytes.
template <typename T>
class RowBuffer {
 public:
  // Returns memory of at least `count` elements. Allocates only if that is more than before.
  T* Hold(Dim count) {
    const std::size_t needed = static_cast<std::size_t>(count) + kAlignment / sizeof(T);
    if (memory_.size() < needed) memory_.resize(needed);
    const auto misplaced = reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment;
    return memory_.data() + (misplaced == 0 ? 0 : (kAlignment - misplaced) / sizeof(T));
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::vector<T> memory_;
};

// The initial state: an optional input with one row per sequence.
template <typename T>
class InitialState {
 public:
  void Prepare(const KernelSetup& k, std::string_view slot, Dim width) {
    const Argument& state = k.Input(slot);
    operand_ = state;
    what_ = StrCat(k.op().type(), ": ", slot);
    rows_ = state.shape.rank() > 0 ? state.shape[0] : 0;
    width_ = width;
  }
  Dim rows() const { return rows_; }
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
  Dim rows_ = 0, width_ = 0;
};

// to[row, j] += bias[j]
template <typename T>
void AddToRows(const T* bias, Dim rows, Dim width, T* to) {
  for (Dim r = 0; r < rows; ++r, to += width) {
    for (Dim j = 0; j < width; ++j) to[j] += bias[j];
  }
}

// to[j] += sum over the rows of from[row, j]
template <typename T>
void AddRowsTo(const T* from, Dim rows, Dim width, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    vec::AddRowsTo(from, static_cast<std::size_t>(rows), static_cast<std::size_t>(width), to);
  } else {
    for (Dim r = 0; r < rows; ++r, from += width) {
      for (Dim j = 0; j < width; ++j) to[j] += from[j];
    }
  }
}

// to[j] = sum over the rows of from[row, j]
template <typename T>
void SumRows(const T* from, Dim rows, Dim width, T* to) {
  std::fill_n(to, width, T{0});
  AddRowsTo(from, rows, width, to);
}

// to = the transpose of from [rows, columns], by blocks that stay in the cache.
template <typename T>
void Transpose(const T* from, Dim rows, Dim columns, T* to) {
  constexpr Dim kBlock = 16;
  for (Dim i = 0; i < rows; i += kBlock) {
    const Dim end = std::min(i + kBlock, rows);
    for (Dim j = 0; j < columns; ++j) {
      for (Dim r = i; r < end; ++r) to[j * rows + r] = from[r * columns + j];
    }
  }
}

// Calls run(share) for each of at most kMostShares shares, on up to `threads` threads. A single share may use
// these threads itself (ThreadsOfShare).
template <typename Run>
Status EachShare(Dim shares, int threads, const Run& run) {
  if (shares == 1) return run(Dim{0});
  std::array<Status, kMostShares> statuses;
  ComputePool::OfThisProcess().ForEach(static_cast<int>(shares), threads, [&](int share) {
    statuses[static_cast<std::size_t>(share)] = run(static_cast<Dim>(share));
  });
  for (Status& status : statuses) PENSTOCK_RETURN_IF_ERROR(std::move(status));
  return OkStatus();
}
// The threads of a product within a share.
inline int ThreadsOfShare(Dim shares, int threads) { return shares > 1 ? 1 : threads; }

}  // namespace penstock
