// What the ops around a rank table share: finding the table, sequences as rows, copying rows.
#pragma once

#include <string_view>
#include <vector>

#include "framework/op/kernel.h"

namespace penstock {

// The table in a variable. kFailedPrecondition E-op-rank-table: lod_rank_table has not run.
Result<const RankTable*> TableIn(KernelRun& k, const Operand& table, std::string_view op);

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

// The levels of `lod` from `level` on, for the sequences in `order` of that level, one after the other.
LoD LevelsInOrder(const LoD& lod, std::size_t level, const std::vector<std::uint64_t>& order);

// Whether its offsets begin at 0, never go back, and end where the level below (the rows at last) has as
// many.
bool IsValid(const LoD& lod, std::int64_t rows);

}  // namespace penstock
