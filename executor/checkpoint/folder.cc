#include "executor/checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "executor/checkpoint/merge_rows.h"
#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

constexpr std::string_view kStep = "step-", kPart = "part-", kTrainer = "trainer-", kOf = "-of-",
                           kManifest = ".json", kValues = ".values";
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

std::string NameOf(const Manifest& part) {
  return StrCat(part.of_trainer ? "trainer " : "part ", part.server, " of ", part.servers);
}

// `part`: which one, by its numbers and whether it is a trainer's.
Result<Manifest> ReadPartManifest(Disk& disk, const Found& found, const Manifest& part) {
  const std::string path = ManifestFile(found.folder, part);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t bytes, disk.SizeOf(path));
  if (bytes > kManifestBytesMax) return DataLoss("E-checkpoint-manifest", "too large");
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, disk.Read(path, 0, bytes));
  return ReadManifest(text);
}

// Why the part does not belong to the checkpoint; empty if it does.
std::string WhyNot(Disk& disk, const Found& found, const Manifest& part, const Manifest& manifest) {
  if (manifest.step != found.step || manifest.server != part.server || manifest.servers != part.servers ||
      manifest.of_trainer.has_value() != part.of_trainer.has_value())
    return StrCat(NameOf(part), " has a manifest of another part");
  if (manifest.run != found.parts.front().run) return StrCat(NameOf(part), " is of another run of the job");
  const std::string lack = WhatFilesLack(disk, found.folder, manifest);
  return lack.empty() ? lack : StrCat(NameOf(part), " ", lack);
}

// Reads so many parts, of servers or of trainers.
void ReadParts(Disk& disk, int count, bool of_trainers, Found& found) {
  std::vector<Manifest>& parts = of_trainers ? found.trainers : found.parts;
  Manifest part{.servers = count, .values = {}};
  if (of_trainers) part.of_trainer.emplace();
  for (part.server = 0; part.server < count && found.whole(); ++part.server) {
    Result<Manifest> manifest = ReadPartManifest(disk, found, part);
    if (!manifest.ok()) {
      found.lacks = manifest.status().id() == "E-checkpoint-manifest"
                        ? StrCat(NameOf(part), ": ", manifest.status().message())
                        : StrCat(NameOf(part), " is missing");
      break;
    }
    parts.push_back(*std::move(manifest));
    found.lacks = WhyNot(disk, found, part, parts.back());
  }
  if (!found.whole()) parts.clear();
}

Status Damaged(const std::string& file, const std::string& name, std::string_view how) {
  return DataLoss("E-checkpoint-damaged", file, ": the value of ", name, " is damaged: ", how)
      .With("resume from an earlier checkpoint of the folder: move this one away");
}

Result<std::string> ReadBytes(Disk& disk, const std::string& file, const std::string& name,
                              const Record& record) {
  Result<std::string> bytes = disk.Read(file, record.offset, record.bytes);
  if (!bytes.ok()) {
    if (bytes.status().id() == "E-file-short") return Damaged(file, name, bytes.status().message());
    return std::move(bytes).status();
  }
  const std::uint32_t crc = Crc32c(0, bytes->data(), bytes->size());
  if (crc == record.crc32c) return bytes;
  return Damaged(file, name, StrCat("its CRC32C is ", crc, ", the manifest says ", record.crc32c));
}

Status VerifyPart(Disk& disk, const std::string& step_folder, const Manifest& part) {
  for (const ValueEntry& entry : part.values) {
    for (const Record& record : RecordsOf(part, entry)) {
      const std::string file = StrCat(step_folder, "/", record.file);
      const Result<std::string> bytes = ReadBytes(disk, file, entry.name, record);
      if (!bytes.ok()) return bytes.status();
    }
  }
  return OkStatus();
}

template <typename T>
Result<T> ReadRecord(Disk& disk, const std::string& file, const ValueEntry& entry, const Record& record,
                     Result<T> (*read)(std::string_view&)) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(disk, file, entry.name, record));
  std::string_view text = bytes;
  Result<T> value = read(text);
  if (!value.ok()) return Damaged(file, entry.name, value.status().message());
  if (!text.empty()) return Damaged(file, entry.name, "bytes follow it");
  return value;
}

}  // namespace

std::string StepFolder(const std::string& folder, std::uint64_t step) {
  return StrCat(folder, "/", kStep, step);
}

std::string PartName(int server, int servers) { return StrCat(kPart, server, kOf, servers); }

std::string ValuesFile(const std::string& step_folder, int server, int servers) {
  return StrCat(step_folder, "/", PartName(server, servers), kValues);
}

std::string ManifestFile(const std::string& step_folder, int server, int servers) {
  return StrCat(step_folder, "/", PartName(server, servers), kManifest);
}

std::string PartName(const Manifest& part) {
  return StrCat(part.of_trainer ? kTrainer : kPart, part.server, kOf, part.servers);
}

std::string ValuesFile(const std::string& step_folder, const Manifest& part) {
  return StrCat(step_folder, "/", PartName(part), kValues);
}

std::string ManifestFile(const std::string& step_folder, const Manifest& part) {
  return StrCat(step_folder, "/", PartName(part), kManifest);
}

