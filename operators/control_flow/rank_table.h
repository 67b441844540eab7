// What the ops around a rank table share: finding the table, sequences as rows, copying rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"

namespace penstock {

// The table in a variable. kFailedPrecondition E-op-rank-table: lod_rank_table has not run.
Result<const RankTable*> TableIn(KernelRun& k, const Operand& table, std::string_view op);

// What ops that work on X by a rank table start with.
class RankedKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override;

 protected:
  Operand x_, table_, out_;
};

// How many of its sequences are longer than `step`.
std::int64_t LongerThan(const RankTable& table, std::int64_t step);

// Rows [begin, end) of a tensor.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};

// The rows of sequence `i` of level `level`; without levels row `i`.
RowRange RowsOf(const LoD& lod, std::size_t level, std::uint64_t i);

// Appends rows of one tensor after the other to a tensor that is large enough, with the LoD levels from
// `level` on of what it appends.
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

// The levels of a LoD from `level` on, for the sequences in `order` of that level, one after the other. Keeps
// its memory between calls; what it gives is good until the next one.
class LevelsInOrder {
 public:
  const LoD& operator()(const LoD& lod, std::size_t level, std::span<const std::uint64_t> order);

 private:
  LoD out_;
  std::vector<std::uint64_t> sequences_, below_;
};

// Appends such levels to those of `to` from `first` on, each of which has its 0.
void AppendLevels(const LoD& levels, LoD& to, std::size_t first);

// Tensors like another but for their number of rows. Keeps its memory.
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

// Whether its offsets begin at 0, never go back, and end where the level below (the rows at last) has as
// many.
bool IsValid(const LoD& lod, std::int64_t rows);

}  // namespace penstock
