#include "executor/checkpoint/export_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/checkpoint/array_files.h"
#include "executor/checkpoint/export.h"
#include "executor/checkpoint/fluid_files.h"
#include "executor/checkpoint/merge_rows.h"
#include "executor/checkpoint/out_file.h"
#include "executor/checkpoint/table_stream.h"

namespace penstock::checkpoint {
namespace {

struct NamedArray {
  std::string name;
  Tensor array;
};

Tensor IdsTensor(const std::vector<std::int64_t>& ids) {
  Tensor tensor(DType::kInt64, {static_cast<Dim>(ids.size())});
  std::ranges::copy(ids, tensor.Data<std::int64_t>());
  return tensor;
}

// The files of a folder, in one format.
class ArrayFolder {
 public:
  ArrayFolder(Disk& disk, const Reader& reader, std::string folder, ArrayFormat format)
      : disk_(disk), reader_(reader), folder_(std::move(folder)), format_(format) {}

  ArrayFormat format() const { return format_; }
  // Arrays that belong together: one file `stem`.safetensors, or one of NumPy for each, whose name `file_of`
  // makes of the array's.
  template <typename FileOf>
  Status Write(const std::string& stem, const std::vector<NamedArray>& arrays, const FileOf& file_of) const {
    if (format_ == ArrayFormat::kNumpy) {
      for (const NamedArray& one : arrays) PENSTOCK_RETURN_IF_ERROR(WriteNumpy(file_of(one.name), one.array));
      return OkStatus();
    }
    std::vector<ArrayType> types;
    for (const NamedArray& one : arrays) types.push_back({one.name, one.array.dtype(), one.array.shape()});
    PENSTOCK_ASSIGN_OR_RETURN(OutFile file, Begin(stem + ".safetensors", SafetensorsHead(types, Facts())));
    for (const NamedArray& one : arrays) PENSTOCK_RETURN_IF_ERROR(file.Append(one.array));
    return file.Finish();
  }
  Status WriteNumpy(const std::string& name, const Tensor& array) const {
    PENSTOCK_ASSIGN_OR_RETURN(OutFile file, Begin(name + ".npy", NumpyHead(array.dtype(), array.shape())));
    PENSTOCK_RETURN_IF_ERROR(file.Append(array));
    return file.Finish();
  }
  // Variables of the checkpoint in one file, with memory for one of them.
  Status WriteVariables(const std::string& stem, const std::vector<std::string>& names) const {
    std::vector<ArrayType> types;
    for (const std::string& name : names) {
      const Whole& whole = *reader_.Find(name);
      types.push_back({name, whole.type, whole.shape});
    }
    PENSTOCK_ASSIGN_OR_RETURN(OutFile file, Begin(stem + ".safetensors", SafetensorsHead(types, Facts())));
    for (const std::string& name : names) {
      PENSTOCK_ASSIGN_OR_RETURN(const Variable value, reader_.ReadWhole(name));
      PENSTOCK_RETURN_IF_ERROR(file.Append(*value.If<Tensor>()));
    }
    return file.Finish();
  }

 private:
  Result<OutFile> Begin(const std::string& name, const std::string& head) const {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, FileOf(folder_, name));
    PENSTOCK_ASSIGN_OR_RETURN(OutFile file, OutFile::Create(disk_, path));
    PENSTOCK_RETURN_IF_ERROR(file.Append(head));
    return file;
  }
  std::map<std::string, std::string> Facts() const {
    return {{"format", "np"}, {"step", std::to_string(reader_.found().step)}};
  }

  Disk& disk_;
  const Reader& reader_;
  const std::string folder_;
  const ArrayFormat format_;
};

// Collects rows of a table, and writes them in parts.
class TableParts {
 public:
  // `columns`: without rows, the table first.
  TableParts(const ArrayFolder& folder, std::vector<NamedArray> columns, std::size_t part_bytes)
      : folder_(folder),
        table_(columns.front().name),
        none_(std::move(columns)),
        part_bytes_(part_bytes),
        columns_(none_.size()) {}

  Status Add(TableStream::Portion portion) {
    gone_.insert(gone_.end(), portion.gone.begin(), portion.gone.end());
    if (portion.columns.empty()) return OkStatus();
    bytes_ += portion.ids.size() * sizeof(std::int64_t);
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      bytes_ += portion.columns[column].bytes();
      columns_[column].push_back({.rows = portion.ids, .value = std::move(portion.columns[column])});
    }
    return bytes_ < part_bytes_ ? OkStatus() : WritePart();
  }
  Status Finish(bool has_gone) {
    if (part_ == 0 || bytes_ > 0) PENSTOCK_RETURN_IF_ERROR(WritePart());
    if (!has_gone) return OkStatus();
    std::ranges::sort(gone_);
    const std::string gone = table_ + ".gone";
    return folder_.Write(gone, {{gone, IdsTensor(gone_)}}, [](const std::string& name) { return name; });
  }

