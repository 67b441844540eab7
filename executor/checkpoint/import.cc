// Reads the files of a Fluid folder as values of a checkpoint.
#include <algorithm>
#include <set>
#include <utility>

#include "executor/checkpoint/export.h"
#include "executor/checkpoint/fluid_files.h"
#include "executor/checkpoint/merge_rows.h"
#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

Status NoImport(const std::string& path, std::string_view how) {
  return DataLoss("E-checkpoint-import", path, ": ", how);
}

Value ValueFrom(const std::string& name, const Described& what, Tensor tensor) {
  Value value{.entry = {.name = name,
                        .kind = what.kind,
                        .of = what.of,
                        .row_begin = 0,
                        .type = StrCat(DTypeName(tensor.dtype()), tensor.shape())},
              .value = {}};
  value.value.As<Tensor>() = std::move(tensor);
  return value;
}

Value RowsFrom(const std::string& name, const Described& what, SelectedRows rows) {
  Value value = ValueFrom(name, what, rows.value);
  value.entry.rows = true;
  value.entry.row_begin.reset();
  value.value.As<SelectedRows>() = std::move(rows);
  return value;
}

Result<Tensor> ReadOne(Disk& disk, const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, disk.ReadWhole(path));
  std::string_view left = bytes;
  Result<Tensor> tensor = ReadTensor(left);
  if (!tensor.ok()) return NoImport(path, tensor.status().message());
  if (!left.empty()) return NoImport(path, "it holds more than one variable");
  return tensor;
}

// The shards of one table.
class TableImport {
 public:
  TableImport(Disk& disk, std::string name) : disk_(disk), name_(std::move(name)) {}

  Status Add(const std::string& path) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, disk_.ReadWhole(path));
    std::string_view left = bytes;
    Result<SelectedRows> rows = ReadSelectedRows(left);
    if (!rows.ok()) return NoImport(path, rows.status().message());
    if (!left.empty()) return NoImport(path, "it holds more than the rows of a table");
    const std::string state = StateOf(path);
    if (disk_.Exists(state)) PENSTOCK_RETURN_IF_ERROR(AddState(state, *rows));
    columns_[name_].push_back(*std::move(rows));
    return OkStatus();
  }

  // The values of the table and of its states.
  std::vector<Value> Take(const Described& what) {
    std::vector<Value> values;
    Described state = what;
    state.kind = ValueKind::kState;
    for (auto& [name, shards] : columns_)
      values.push_back(RowsFrom(name, name == name_ ? what : state, MergeRows(shards)));
    for (auto& [name, scalar] : scalars_) values.push_back(ValueFrom(name, state, scalar));
    return values;
  }

 private:
  Status AddState(const std::string& path, const SelectedRows& rows) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, disk_.ReadWhole(path));
    PENSTOCK_ASSIGN_OR_RETURN(const NamedList kept, ReadNamed(path, bytes));
    bool same_rows = false, same_values = false;
    for (const auto& [name, tensor] : kept) {
      if (name == name_) {
        same_rows =
            tensor.dtype() == DType::kInt64 && std::ranges::equal(tensor.Span<std::int64_t>(), rows.rows);
      } else if (name == "crc32c") {
        same_values = tensor.dtype() == DType::kInt64 && tensor.count() == 1 &&
                      tensor.Span<std::int64_t>()[0] == Crc32c(0, rows.value.raw(), rows.value.bytes());
      } else if (tensor.shape() == rows.value.shape()) {
        columns_[name].push_back({.rows = rows.rows, .height = rows.height, .value = tensor});
      } else {
        scalars_[name] = tensor;
      }
    }
    return same_rows && same_values ? OkStatus() : NoImport(path, "it is not of the same save as the rows");
  }

  Disk& disk_;
  const std::string name_;
  std::map<std::string, std::vector<SelectedRows>> columns_;  // by name, in the order of the shards
  std::map<std::string, Tensor> scalars_;
};

}  // namespace

Result<std::vector<Value>> ImportFluid(Disk& disk, const std::string& folder,
                                       const std::map<std::string, Described>& variables) {
  std::vector<Value> values;
  std::set<std::string> tables, there;
  for (const auto& [name, what] : variables) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string shard, ShardOf(folder, name, 0));
    if (!disk.Exists(shard)) continue;
    TableImport table(disk, name);
    for (int number = 0; disk.Exists(shard); shard = *ShardOf(folder, name, ++number))
      PENSTOCK_RETURN_IF_ERROR(table.Add(shard));
    tables.insert(name);
    std::ranges::move(table.Take(what), std::back_inserter(values));
    for (const Value& value : values) there.insert(value.entry.name);
  }
  for (const auto& [name, what] : variables) {
    if (there.contains(name) || tables.contains(what.of)) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, FileOf(folder, name));
    if (!disk.Exists(path)) {
      if (what.optional) continue;
      return NoImport(path, "there is no such file");
    }
    PENSTOCK_ASSIGN_OR_RETURN(Tensor tensor, ReadOne(disk, path));
    values.push_back(ValueFrom(name, what, std::move(tensor)));
  }
  return values;
}

}  // namespace penstock::checkpoint
