#include "executor/checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

constexpr std::string_view kStep = "step-", kPart = "part-", kOf = "-of-", kManifest = ".json";
constexpr std::uint64_t kManifestBytesMax = std::uint64_t{1} << 30;

// Takes a decimal number from the front of the text.
template <typename Number>
std::optional<Number> TakeNumber(std::string_view& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty() || (text.front() == '0' && end != text.data() + 1) ||
      text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::uint64_t> StepOf(std::string_view name) {
  if (!TakePrefix(name, kStep)) return std::nullopt;
  const std::optional<std::uint64_t> step = TakeNumber<std::uint64_t>(name);
  return name.empty() ? step : std::nullopt;
}

struct PartOf {
  int server = 0, servers = 0;
};
// The part whose manifest has this name.
std::optional<PartOf> ManifestOf(std::string_view name) {
  if (!TakePrefix(name, kPart)) return std::nullopt;
  const std::optional<int> server = TakeNumber<int>(name);
  if (!server || !TakePrefix(name, kOf)) return std::nullopt;
  const std::optional<int> servers = TakeNumber<int>(name);
  if (!servers || name != kManifest || *server >= *servers) return std::nullopt;
  return PartOf{*server, *servers};
}

std::string NameOf(const PartOf& part) { return StrCat("part ", part.server, " of ", part.servers); }

Result<Manifest> ReadPartManifest(Disk& disk, const Found& found, const PartOf& part) {
  const std::string path = ManifestFile(found.folder, part.server, part.servers);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t bytes, disk.SizeOf(path));
  if (bytes > kManifestBytesMax) return DataLoss("E-checkpoint-manifest", "too large");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, disk.Read(path, 0, bytes));
  return ReadManifest(text);
}

// Why the part does not belong to the checkpoint; empty if it does.
std::string WhyNot(Disk& disk, const Found& found, const PartOf& part, const Manifest& manifest) {
  if (manifest.step != found.step || manifest.server != part.server || manifest.servers != part.servers)
    return StrCat(NameOf(part), " has a manifest of another part");
  if (manifest.run != found.parts.front().run) return StrCat(NameOf(part), " is of another run of the job");
  const std::string file = ValuesFile(found.folder, part.server, part.servers);
  const Result<std::uint64_t> bytes = disk.SizeOf(file);
  if (!bytes.ok()) return StrCat(NameOf(part), " lacks its values");
  if (*bytes == manifest.bytes) return {};
  return StrCat(NameOf(part), " has ", *bytes, " bytes of values instead of ", manifest.bytes);
}

// Reads the parts of a checkpoint of so many servers.
void ReadParts(Disk& disk, int servers, Found& found) {
  for (int server = 0; server < servers && found.whole(); ++server) {
    const PartOf part{server, servers};
    Result<Manifest> manifest = ReadPartManifest(disk, found, part);
    if (!manifest.ok()) {
      found.lacks = manifest.status().id() == "E-checkpoint-manifest"
                        ? StrCat(NameOf(part), ": ", manifest.status().message())
                        : StrCat(NameOf(part), " is missing");
      break;
    }
    found.parts.push_back(*std::move(manifest));
    found.lacks = WhyNot(disk, found, part, found.parts.back());
  }
  if (!found.whole()) found.parts.clear();
}

Status Damaged(const std::string& file, const std::string& name, std::string_view how) {
  return DataLoss("E-checkpoint-damaged", file, ": the value of ", name, " is damaged: ", how)
      .With("resume from an earlier checkpoint of the folder: move this one away");
}

Result<std::string> ReadBytes(Disk& disk, const std::string& file, const ValueEntry& entry) {
  Result<std::string> bytes = disk.Read(file, entry.offset, entry.bytes);
  if (!bytes.ok()) {
    if (bytes.status().id() == "E-file-short") return Damaged(file, entry.name, bytes.status().message());
    return std::move(bytes).status();
  }
  const std::uint32_t crc = Crc32c(0, bytes->data(), bytes->size());
  if (crc == entry.crc32c) return bytes;
  return Damaged(file, entry.name, StrCat("its CRC32C is ", crc, ", the manifest says ", entry.crc32c));
}

}  // namespace