 private:
  Status WritePart() {
    const std::string suffix = StrCat(".part-", part_++);
    std::vector<NamedArray> arrays;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      columns_[column].push_back({.rows = {}, .value = none_[column].array});
      const SelectedRows rows = MergeRows(std::exchange(columns_[column], {}));
      if (column == 0) arrays.push_back({table_ + ".ids", IdsTensor(rows.rows)});
      arrays.push_back({none_[column].name, rows.value});
    }
    bytes_ = 0;
    return folder_.Write(table_ + suffix, arrays, [&](const std::string& name) {
      return name == table_ + ".ids" ? table_ + suffix + ".ids" : name + suffix;
    });
  }

  const ArrayFolder& folder_;
  const std::string table_;
  const std::vector<NamedArray> none_;  // each column without rows
  const std::size_t part_bytes_;
  std::vector<std::vector<SelectedRows>> columns_;  // by column, the portions
  std::size_t bytes_ = 0;
  int part_ = 0;
  std::vector<std::int64_t> gone_;
};

// The values of one part that have rows of the table: itself, then its states.
std::vector<const ValueEntry*> ColumnsOf(const Manifest& part, const ValueEntry& table, bool states) {
  std::vector<const ValueEntry*> columns = {&table};
  for (const ValueEntry& entry : part.values) {
    if (states && entry.rows && entry.kind == ValueKind::kState && entry.of == table.of)
      columns.push_back(&entry);
  }
  return columns;
}

Status ExportTable(Disk& disk, const Reader& reader, const std::string& name, const ArrayFolder& folder,
                   const PartsOptions& options) {
  const Found& found = reader.found();
  std::optional<TableParts> parts;
  std::vector<Whole::Piece> pieces = reader.Find(name)->pieces;
  std::ranges::sort(pieces, {}, &Whole::Piece::part);
  for (const Whole::Piece& piece : pieces) {
    std::vector<const ValueEntry*> columns = ColumnsOf(found.parts[piece.part], *piece.entry, options.states);
    if (!parts) {
      std::vector<NamedArray> none;
      for (const ValueEntry* const column : columns) {
        const std::string& of_all = column->whole.empty() ? column->name : column->whole;
        const Whole& whole = *reader.Find(of_all);
        none.push_back({of_all, Tensor(whole.type, whole.shape.WithRows(0))});
      }
      parts.emplace(folder, std::move(none), options.part_bytes);
    }
    PENSTOCK_ASSIGN_OR_RETURN(TableStream rows,
                              TableStream::Make(disk, found, piece.part, std::move(columns), options.since));
    while (true) {
      PENSTOCK_ASSIGN_OR_RETURN(std::optional<TableStream::Portion> portion, rows.Next());
      if (!portion) break;
      PENSTOCK_RETURN_IF_ERROR(parts->Add(*std::move(portion)));
    }
  }
  return parts->Finish(options.since.has_value());
}

}  // namespace

Status ExportParts(Disk& disk, const Reader& reader, const std::string& folder, const PartsOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(RequireCurrent(reader));
  PENSTOCK_RETURN_IF_ERROR(RequireEmptyFolder(disk, folder));
  const ArrayFolder arrays(disk, reader, folder, options.format);
  std::vector<std::string> variables;
  for (const auto& [name, whole] : reader.wholes()) {
    if (whole.rows && whole.kind == ValueKind::kParam)
      PENSTOCK_RETURN_IF_ERROR(ExportTable(disk, reader, name, arrays, options));
    const bool is_state = whole.kind == ValueKind::kState || whole.kind == ValueKind::kConstant;
    if (whole.rows || whole.kind == ValueKind::kPolicy || (is_state && !options.states)) continue;
    variables.push_back(name);
  }
  if (options.format == ArrayFormat::kSafetensors)
    return variables.empty() ? OkStatus() : arrays.WriteVariables("variables", variables);
  for (const std::string& name : variables) {
    PENSTOCK_ASSIGN_OR_RETURN(const Variable value, reader.ReadWhole(name));
    PENSTOCK_RETURN_IF_ERROR(arrays.WriteNumpy(name, *value.If<Tensor>()));
  }
  return OkStatus();
}

}  // namespace penstock::checkpoint
