// What a checkpoint keeps of the rows and candidates of a shard.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "executor/table/row_life.h"

namespace penstock::table {
namespace {

struct Kept {
  std::int64_t is_candidate = 0;
  RowHeader header;
};

Kept ReadKept(const SelectedRows& headers, std::size_t at) {
  const std::int64_t* const fields = headers.value.Data<std::int64_t>() + at * LifeCopy::kFields;
  return {.is_candidate = fields[0],
          .header = {.id = headers.rows[at],
                     .version = static_cast<std::uint64_t>(fields[1]),
                     .count = static_cast<std::uint32_t>(fields[2]),
                     .shows = std::bit_cast<float>(static_cast<std::uint32_t>(fields[3]))}};
}

}  // namespace

void RowLife::WriteFields(const RowHeader& header, bool is_candidate, std::int64_t* fields) {
  fields[0] = is_candidate ? 1 : 0;
  fields[1] = static_cast<std::int64_t>(header.version);
  fields[2] = header.count;
  fields[3] = std::bit_cast<std::uint32_t>(header.shows);
}

LifeCopy RowLife::CopyCandidates(std::uint64_t now, std::optional<std::uint64_t> since, Dim& all) const {
  std::vector<const RowHeader*> kept;
  all = 0;
  for (Slot slot = 0; slot < candidates_.size(); ++slot) {
    const RowHeader& candidate = *candidates_.At(slot).header;
    if (candidate.entry != kWaits || IsLost(candidate, now)) continue;
    ++all;
    if (!since || candidate.version > *since) kept.push_back(&candidate);
  }
  LifeCopy copy;
  copy.headers.value = Tensor(DType::kInt64, {static_cast<Dim>(kept.size()), LifeCopy::kFields});
  std::int64_t* fields = copy.headers.value.Data<std::int64_t>();
  for (const RowHeader* const header : kept) {
    copy.headers.rows.push_back(header->id);
    WriteFields(*header, true, fields);
    fields += LifeCopy::kFields;
  }
  copy.clock = Tensor(DType::kInt64, {2});
  copy.clock.Data<std::int64_t>()[0] = static_cast<std::int64_t>(now);
  copy.clock.Data<std::int64_t>()[1] = static_cast<std::int64_t>(touched_.width());
  return copy;
}

LifeCopy RowLife::CutCandidates(std::uint64_t now, std::optional<std::uint64_t> since, Dim& all,
                                std::vector<std::int64_t>& gone) {
  notes_taken_ = true;
  gone = std::exchange(taken_, {});
  for (Slot slot = 0; slot < candidates_.size(); ++slot) {
    RowHeader& candidate = *candidates_.At(slot).header;
    if (candidate.entry != kWaits || !IsLost(candidate, now)) continue;
    candidate.entry = kForgotten;
    gone.push_back(candidate.id);
  }
  return CopyCandidates(now, since, all);
}

// The histogram takes versions in ascending order.
void RowLife::Restore(Shard& rows, const LifeCopy& copy) {
  version_ = static_cast<std::uint64_t>(copy.clock.Data<std::int64_t>()[0]);
  touched_ = TouchHistogram(static_cast<std::uint64_t>(copy.clock.Data<std::int64_t>()[1]));
  std::vector<Kept> kept;
  for (std::size_t i = 0; i < copy.headers.rows.size(); ++i) kept.push_back(ReadKept(copy.headers, i));
  std::ranges::sort(kept, {}, [](const Kept& one) { return std::tuple(one.header.version, one.header.id); });
  for (const auto& [is_candidate, header] : kept) {
    if (is_candidate == 0) {
      *rows.Find(header.id).header = header;
    } else {
      candidates_.Require(
          std::span(&header.id, 1), [&](std::size_t, Row row) { *row.header = header; }, [](Row) {});
    }
    if (budget_bytes_ > 0) touched_.Add(header.version, is_candidate == 0 ? row_bytes_ : candidate_bytes_);
  }
}

}  // namespace penstock::table