std::string RowsFileName(int server, int servers, std::uint64_t step) {
  return StrCat(PartName(server, servers), ".rows-", step);
}

std::string WhatFilesLack(Disk& disk, const std::string& step_folder, const Manifest& part) {
  const Result<std::uint64_t> bytes = disk.SizeOf(ValuesFile(step_folder, part));
  if (!bytes.ok()) return "lacks its values";
  if (*bytes != part.bytes) return StrCat("has ", *bytes, " bytes of values instead of ", part.bytes);
  for (const RowsFile& file : part.files) {
    const Result<std::uint64_t> rows = disk.SizeOf(StrCat(step_folder, "/", file.name));
    if (!rows.ok()) return StrCat("lacks ", file.name);
    if (*rows != file.bytes)
      return StrCat("has ", *rows, " bytes of ", file.name, " instead of ", file.bytes);
  }
  return {};
}

Result<std::vector<Found>> FindCheckpoints(Disk& disk, const std::string& folder) {
  return FindCheckpoints(disk, folder, 0);
}

Result<std::vector<Found>> FindCheckpoints(Disk& disk, const std::string& folder, std::uint64_t after) {
  std::vector<Found> all;
  if (!disk.Exists(folder)) return all;
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(folder));
  for (const std::string& name : names) {
    if (const std::optional<std::uint64_t> step = StepOf(name); step && (*step > after || after == 0))
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
      ReadParts(disk, servers, false, found);
    }
    if (found.whole() && found.parts.front().with_trainers)
      ReadParts(disk, found.parts.front().trainers, true, found);
  }
  return all;
}

Result<Found> FindWhole(Disk& disk, const std::string& folder, std::uint64_t step) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Found> all, FindCheckpoints(disk, folder));
  const auto found = std::ranges::find(all, step, &Found::step);
  if (found != all.end() && found->whole()) return std::move(*found);
  return DataLoss("E-checkpoint-whole", folder, " has no whole checkpoint of step ", step,
                  found == all.end() ? "" : ": ", found == all.end() ? "" : found->lacks);
}

Status DiffersFrom(const std::string& step_folder, const std::string& how) {
  return FailedPrecondition("E-checkpoint-differs", step_folder, " is a checkpoint of another job: ", how)
      .With("continue a job with the script that made its checkpoint");
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

Result<SelectedRows> ReadRows(Disk& disk, const std::string& step_folder, const ValueEntry& entry,
                              const Record& record) {
  return ReadRecord(disk, StrCat(step_folder, "/", record.file), entry, record, ReadSelectedRows);
}

Result<std::vector<std::int64_t>> ReadGone(Disk& disk, const std::string& step_folder,
                                           const ValueEntry& entry, const Record& record) {
  const std::string file = StrCat(step_folder, "/", record.file);
  PENSTOCK_ASSIGN_OR_RETURN(const Tensor ids, ReadRecord(disk, file, entry, record, ReadTensor));
  if (ids.dtype() != DType::kInt64 || ids.shape().rank() != 1)
    return Damaged(file, entry.name, "its rows that are gone are not a list of ids");
  return std::vector<std::int64_t>(ids.Span<std::int64_t>().begin(), ids.Span<std::int64_t>().end());
}

std::vector<Record> RecordsOf(const Manifest& part, const ValueEntry& entry) {
  if (!entry.records.empty()) return entry.records;
  return {{.file = PartName(part) + std::string(kValues),
           .offset = entry.offset,
           .bytes = entry.bytes,
           .crc32c = entry.crc32c}};
}

std::size_t StepOfRecord(const Manifest& part, const Record& record) {
  return static_cast<std::size_t>(std::ranges::find(part.files, record.file, &RowsFile::name) -
                                  part.files.begin());
}

Result<Variable> ReadValue(Disk& disk, const std::string& step_folder, const Manifest& part,
                           const ValueEntry& entry) {
  Variable value;
  const std::vector<Record> records = RecordsOf(part, entry);
  if (!entry.rows) {
    const std::string file = StrCat(step_folder, "/", records.front().file);
    PENSTOCK_ASSIGN_OR_RETURN(value.As<Tensor>(), ReadRecord(disk, file, entry, records.front(), ReadTensor));
    return value;
  }
  SavedRows saved;
  for (const Record& record : records) {
    const std::size_t step = StepOfRecord(part, record);
    if (record.gone) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::int64_t> gone,
                                ReadGone(disk, step_folder, entry, record));
      saved.Remove(step, gone);
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(SelectedRows rows, ReadRows(disk, step_folder, entry, record));
      saved.Add(step, std::move(rows));
    }
  }
  std::optional<SelectedRows> rows = saved.Take();
  if (rows) {
    value.As<SelectedRows>() = *std::move(rows);
    return value;
  }
  return Damaged(StrCat(step_folder, "/", records.back().file), entry.name,
                 "one step has a row twice, or its rows have different widths");
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
  for (const std::vector<Manifest>* parts : {&found.parts, &found.trainers}) {
    for (const Manifest& part : *parts) PENSTOCK_RETURN_IF_ERROR(VerifyPart(disk, found.folder, part));
  }
  return OkStatus();
}

}  // namespace penstock::checkpoint
