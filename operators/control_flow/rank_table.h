// Shared by the ops on rank tables: finding the table, the rows of sequences, copying rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"

namespace penstock {

// Returns the table in a variable. kFailedPrecondition E-op-rank-table: lod_rank_table has not run.
Result<const RankTable*> TableIn(KernelRun& k, const NamedOperand& table, std::string_view op);

// The base of kernels that process X by a rank table.
class RankedKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;

 protected:
  NamedOperand x_, table_;
  Out<"Out"> out_;
};

// Returns the number of sequences in the table that are longer than `step`.
std::int64_t LongerThan(const RankTable& table, std::int64_t step);

// Rows [begin, end) of a tensor.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};

// Returns the rows of sequence `i` of level `level`, or row `i` if `lod` has no levels.
RowRange RowsOf(const LoD& lod, std::size_t level, std::uint64_t i);

// Appends rows of tensors to a tensor, which must be large enough.
class RowWriter {
 public:
  explicit RowWriter(Tensor& out) : out_(out) {}
  void Append(const Tensor& from, RowRange rows);
  void AppendZeros(std::int64_t rows);
  std::int64_t rows() const { return at_; }

 private:
  Tensor& out_;
  std::int64_t at_ = 0;
};

// Computes the levels of a LoD from `level` on, for the sequences of that level in the given order. Reuses
// its memory between calls; the result is valid until the next call.
class LevelsInOrder {
 public:
  const LoD& operator()(const LoD& lod, std::size_t level, std::span<const std::uint64_t> order);

 private:
  LoD out_;
  std::vector<std::uint64_t> sequences_, below_;
};

// Appends levels that LevelsInOrder returned to the levels of `to` from `first` on. Each of these must
// already hold its first offset, 0.
void AppendLevels(const LoD& levels, LoD& to, std::size_t first);

// Makes tensors that differ from another only in the number of rows. Reuses its memory.
class RowsLike {
 public:
  void Make(Tensor& out, DType type, const Shape& like, std::int64_t rows) {
    shape_ = like;
    shape_.Set(0, rows);
    out.Reset(type, shape_);
  }

 private:
  Shape shape_;
};

// Returns whether the offsets of each level start at 0, do not decrease, and end at the number of sequences
// of the next level, or, for the last level, at `rows`.
bool IsValid(const LoD& lod, std::int64_t rows);

}  // namespace penstock
