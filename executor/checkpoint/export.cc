#include "executor/checkpoint/export.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "executor/checkpoint/array_files.h"
#include "executor/checkpoint/fluid_files.h"
#include "executor/checkpoint/out_file.h"
#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

Status WriteInto(Disk& disk, const std::string& path, std::string_view bytes) {
  PENSTOCK_RETURN_IF_ERROR(disk.MakeFolder(FolderOf(path)));
  return ReplaceFile(disk, path, bytes);
}

// The parameters whose rows lie by id.
std::set<std::string> TablesOf(const Reader& reader) {
  std::set<std::string> tables;
  for (const auto& [name, whole] : reader.wholes()) {
    if (whole.rows && whole.kind == ValueKind::kParam) tables.insert(whole.of.empty() ? name : whole.of);
  }
  return tables;
}

// Whether only the updates of tables use the variable: its values are in the files of the tables' states.
bool IsOfTablesAlone(const Whole& whole, const std::set<std::string>& tables) {
  return whole.rows || std::ranges::all_of(whole.pieces, [&](const Whole::Piece& piece) {
           return tables.contains(piece.entry->of);
         });
}

// The rows that one pserver had, and what their updates keep, in two files as a pserver writes them.
class ShardExport {
 public:
  ShardExport(Disk& disk, const Reader& reader, std::size_t part)
      : disk_(disk), found_(reader.found()), part_(part) {}

  Status Write(const ValueEntry& table, const std::string& path) {
    Result<Variable> rows = Read(table);
    if (!rows.ok()) return rows.status();
    const SelectedRows& shard = *std::as_const(*rows).If<SelectedRows>();
    std::string bytes;
    AppendSelectedRows(bytes, shard);
    PENSTOCK_RETURN_IF_ERROR(WriteInto(disk_, path, bytes));
    NamedList state = {{table.name, Tensor(DType::kInt64, {static_cast<Dim>(shard.rows.size())})},
                       {"crc32c", Tensor(DType::kInt64, {1})}};
    std::ranges::copy(shard.rows, state[0].second.Data<std::int64_t>());
    state[1].second.Data<std::int64_t>()[0] = Crc32c(0, shard.value.raw(), shard.value.bytes());
    PENSTOCK_RETURN_IF_ERROR(AddStates(table, false, state));
    PENSTOCK_RETURN_IF_ERROR(AddStates(table, true, state));
    return state.size() == 2 ? OkStatus() : WriteInto(disk_, StateOf(path), WriteNamed(state));
  }

 private:
  const Manifest& manifest() const { return found_.parts[part_]; }
  Result<Variable> Read(const ValueEntry& entry) const {
    return ReadValue(disk_, found_.folder, manifest(), entry);
  }
  Status AddStates(const ValueEntry& table, bool rows, NamedList& state) const {
    for (const ValueEntry& entry : manifest().values) {
      if (entry.of != table.of || entry.rows != rows || entry.kind == ValueKind::kParam ||
          entry.kind == ValueKind::kPolicy)
        continue;
      Result<Variable> value = Read(entry);
      if (!value.ok()) return value.status();
      state.emplace_back(entry.name, rows ? value->As<SelectedRows>().value : value->As<Tensor>());
    }
    return OkStatus();
  }

  Disk& disk_;
  const Found& found_;
  const std::size_t part_;
};

Status ExportShards(Disk& disk, const Reader& reader, const std::string& name, const std::string& folder) {
  int shard = 0;
  for (const Whole::Piece& piece : reader.Find(name)->pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, ShardOf(folder, name, shard++));
    PENSTOCK_RETURN_IF_ERROR(ShardExport(disk, reader, piece.part).Write(*piece.entry, path));
  }
  return OkStatus();
}

Status WriteNumpy(Disk& disk, const std::string& folder, const std::string& name, const Tensor& tensor) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string path, FileOf(folder, name + ".npy"));
  PENSTOCK_ASSIGN_OR_RETURN(OutFile file, OutFile::Create(disk, path));
  PENSTOCK_RETURN_IF_ERROR(file.Append(NumpyHead(tensor.dtype(), tensor.shape())));
  PENSTOCK_RETURN_IF_ERROR(file.Append(tensor));
  return file.Finish();
}

}  // namespace

Status RequireEmptyFolder(Disk& disk, const std::string& folder) {
  if (disk.Exists(folder)) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(folder));
    if (!names.empty()) {
      return FailedPrecondition("E-checkpoint-target", folder, " is not empty: it has ", names.front())
          .With("give a new folder");
    }
  }
  return disk.MakeFolder(folder);
}

// The values of such a table are not those that a lookup returns.
Status RequireCurrent(const Reader& reader) {
  for (const auto& [name, whole] : reader.wholes()) {
    if (whole.kind != ValueKind::kHistory) continue;
    return Unimplemented("E-checkpoint-history", reader.found().folder, ": rows of ", whole.of,
                         " miss updates, which only a pserver makes up for")
        .With("continue the job, and save by fluid.io.save_persistables");
  }
  return OkStatus();
}

Status ExportFluid(Disk& disk, const Reader& reader, const std::string& folder) {
  PENSTOCK_RETURN_IF_ERROR(RequireCurrent(reader));
  PENSTOCK_RETURN_IF_ERROR(RequireEmptyFolder(disk, folder));
  const std::set<std::string> tables = TablesOf(reader);
  for (const auto& [name, whole] : reader.wholes()) {
    if (whole.rows && whole.kind == ValueKind::kParam)
      PENSTOCK_RETURN_IF_ERROR(ExportShards(disk, reader, name, folder));
    if (IsOfTablesAlone(whole, tables)) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, FileOf(folder, name));
    PENSTOCK_ASSIGN_OR_RETURN(const Variable value, reader.ReadWhole(name));
    std::string bytes;
    AppendTensor(bytes, *value.If<Tensor>());
    PENSTOCK_RETURN_IF_ERROR(WriteInto(disk, path, bytes));
  }
  return OkStatus();
}

Status ExportNumpy(Disk& disk, const Reader& reader, const std::string& folder) {
  PENSTOCK_RETURN_IF_ERROR(RequireCurrent(reader));
  PENSTOCK_RETURN_IF_ERROR(RequireEmptyFolder(disk, folder));
  for (const auto& [name, whole] : reader.wholes()) {
    if (whole.kind == ValueKind::kPolicy) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const Variable value, reader.ReadWhole(name));
    const auto* rows = value.If<SelectedRows>();
    PENSTOCK_RETURN_IF_ERROR(WriteNumpy(disk, folder, name, rows ? rows->value : *value.If<Tensor>()));
    if (rows == nullptr) continue;
    Tensor ids(DType::kInt64, {static_cast<Dim>(rows->rows.size())});
    std::ranges::copy(rows->rows, ids.Data<std::int64_t>());
    PENSTOCK_RETURN_IF_ERROR(WriteNumpy(disk, folder, name + ".ids", ids));
  }
  return OkStatus();
}

}  // namespace penstock::checkpoint
