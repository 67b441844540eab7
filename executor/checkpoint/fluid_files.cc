#include "executor/checkpoint/fluid_files.h"

#include <cstring>
#include <filesystem>

#include "framework/base/strings.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

constexpr char kTables[] = "__lookup_table__";

}  // namespace

Result<std::string> FileOf(const std::string& folder, const std::string& name) {
  const std::filesystem::path inside = std::filesystem::path(name).lexically_normal();
  if (name.empty() || inside.is_absolute() || *inside.begin() == "..") {
    return InvalidArgument("E-file-outside", "the file of variable ", Quote(name), " is outside ", folder)
        .With("rename the variable");
  }
  return StrCat(folder, "/", name);
}

Result<std::string> ShardOf(const std::string& folder, const std::string& table, int shard) {
  return FileOf(StrCat(folder, "/", kTables), StrCat(table, "_", shard));
}

std::string WriteNamed(const NamedList& tensors) {
  std::string names;
  for (const auto& [name, tensor] : tensors) names += name + "\n";
  Tensor listed(DType::kUInt8, {static_cast<Dim>(names.size())});
  std::memcpy(listed.raw(), names.data(), names.size());
  std::string bytes;
  AppendTensor(bytes, listed);
  for (const auto& [name, tensor] : tensors) AppendTensor(bytes, tensor);
  return bytes;
}

Result<NamedList> ReadNamed(const std::string& path, const std::string& bytes) {
  std::string_view left = bytes;
  NamedList named;
  PENSTOCK_ASSIGN_OR_RETURN(const Tensor listed, ReadTensor(left));
  const std::string names(reinterpret_cast<const char*>(listed.raw()), listed.bytes());
  for (std::string& name : Split(names, '\n')) {
    if (name.empty()) continue;
    PENSTOCK_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(left));
    named.emplace_back(std::move(name), std::move(tensor));
  }
  if (left.empty() && !named.empty()) return named;
  return DataLoss("E-checkpoint-import", path, ": its names do not match its tensors");
}

}  // namespace penstock::checkpoint
