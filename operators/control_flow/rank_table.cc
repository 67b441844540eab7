#include "operators/control_flow/rank_table.h"

#include <algorithm>
#include <cstring>

#include "operators/common/require_shape.h"

namespace penstock {

Result<const RankTable*> TableIn(KernelRun& k, const NamedOperand& table, std::string_view op) {
  if (const auto* found = k.Var(table).If<RankTable>()) return found;
  return FailedPrecondition("E-op-no-rank-table", op, ": ", table.name,
                            " holds no rank table: lod_rank_table has not run");
}

Status RankedKernel::Prepare(KernelSetup& k) {
  x_ = k.Input("X");
  table_ = k.Input("RankTable");
  k.Bind(out_);
  PENSTOCK_RETURN_IF_ERROR(RequireApart(k, "Out"));
  if (k.Input("X").shape.rank() > 0) return OkStatus();
  return k.Error("rank of X (", x_.name, ") must be 1 or more");
}

std::int64_t LongerThan(const RankTable& table, std::int64_t step) {
  std::int64_t count = 0;
  for (const RankTable::Item& item : table.items) count += item.length > step ? 1 : 0;
  return count;
}

RowRange RowsOf(const LoD& lod, std::size_t level, std::uint64_t i) {
  std::uint64_t begin = i, end = i + 1;
  for (; level < lod.size(); ++level) {
    begin = lod[level][begin];
    end = lod[level][end];
  }
  return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
}

void RowWriter::Append(const Tensor& from, RowRange rows) {
  const std::size_t width = static_cast<std::size_t>(out_.shape().RowWidth()) * SizeOf(out_.dtype());
  const std::size_t bytes = static_cast<std::size_t>(rows.end - rows.begin) * width;
  if (bytes > 0) {
    std::memcpy(out_.raw() + static_cast<std::size_t>(at_) * width,
                from.raw() + static_cast<std::size_t>(rows.begin) * width, bytes);
  }
  at_ += rows.end - rows.begin;
}

void RowWriter::AppendZeros(std::int64_t rows) {
  const std::size_t width = static_cast<std::size_t>(out_.shape().RowWidth()) * SizeOf(out_.dtype());
  const std::size_t bytes = static_cast<std::size_t>(rows) * width;
  if (bytes > 0) std::memset(out_.raw() + static_cast<std::size_t>(at_) * width, 0, bytes);
  at_ += rows;
}

const LoD& LevelsInOrder::operator()(const LoD& lod, std::size_t level,
                                     std::span<const std::uint64_t> order) {
  out_.resize(lod.size() - std::min(level, lod.size()));
  sequences_.assign(order.begin(), order.end());
  for (LoDLevel& offsets : out_) {
    offsets.assign(1, 0);
    below_.clear();
    for (const std::uint64_t i : sequences_) {
      for (std::uint64_t child = lod[level][i]; child < lod[level][i + 1]; ++child) below_.push_back(child);
      offsets.push_back(below_.size());
    }
    sequences_ = below_;  // not swapped, so that each keeps its memory
    ++level;
  }
  return out_;
}

void AppendLevels(const LoD& levels, LoD& to, std::size_t first) {
  for (std::size_t l = 0; l < levels.size(); ++l) {
    LoDLevel& offsets = to[first + l];
    const std::uint64_t base = offsets.back();
    for (std::size_t i = 1; i < levels[l].size(); ++i) offsets.push_back(base + levels[l][i]);
  }
}

bool IsValid(const LoD& lod, std::int64_t rows) {
  for (std::size_t level = 0; level < lod.size(); ++level) {
    const LoDLevel& offsets = lod[level];
    if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()))
      return false;
    const std::uint64_t below = level + 1 < lod.size()
                                    ? (lod[level + 1].empty() ? 0 : lod[level + 1].size() - 1)
                                    : static_cast<std::uint64_t>(rows);
    if (offsets.back() != below) return false;
  }
  return true;
}

}  // namespace penstock
