#include "executor/checkpoint/reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

#include "executor/checkpoint/merge_rows.h"

namespace penstock::checkpoint {
namespace {

// The type that "f32[7, 13]" means; nullopt: the text is not of this form.
std::optional<std::pair<DType, Shape>> TypeOfText(std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  const std::optional<DType> type = DTypeFromName(text.substr(0, open));
  if (!type) return std::nullopt;
  Shape shape;
  text = text.substr(open + 1, text.size() - open - 2);
  while (!text.empty()) {
    Dim extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    shape.Append(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (!text.starts_with(", ") || text.size() == 2) return std::nullopt;
    text.remove_prefix(2);
  }
  return std::pair(*type, shape);
}

std::string TypeText(DType type, const Shape& shape) { return StrCat(DTypeName(type), shape); }

// Whether pieces of these shapes are rows of one variable.
bool SameRows(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && (a.rank() == 0 || a.WithRows(0) == b.WithRows(0));
}

bool SameBytes(const ValueEntry& a, const ValueEntry& b) {
  return a.crc32c == b.crc32c && a.bytes == b.bytes;
}

// Copies one row.
void CopyRow(const Tensor& from, std::size_t at, Tensor& to, std::size_t to_at) {
  const std::size_t bytes = static_cast<std::size_t>(from.shape().RowWidth()) * SizeOf(from.dtype());
  std::memcpy(to.raw() + to_at * bytes, from.raw() + at * bytes, bytes);
}

// Those of the rows that are wanted.
SelectedRows RowsOf(const SelectedRows& rows, const std::function<bool(std::int64_t)>& wanted) {
  std::vector<std::size_t> kept;
  SelectedRows some{.rows = {}, .height = rows.height, .value = {}};
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    if (!wanted(rows.rows[row])) continue;
    kept.push_back(row);
    some.rows.push_back(rows.rows[row]);
  }
  some.value.Reset(rows.value.dtype(), rows.value.shape().WithRows(static_cast<Dim>(kept.size())));
  for (std::size_t i = 0; i < kept.size(); ++i) CopyRow(rows.value, kept[i], some.value, i);
  return some;
}

Status Contradicts(const Found& found, const std::string& name, const std::string& how) {
  return DataLoss("E-checkpoint-rows", found.folder, ": ", how, " of ", name)
      .With("resume from an earlier checkpoint of the folder: move this one away");
}

}  // namespace

Result<Reader> Reader::Make(Disk& disk, Found found) {
  PENSTOCK_CHECK(found.whole(), "a checkpoint that is not whole is not read");
  Reader reader(disk, std::move(found));
  for (std::size_t part = 0; part < reader.found_.parts.size(); ++part) {
    for (const ValueEntry& entry : reader.found_.parts[part].values)
      PENSTOCK_RETURN_IF_ERROR(reader.Add(part, entry));
  }
  for (auto& [name, whole] : reader.wholes_) {
    std::ranges::sort(whole.pieces, {}, [](const Whole::Piece& piece) {
      return std::tuple(piece.begin, piece.end(), piece.part);
    });
    if (whole.rows || whole.shape.rank() == 0) continue;
    Dim rows = 0;
    for (const Whole::Piece& piece : whole.pieces) rows = std::max(rows, piece.end());
    whole.shape = whole.shape.WithRows(rows);
  }
  return reader;
}

Status Reader::Add(std::size_t part, const ValueEntry& entry) {
  const std::string& name = entry.whole.empty() ? entry.name : entry.whole;
  const auto type = TypeOfText(entry.type);
  if (!type || (entry.rows && type->second.rank() == 0))
    return Contradicts(found_, name, StrCat("the type ", Quote(entry.type)));
  const auto& [element, shape] = *type;
  const auto [at, is_new] = wholes_.try_emplace(name);
  Whole& whole = at->second;
  if (is_new) {
    whole = {.kind = entry.kind, .of = entry.of, .rows = entry.rows, .type = element, .shape = shape};
  } else if (whole.rows != entry.rows || whole.type != element || !SameRows(whole.shape, shape)) {
    return Contradicts(
        found_, name,
        StrCat("different types, ", TypeText(whole.type, whole.shape), " and ", entry.type, ","));
  } else if (whole.rows) {
    whole.shape = whole.shape.WithRows(whole.shape[0] + shape[0]);
  }
  const Dim begin = entry.rows ? 0 : entry.row_begin.value_or(0);
  whole.pieces.push_back({.part = part, .entry = &entry, .type = element, .shape = shape, .begin = begin});
  return OkStatus();
}

const Whole* Reader::Find(const std::string& name) const {
  const auto found = wholes_.find(name);
  return found == wholes_.end() ? nullptr : &found->second;
}

Result<Variable> Reader::Read(const Whole::Piece& piece) const {
  PENSTOCK_ASSIGN_OR_RETURN(Variable value,
                            ReadValue(*disk_, found_.folder, found_.parts[piece.part], *piece.entry));
  // The manifest's text said what the bytes must be.
  const Tensor* tensor = std::as_const(value).If<Tensor>();
  if (const auto* rows = std::as_const(value).If<SelectedRows>()) tensor = &rows->value;
  if (tensor == nullptr || tensor->dtype() != piece.type || tensor->shape() != piece.shape)
    return Contradicts(found_, piece.entry->name, StrCat("the value is not the ", piece.entry->type));
  return value;
}

const ValueEntry* Reader::OwnEntry(const Need& need) const {
  if (need.own_part < 0 || static_cast<std::size_t>(need.own_part) >= found_.parts.size()) return nullptr;
  for (const ValueEntry& entry : found_.parts[static_cast<std::size_t>(need.own_part)].values) {
    if (entry.name != need.name || entry.rows) continue;
    const bool same_rows =
        !entry.row_begin || (*entry.row_begin == need.row_begin &&
                             (entry.whole.empty() ? entry.name : entry.whole) == need.whole);
    return same_rows && entry.type == TypeText(need.type, need.shape) ? &entry : nullptr;
  }
  return nullptr;
}

Result<Tensor> Reader::ReadRows(const Need& need) const {
  if (const ValueEntry* own = OwnEntry(need)) {
    PENSTOCK_ASSIGN_OR_RETURN(
        Variable value,
        ReadValue(*disk_, found_.folder, found_.parts[static_cast<std::size_t>(need.own_part)], *own));
    return std::move(value.As<Tensor>());
  }
  const Whole* whole = Find(need.whole);
  PENSTOCK_CHECK(whole != nullptr, "Has tells whether there is such a variable");
  PENSTOCK_RETURN_IF_ERROR(CheckType(need, *whole));
  Tensor to(need.type, need.shape);
  PENSTOCK_RETURN_IF_ERROR(CopyRows(need, *whole, to));
  return to;
}

Status Reader::CheckType(const Need& need, const Whole& whole) const {
  const bool same_height = !need.whole_rows || whole.shape.rank() == 0 || whole.shape[0] == *need.whole_rows;
  if (!whole.rows && whole.type == need.type && SameRows(whole.shape, need.shape) && same_height)
    return OkStatus();
  const bool height_known = need.whole_rows && need.shape.rank() > 0;
  const Shape here = height_known ? need.shape.WithRows(*need.whole_rows) : need.shape;
  return DiffersFrom(
      found_.folder,
      StrCat("its ", need.whole, whole.rows ? " is a table of " : " is ", TypeText(whole.type, whole.shape),
             ", here ", height_known ? "it" : need.name, " is ", TypeText(need.type, here)));
}

Status Reader::CopyRows(const Need& need, const Whole& whole, Tensor& to) const {
  const Dim rows = need.shape.rank() == 0 ? 1 : need.shape[0], end = need.row_begin + rows;
  const std::size_t row_bytes = rows == 0 ? 0 : to.bytes() / static_cast<std::size_t>(rows);
  Dim at = need.row_begin;
  const Whole::Piece* last = nullptr;
  for (const Whole::Piece& piece : whole.pieces) {
    if (piece.end() <= need.row_begin || piece.begin >= end) continue;
    if (last != nullptr && piece.begin < last->end()) {
      const bool copies = piece.begin == last->begin && piece.end() == last->end();
      if (copies && SameBytes(*piece.entry, *last->entry)) continue;
      if (!piece.entry->row_begin) {
        return DiffersFrom(found_.folder,
                           StrCat("its pservers do not record which rows of ", need.whole,
                                  " they have, so it needs ", found_.parts.size(), " pservers again"));
      }
      return Contradicts(found_, need.whole,
                         StrCat("pservers ", last->part, " and ", piece.part, " have different values"));
    }
    if (piece.begin > at) break;
    last = &piece;
    PENSTOCK_ASSIGN_OR_RETURN(const Variable value, Read(piece));
    const Dim here = std::min(end, piece.end()) - at;
    std::memcpy(to.raw() + static_cast<std::size_t>(at - need.row_begin) * row_bytes,
                value.If<Tensor>()->raw() + static_cast<std::size_t>(at - piece.begin) * row_bytes,
                static_cast<std::size_t>(here) * row_bytes);
    at += here;
  }
  if (at >= end) return OkStatus();
  return DiffersFrom(found_.folder, StrCat("it lacks row ", at, " of ", need.whole, ", and ", need.name,
                                           " has rows [", need.row_begin, ", ", end, ")"));
}

Result<SelectedRows> Reader::ReadTable(const std::string& name, int own_part,
                                       const std::function<bool(std::int64_t)>& wanted) const {
  const Whole* whole = Find(name);
  PENSTOCK_CHECK(whole != nullptr && whole->rows, "only tables are read as tables");
  for (const Whole::Piece& piece : whole->pieces) {
    if (static_cast<int>(piece.part) != own_part) continue;
    PENSTOCK_ASSIGN_OR_RETURN(Variable value, Read(piece));
    SelectedRows& rows = value.As<SelectedRows>();
    if (!rows.rows.empty() && std::ranges::all_of(rows.rows, wanted)) return std::move(rows);
  }
  std::vector<SelectedRows> from;
  for (const Whole::Piece& piece : whole->pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(const Variable value, Read(piece));
    from.push_back(RowsOf(*value.If<SelectedRows>(), wanted));
  }
  SelectedRows rows = MergeRows(from);
  const auto twice = std::ranges::adjacent_find(rows.rows);
  if (twice == rows.rows.end()) return rows;
  return Contradicts(found_, name, StrCat("more than one pserver has row ", *twice));
}

Result<Variable> Reader::ReadWhole(const std::string& name) const {
  const Whole& whole = wholes_.at(name);
  Variable value;
  if (whole.rows) {
    PENSTOCK_ASSIGN_OR_RETURN(value.As<SelectedRows>(),
                              ReadTable(name, -1, [](std::int64_t) { return true; }));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        value.As<Tensor>(),
        ReadRows({.name = name, .whole = name, .row_begin = 0, .type = whole.type, .shape = whole.shape}));
  }
  return value;
}

}  // namespace penstock::checkpoint
