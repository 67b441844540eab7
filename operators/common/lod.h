// The checked sequences of an argument, the LoD that a kernel makes, and outputs whose number of rows is
// known only in Run.
//
//   x_.Prepare(k, "X");                                              // a SequenceInput, in Prepare
//   PENSTOCK_ASSIGN_OR_RETURN(const Offsets x, x_.Innermost(k));     // in Run
//   for (Dim s = 0; s < x.count(); ++s) Sum(x.begin(s), x.end(s));   // rows of X
//
// None of these allocates if a run has the same sequences as the run before.
#pragma once

#include <string>

#include "framework/op/kernel.h"

namespace penstock {

// One checked level of a LoD: sequence i is [begin(i), end(i)). A view, valid as long as the level.
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

// kInvalidArgument E-op-lod unless `lod` has min to max levels (max 0: any number), and each level starts at
// 0, does not decrease, and ends at the number of sequences of the next level, the last level at `rows`.
// `what` names the argument in the error: "sequence_pool: X".
Status CheckLod(const std::string& what, const LoD& lod, Dim rows, std::size_t min_levels,
                std::size_t max_levels = 0);

// An input whose rows are divided into sequences.
class SequenceInput {
 public:
  void Prepare(const KernelSetup& k, std::string_view slot, int i = 0);
  const Operand& operand() const { return operand_; }
  explicit operator bool() const { return static_cast<bool>(operand_); }
  const std::string& what() const { return what_; }

  // Returns the innermost level, whose sequences consist of rows.
  Result<Offsets> Innermost(KernelRun& k) const;
  // Returns all levels, outermost first; at least min_levels, at most max_levels (0: any number).
  Result<const LoD*> Levels(KernelRun& k, std::size_t min_levels, std::size_t max_levels = 0) const;

 private:
  Operand operand_;
  std::string what_;  // "sequence_pool: X"
};

// Makes a kInvalidArgument E-op-lod, for rules that relate the sequences of several inputs.
template <typename... Parts>
Status LodError(const Parts&... parts) {
  return InvalidArgument("E-op-lod", StrCat(parts...));
}

// The LoD that a kernel gives to an output. The kernel fills it level by level and then sets it.
class MadeLod {
 public:
  // Starts a LoD of that many levels, each with its first offset, 0.
  void Start(std::size_t levels);
  void Add(std::size_t level, Dim length) {
    next_[level].push_back(next_[level].back() + static_cast<std::uint64_t>(length));
  }
  void CopyLevel(std::size_t level, const LoDLevel& from) { next_[level] = from; }
  void Set(Tensor& out) { Set(out, next_); }
  // Sets levels that the caller has filled.
  void Set(Tensor& out, const LoD& lod);

 private:
  LoD next_;
  Tensor last_;  // holds the LoD of the last Set
};

// kInvalidArgument unless the tensor has `rows` rows of `width` elements. `what` names the tensor in the
// error: "sequence_pool: X".
Status CheckRows(const std::string& what, const Tensor& tensor, Dim rows, Dim width);

// An output with rows of a known shape, whose number is known only in Run.
class RowsOutput {
 public:
  // The first extent of `shape` is ignored. kInvalidArgument: the op also reads this variable, which Make
  // would overwrite.
  Status Prepare(const KernelSetup& k, std::string_view slot, DType dtype, const Shape& shape);
  explicit operator bool() const { return static_cast<bool>(operand_); }
  Dim width() const { return width_; }
  // Returns the output's tensor with that many rows and no LoD. Its elements are not initialised.
  Tensor& Make(KernelRun& k, Dim rows);

 private:
  Operand operand_;
  DType dtype_ = DType::kFp32;
  Shape shape_;
  Dim width_ = 1;
};

}  // namespace penstock
