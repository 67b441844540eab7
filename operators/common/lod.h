// The sequences of an argument, checked; the LoD that a kernel makes; outputs whose rows only Run knows.
//
//   x_.Prepare(k, "X");                                              // a SequenceInput, in Prepare
//   PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));     // in Run
//   for (Dim s = 0; s < x.count(); ++s) Sum(x.begin(s), x.end(s));   // rows of X
//
// None of these allocates in a run whose sequences are those of the run before.
#pragma once

#include <string>

#include "framework/op/kernel.h"

namespace penstock {

// One level of a LoD, checked: sequence i is [begin(i), end(i)). A view; it lives as long as the level does.
class Offsets {
 public:
  Offsets() = default;
  explicit Offsets(const LoDLevel& level) : offsets_(level.data()), count_(level.size() - 1) {}

  Dim count() const { return static_cast<Dim>(count_); }
  Dim begin(Dim i) const { return static_cast<Dim>(offsets_[i]); }
  Dim end(Dim i) const { return static_cast<Dim>(offsets_[i + 1]); }
  Dim length(Dim i) const { return end(i) - begin(i); }
  Dim total() const { return end(count() - 1); }
  Dim longest() const;

 private:
  const std::uint64_t* offsets_ = nullptr;
  std::size_t count_ = 0;
};

// kInvalidArgument E-op-lod unless `lod` has min to max levels (max 0: any number), each of which starts at 0
// and does not decrease, and each of which ends where the next one has its last sequence, the last one at
// `rows`. `what` names the argument: "sequence_pool: X".
Status CheckLod(const std::string& what, const LoD& lod, Dim rows, std::size_t min_levels,
                std::size_t max_levels = 0);

// An input that falls into sequences.
class SequenceInput {
 public:
  void Prepare(const KernelSetup& k, std::string_view slot, int i = 0);
  const Operand& operand() const { return operand_; }
  explicit operator bool() const { return static_cast<bool>(operand_); }
  const std::string& what() const { return what_; }

  // The innermost level: sequences of rows.
  Result<Offsets> Innermost(KernelRun& k) const;
  // All levels, outermost first; at least min, at most max (0: any number).
  Result<const LoD*> Levels(KernelRun& k, std::size_t min_levels, std::size_t max_levels = 0) const;

 private:
  Operand operand_;
  std::string what_;  // "sequence_pool: X"
};

// kInvalidArgument E-op-lod, for what relates the sequences of several inputs.
template <typename... Parts>
Status LodError(const Parts&... parts) {
  return InvalidArgument("E-op-lod", StrCat(parts...));
}

// The LoD that a kernel gives to an output: filled level by level, then set.
class MadeLod {
 public:
  // Empties it; the levels start at 0.
  void Start(std::size_t levels);
  void Add(std::size_t level, Dim length) {
    next_[level].push_back(next_[level].back() + static_cast<std::uint64_t>(length));
  }
  void CopyLevel(std::size_t level, const LoDLevel& from) { next_[level] = from; }
  void Set(Tensor& out) { Set(out, next_); }
  // The same with levels that the caller has filled.
  void Set(Tensor& out, const LoD& lod);

 private:
  LoD next_;
  Tensor last_;  // holds the LoD that was set last
};

// kInvalidArgument unless the tensor has `rows` rows of `width` elements. `what` names it: "sequence_pool:
// X".
Status CheckRows(const std::string& what, const Tensor& tensor, Dim rows, Dim width);

// An output with rows of a known shape, whose number is found in Run.
class RowsOutput {
 public:
  // `shape` with any first extent. kInvalidArgument if the op reads the same variable: it would be gone.
  Status Prepare(const KernelSetup& k, std::string_view slot, DType dtype, const Shape& shape);
  explicit operator bool() const { return static_cast<bool>(operand_); }
  Dim width() const { return width_; }
  // Its tensor with that many rows and no LoD; the contents are not set.
  Tensor& Make(KernelRun& k, Dim rows);

 private:
  Operand operand_;
  DType dtype_ = DType::kFp32;
  Shape shape_;
  Dim width_ = 1;
};

}  // namespace penstock