std::string StepFolder(const std::string& folder, std::uint64_t step) {
  return StrCat(folder, "/", kStep, step);
}

std::string PartName(int server, int servers) { return StrCat(kPart, server, kOf, servers); }

std::string ValuesFile(const std::string& step_folder, int server, int servers) {
  return StrCat(step_folder, "/", PartName(server, servers), ".values");
}

std::string ManifestFile(const std::string& step_folder, int server, int servers) {
  return StrCat(step_folder, "/", PartName(server, servers), kManifest);
}

Result<std::vector<Found>> FindCheckpoints(Disk& disk, const std::string& folder) {
  std::vector<Found> all;
  if (!disk.Exists(folder)) return all;
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(folder));
  for (const std::string& name : names) {
    if (const std::optional<std::uint64_t> step = StepOf(name))
      all.push_back({.step = *step, .folder = StepFolder(folder, *step), .parts = {}, .lacks = {}});
  }
  std::ranges::sort(all, {}, &Found::step);
  for (Found& found : all) {
    const Result<std::vector<std::string>> files = disk.List(found.folder);
    found.lacks = "it has no part";
    if (!files.ok()) continue;  // removed meanwhile
    // Parts of jobs with different numbers of servers may lie side by side; the first whole set counts.
    std::vector<int> counts;
    for (const std::string& file : *files) {
      const std::optional<PartOf> part = ManifestOf(file);
      if (part && std::ranges::find(counts, part->servers) == counts.end()) counts.push_back(part->servers);
    }
    for (const int servers : counts) {
      if (!found.parts.empty()) break;
      found.lacks.clear();
      ReadParts(disk, servers, found);
    }
  }
  return all;
}

Result<std::optional<std::uint64_t>> NewestWhole(Disk& disk, const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Found> found, FindCheckpoints(disk, folder));
  const auto newest =
      std::find_if(found.rbegin(), found.rend(), [](const Found& one) { return one.whole(); });
  if (newest != found.rend()) return std::optional(newest->step);
  if (found.empty()) return std::optional<std::uint64_t>();
  return DataLoss("E-checkpoint-whole", folder, " has no whole checkpoint: in step-", found.back().step, ", ",
                  found.back().lacks)
      .With("a job that starts from the beginning needs an empty folder");
}

Result<Variable> ReadValue(Disk& disk, const std::string& step_folder, const Manifest& part,
                           const ValueEntry& entry) {
  const std::string file = ValuesFile(step_folder, part.server, part.servers);
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(disk, file, entry));
  std::string_view record = bytes;
  Variable value;
  Status read;
  if (entry.rows) {
    Result<SelectedRows> rows = ReadSelectedRows(record);
    rows.ok() ? static_cast<void>(value.As<SelectedRows>() = *std::move(rows))
              : static_cast<void>(read = std::move(rows).status());
  } else {
    Result<Tensor> tensor = ReadTensor(record);
    tensor.ok() ? static_cast<void>(value.As<Tensor>() = *std::move(tensor))
                : static_cast<void>(read = std::move(tensor).status());
  }
  if (!read.ok()) return Damaged(file, entry.name, read.message());
  if (!record.empty()) return Damaged(file, entry.name, "bytes follow it");
  return value;
}

Result<std::vector<Value>> ReadPart(Disk& disk, const std::string& step_folder, const Manifest& part) {
  std::vector<Value> values;
  for (const ValueEntry& entry : part.values) {
    PENSTOCK_ASSIGN_OR_RETURN(Variable value, ReadValue(disk, step_folder, part, entry));
    values.push_back({.entry = entry, .value = std::move(value)});
  }
  return values;
}

Status VerifyCheckpoint(Disk& disk, const Found& found) {
  for (const Manifest& part : found.parts) {
    const std::string file = ValuesFile(found.folder, part.server, part.servers);
    for (const ValueEntry& entry : part.values) {
      const Result<std::string> bytes = ReadBytes(disk, file, entry);
      if (!bytes.ok()) return bytes.status();
    }
  }
  return OkStatus();
}

}  // namespace penstock::checkpoint
