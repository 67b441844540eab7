#include "executor/checkpoint/table_stream.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

namespace penstock::checkpoint {
namespace {

// The step that wrote a file such as "part-0-of-2.rows-10".
std::optional<std::uint64_t> StepOfFile(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  std::uint64_t step = 0;
  const char* const end = name.data() + name.size();
  if (dash == std::string::npos) return std::nullopt;
  const auto read = std::from_chars(name.data() + dash + 1, end, step);
  return read.ec == std::errc() && read.ptr == end ? std::optional(step) : std::nullopt;
}

Tensor RowsAt(const Tensor& rows, const std::vector<std::size_t>& places) {
  if (static_cast<Dim>(places.size()) == rows.shape()[0]) return rows;
  Tensor some(rows.dtype(), rows.shape().WithRows(static_cast<Dim>(places.size())));
  const std::size_t bytes = static_cast<std::size_t>(rows.shape().RowWidth()) * SizeOf(rows.dtype());
  for (std::size_t i = 0; i < places.size(); ++i)
    std::memcpy(some.raw() + i * bytes, rows.raw() + places[i] * bytes, bytes);
  return some;
}

}  // namespace

Result<TableStream> TableStream::Make(Disk& disk, const Found& found, std::size_t part,
                                      std::vector<const ValueEntry*> columns,
                                      std::optional<std::uint64_t> since) {
  TableStream stream(disk, found, part, std::move(columns));
  for (const ValueEntry* const column : stream.columns_)
    stream.records_.push_back(RecordsOf(*stream.part_, *column));
  const auto same = [](const Record& a, const Record& b) { return a.file == b.file && a.gone == b.gone; };
  for (const std::vector<Record>& records : stream.records_)
    if (!std::ranges::equal(records, stream.records_.front(), same)) return stream.Contradicts();
  PENSTOCK_RETURN_IF_ERROR(stream.PutInOrder(since));
  return stream;
}

// The newest step first; of a step, rows before those that are gone.
Status TableStream::PutInOrder(std::optional<std::uint64_t> since) {
  const std::vector<Record>& records = records_.front();
  std::size_t first_step = 0;
  if (since) {
    has_base_ = false;
    first_step = part_->files.size();
    for (std::size_t at = 0; at < part_->files.size(); ++at) {
      if (StepOfFile(part_->files[at].name) == since) first_step = at + 1;
    }
    const bool known = first_step < part_->files.size() || *since == found_->step;
    if (columns_.front()->records.empty() || !known) {
      std::string steps;
      for (const RowsFile& file : part_->files)
        steps += StrCat(steps.empty() ? "" : ", ", StepOfFile(file.name).value_or(0));
      return FailedPrecondition("E-checkpoint-since", found_->folder, " does not tell which rows of ",
                                columns_.front()->name, " have changed since step ", *since, ": pserver ",
                                part_->server, " has saved rows at step ",
                                steps.empty() ? std::to_string(found_->step) : steps)
          .With("give one of these steps, or export all rows");
    }
  }
  for (std::size_t at = 0; at < records.size(); ++at)
    if (!since || StepOfRecord(*part_, records[at]) >= first_step) order_.push_back(at);
  std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
    const std::size_t step_a = StepOfRecord(*part_, records[a]), step_b = StepOfRecord(*part_, records[b]);
    return std::tuple(step_b, records[a].gone) < std::tuple(step_a, records[b].gone);
  });
  return OkStatus();
}

Status TableStream::Contradicts() const {
  return DataLoss("E-checkpoint-rows", found_->folder, ": ", columns_.front()->name,
                  " and its states have different rows")
      .With("resume from an earlier checkpoint of the folder: move this one away");
}

Result<TableStream::Portion> TableStream::ReadRows(std::size_t record) {
  std::vector<SelectedRows> read;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    PENSTOCK_ASSIGN_OR_RETURN(
        read.emplace_back(),
        checkpoint::ReadRows(*disk_, found_->folder, *columns_[column], records_[column][record]));
    if (read.back().rows != read.front().rows) return Contradicts();
  }
  std::vector<std::size_t> places;
  Portion portion;
  for (std::size_t i = 0; i < read.front().rows.size(); ++i) {
    const std::int64_t id = read.front().rows[i];
    if (later_.contains(id)) continue;
    places.push_back(i);
    portion.ids.push_back(id);
  }
  for (const SelectedRows& rows : read) portion.columns.push_back(RowsAt(rows.value, places));
  return portion;
}

Result<TableStream::Portion> TableStream::ReadGone(std::size_t record) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::vector<std::int64_t> ids,
      checkpoint::ReadGone(*disk_, found_->folder, *columns_.front(), records_.front()[record]));
  Portion portion;
  for (const std::int64_t id : ids) {
    if (!later_.contains(id) && now_.insert(id).second) portion.gone.push_back(id);
  }
  return portion;
}

Result<std::optional<TableStream::Portion>> TableStream::Next() {
  if (next_ == order_.size()) return std::optional<Portion>();
  const std::vector<Record>& records = records_.front();
  const std::size_t record = order_[next_];
  const std::size_t step = StepOfRecord(*part_, records[record]);
  if (next_ > 0 && StepOfRecord(*part_, records[order_[next_ - 1]]) != step)
    later_.merge(std::exchange(now_, {}));
  ++next_;
  if (records[record].gone) {
    PENSTOCK_ASSIGN_OR_RETURN(Portion gone, ReadGone(record));
    return std::optional(std::move(gone));
  }
  PENSTOCK_ASSIGN_OR_RETURN(Portion rows, ReadRows(record));
  const bool is_base = has_base_ && (part_->files.empty() || step == 0);
  if (!is_base) now_.insert(rows.ids.begin(), rows.ids.end());
  return std::optional(std::move(rows));
}

}  // namespace penstock::checkpoint
