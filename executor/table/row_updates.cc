// Updates of rows that are kept together, and what rows get that missed some.
#include <algorithm>
#include <utility>

#include "executor/table/row_table.h"

namespace penstock::table {
namespace {

constexpr std::size_t kRowsAtATime = 64;  // are fetched while those before them are updated

}  // namespace

// Lists each row once, with the sum of its values. The sum is made where its first values are.
template <typename T>
void RowTable::Merge(std::span<SelectedRows* const> gradients) {
  const std::uint64_t version = version_ + 1;
  const auto width = static_cast<std::size_t>(columns_.front().width());
  merged_.clear();
  merged_versions_.clear();
  for (SelectedRows* const gradient : gradients) {
    if (gradient->rows.empty()) continue;
    T* const values = gradient->value.Data<T>();
    const auto add = [&](std::size_t i, Row row) {
      T* const from = values + i * width;
      RowHeader& header = *row.header;
      if (header.version != version) {
        merged_versions_.push_back(header.version);
        if (life_ != nullptr) life_->Touch(header, version);
        header.version = version;
        ++header.count;
        header.entry = static_cast<std::uint32_t>(merged_.size());
        merged_.push_back({row.at(0), reinterpret_cast<std::byte*>(from)});
        return;
      }
      T* const sum = reinterpret_cast<T*>(merged_[header.entry].gradient);
      for (std::size_t j = 0; j < width; ++j) sum[j] += from[j];
    };
    shard_->Require(gradient->rows, add, [&](Row row) {
      MakeRow(row);
      row.header->version = version_;  // a new row has missed nothing
    });
  }
}

void RowTable::UseRule(std::shared_ptr<const RowRule> rule, const std::vector<std::size_t>& columns) {
  rule_ = std::move(rule);
  history_ = rule_->MakeHistory();
  offsets_.clear();
  for (const std::size_t column : columns) offsets_.push_back(shard_->offsets()[column]);
}

Status RowTable::Continue(const Tensor& versions, const Tensor& history) {
  const auto wrong = [this](const auto&... what) {
    return InvalidArgument("E-server-shape", columns_.front().name, " has ", row_count(), " rows; ", what...);
  };
  if (!KeepsHistory()) return wrong("its optimizer does not continue updates that rows missed");
  if (versions.dtype() != DType::kInt64 || versions.shape() != Shape({row_count(), 1}) ||
      history.dtype() != DType::kFp64 || history.shape().rank() != 1) {
    return wrong("the updates that they have are given as ", DTypeName(versions.dtype()), versions.shape(),
                 ", those of the table as ", DTypeName(history.dtype()), history.shape());
  }
  for (Slot slot = 0; slot < shard_->size(); ++slot) {
    const std::int64_t version = versions.Data<std::int64_t>()[slot];
    if (version < 0 || version > history.count())
      return wrong("one has ", version, " updates, and the table ", history.count());
    shard_->At(slot).header->version = static_cast<std::uint64_t>(version);
  }
  history_ = rule_->MakeHistory();
  for (const double number : history.Span<double>()) history_->Add(number);
  version_ = history_->count();
  return OkStatus();
}

RowStep RowTable::CommonStep(const Step& step) const {
  return {.columns = offsets_, .width = columns_.front().width(), .rate = step.rate, .whole = step.whole};
}

void RowTable::KeepLast() {
  if (history_ == nullptr) return;
  last_history_ = rule_->MakeHistory();
  for (std::uint64_t step = 1; step < history_->count(); ++step) last_history_->Add(history_->number(step));
}

// Before an update, or one that is none: the last version is what is current now.
void RowTable::CatchUpLast() {
  if (last_history_ != nullptr && last_history_->count() < history_->count())
    last_history_->Add(history_->number(history_->count()));
}

Row RowTable::AfterSteps(const StepHistory* steps, Row row, std::vector<std::byte>& copy) const {
  if (steps == nullptr || row.header->version >= steps->count()) return row;
  const std::byte* const from = row.at(0);
  copy.assign(from, from + shard_->row_bytes());
  rule_->CatchUp(CommonStep({}), *steps, row.header->version, {.row = copy.data()});
  return {reinterpret_cast<RowHeader*>(copy.data()), row.slot};
}

// Brings merged rows up to the update before this one.
void RowTable::CatchUp(std::size_t begin, std::size_t end) {
  if (history_ == nullptr) return;
  const RowStep layout = CommonStep({});
  for (std::size_t i = begin; i < end; ++i) {
    if (merged_versions_[i] < version_ - 1)
      rule_->CatchUp(layout, *history_, merged_versions_[i], {.row = merged_[i].row});
  }
}

void RowTable::Update(const Step& step) {
  const bool is_float = columns_.front().values.dtype() == DType::kFp32;
  Admit(step.gradients);
  is_float ? Merge<float>(step.gradients) : Merge<double>(step.gradients);
  // The op does nothing with a gradient without rows. Where rows may miss updates, it is no update either.
  const bool skipped = merged_.empty() && !rule_->StepsWithoutRows();
  if (history_ != nullptr) CatchUpLast();
  if (skipped && history_ != nullptr) return;
  ++version_;
  const RowStep common = CommonStep(step);
  const auto scale = [&](std::span<const RowOfStep> rows, auto factor) {
    using T = decltype(factor);
    for (const RowOfStep& row : rows) {
      T* const values = reinterpret_cast<T*>(row.gradient);
      for (Dim j = 0; j < common.width; ++j) values[j] = factor * values[j] + T{0};
    }
  };
  const std::span<const RowOfStep> all = merged_;
  const auto end_of = [&](std::size_t begin) { return std::min(begin + kRowsAtATime, all.size()); };
  for (std::size_t begin = 0; begin < all.size(); begin += kRowsAtATime) {
    const std::size_t end = end_of(begin);
    const std::span<const RowOfStep> part = all.subspan(begin, end - begin);
    for (const RowOfStep& next : all.subspan(end, end_of(end) - end)) shard_->Prefetch(next.row);
    if (step.factor && is_float) scale(part, *step.factor);
    if (step.factor && !is_float) scale(part, static_cast<double>(*step.factor));
    CatchUp(begin, end);
    rule_->Update(common, part);
  }
  if (!skipped) {
    if (history_ != nullptr) history_->Add(rule_->NumberOf(common));
    rule_->Advance(common);
  }
  if (life_ != nullptr) life_->EndUpdate(*shard_, version_, OnMove());
}

}  // namespace penstock::table
