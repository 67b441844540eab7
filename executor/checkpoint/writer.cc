#include "executor/checkpoint/writer.h"

#include <algorithm>
#include <utility>

#include "executor/checkpoint/part_file.h"

namespace penstock::checkpoint {
namespace {

// The servers share the folder: another one may have removed the same name.
Status UnlessGone(Disk& disk, const std::string& path, Status removed) {
  return removed.ok() || !disk.Exists(path) ? OkStatus() : std::move(removed);
}

Tensor TensorOf(const std::vector<std::int64_t>& ids) {
  Tensor tensor(DType::kInt64, {static_cast<Dim>(ids.size())});
  std::ranges::copy(ids, tensor.Data<std::int64_t>());
  return tensor;
}

}  // namespace

struct Writer::Part {
  std::uint64_t step = 0;
  std::string folder, rows_name;
  PartFile file;
  std::optional<PartFile> rows = {};
  bool changes = false;  // of `rows`
  Manifest written = {};
  std::map<std::string, std::size_t> places = {};  // in written.values, of values whose rows are in `rows`
  std::map<std::string, Dim> rows_all = {};
};

Writer::Writer(Disk& disk, WriterOptions options) : disk_(disk), options_(std::move(options)) {}
Writer::~Writer() = default;

bool Writer::TakesChanges() const {
  if (!last_ || last_->files.empty() || !has_links_.value_or(false)) return false;
  std::uint64_t changes = 0;
  for (std::size_t i = 1; i < last_->files.size(); ++i) changes += last_->files[i].bytes;
  return changes <= last_->files.front().bytes / 2;
}

// Whether this run has a whole part of this step and server.
bool Writer::HasPart(const std::string& folder, const Manifest& head) const {
  const Result<std::string> text = disk_.ReadWhole(ManifestFile(folder, head));
  if (!text.ok()) return false;
  const Result<Manifest> part = ReadManifest(*text);
  return part.ok() && part->run == head.run && part->step == head.step && part->server == head.server &&
         part->servers == head.servers && WhatFilesLack(disk_, folder, *part).empty();
}

// The part of a whole checkpoint must not be removed to be written again: the job may be killed meanwhile.
Status Writer::Begin(const Manifest& head) {
  std::string folder = StepFolder(options_.folder, head.step);
  if (HasPart(folder, head)) {
    kept_ = head.step;
    return OkStatus();
  }
  const std::string manifest = ManifestFile(folder, head);
  PENSTOCK_RETURN_IF_ERROR(disk_.MakeFolder(folder));
  if (disk_.Exists(manifest)) {  // of a run that has ended
    PENSTOCK_RETURN_IF_ERROR(disk_.Remove(manifest));
    PENSTOCK_RETURN_IF_ERROR(disk_.SyncFolder(folder));
  }
  PENSTOCK_RETURN_IF_ERROR(RemoveRows(folder, head));
  PENSTOCK_ASSIGN_OR_RETURN(PartFile file, PartFile::Create(disk_, ValuesFile(folder, head)));
  part_ = std::make_unique<Part>(Part{.step = head.step,
                                      .folder = std::move(folder),
                                      .rows_name = RowsFileName(head.server, head.servers, head.step),
                                      .file = std::move(file)});
  return OkStatus();
}

Status Writer::Append(const Manifest& head, const Value& value) {
  if (part_ == nullptr && !kept_ && failed_.ok()) failed_ = Begin(head);
  if (failed_.ok() && kept_) {
    PENSTOCK_CHECK(*kept_ == head.step, "one part at a time");
  } else if (failed_.ok()) {
    PENSTOCK_CHECK(part_->step == head.step, "one part at a time");
    failed_ = Add(value);
  }
  return failed_;
}

Status Writer::Write(Manifest head, const std::vector<Value>& values) {
  if (part_ == nullptr && !kept_ && failed_.ok()) failed_ = Begin(head);
  for (const Value& value : values) PENSTOCK_RETURN_IF_ERROR(Append(head, value));
  PENSTOCK_RETURN_IF_ERROR(failed_);
  if (std::exchange(kept_, std::nullopt)) {
    last_.reset();  // of later changes nobody knows whether what was dropped has them
    return RemoveOld();
  }
  const std::unique_ptr<Part> part = std::move(part_);
  PENSTOCK_RETURN_IF_ERROR(FinishFiles(*part, head));
  PENSTOCK_RETURN_IF_ERROR(disk_.SyncFolder(part->folder));
  const std::string manifest = ManifestFile(part->folder, head);
  PENSTOCK_RETURN_IF_ERROR(ReplaceFile(disk_, manifest, WriteManifest(head)));
  last_ = Last{.folder = part->folder, .files = std::move(head.files), .records = {}};
  for (ValueEntry& entry : head.values) last_->records[entry.name] = std::move(entry.records);
  return RemoveOld();
}

Status Writer::Add(const Value& value) {
  if (value.saved_as != Value::Rows::kAlone) return AddRows(value, *part_);
  const auto* const rows = value.value.If<SelectedRows>();
  PENSTOCK_ASSIGN_OR_RETURN(const Record record, rows != nullptr
                                                     ? part_->file.Append(*rows)
                                                     : part_->file.Append(*value.value.If<Tensor>()));
  ValueEntry& entry = part_->written.values.emplace_back(value.entry);
  entry.offset = record.offset;
  entry.bytes = record.bytes;
  entry.crc32c = record.crc32c;
  return OkStatus();
}

Status Writer::BeginRows(bool changes, Part& part) {
  if (part.rows) {
    PENSTOCK_CHECK(changes == part.changes, "a part has a base or changes");
    return OkStatus();
  }
  PENSTOCK_CHECK(!changes || TakesChanges(), "changes need what they change");
  if (changes) {
    PENSTOCK_RETURN_IF_ERROR(LinkLast(part.folder));
    part.written.files = last_->files;
  }
  part.changes = changes;
  PENSTOCK_ASSIGN_OR_RETURN(part.rows, PartFile::Create(disk_, StrCat(part.folder, "/", part.rows_name)));
  return OkStatus();
}

Status Writer::AddRows(const Value& value, Part& part) {
  PENSTOCK_RETURN_IF_ERROR(BeginRows(value.saved_as == Value::Rows::kChanges, part));
  const auto [place, is_new] = part.places.try_emplace(value.entry.name, part.written.values.size());
  if (is_new) {
    ValueEntry& entry = part.written.values.emplace_back(value.entry);
    if (part.changes) entry.records = last_->records[entry.name];
  }
  ValueEntry& entry = part.written.values[place->second];
  const auto add = [&](Record record, bool gone) {
    record.file = part.rows_name;
    record.gone = gone;
    entry.records.push_back(std::move(record));
  };
  const SelectedRows& rows = *value.value.If<SelectedRows>();
  if (value.rows_all) {
    const Dim all = part.rows_all[entry.name] += *value.rows_all;
    entry.type = StrCat(DTypeName(rows.value.dtype()), rows.value.shape().WithRows(all));
  }
  if (!value.gone.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(Record record, part.rows->Append(TensorOf(value.gone)));
    add(std::move(record), true);
  }
  // A value has at least one record, which says what its rows are.
  if (rows.rows.empty() && !entry.records.empty()) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Record record, part.rows->Append(rows));
  add(std::move(record), false);
  return OkStatus();
}

Status Writer::FinishFiles(Part& part, Manifest& head) {
  head.values = std::move(part.written.values);
  head.files = std::move(part.written.files);
  head.bytes = part.file.size();
  PENSTOCK_RETURN_IF_ERROR(part.file.Finish());
  if (!part.rows) return OkStatus();
  head.files.push_back({.name = part.rows_name, .bytes = part.rows->size()});
  PENSTOCK_RETURN_IF_ERROR(part.rows->Finish());
  return has_links_ ? OkStatus() : ProbeLinks(StrCat(part.folder, "/", part.rows_name));
}

// The files' bytes were synced when they were written.
Status Writer::LinkLast(const std::string& folder) {
  for (const RowsFile& file : last_->files) {
    PENSTOCK_RETURN_IF_ERROR(
        disk_.Link(StrCat(last_->folder, "/", file.name), StrCat(folder, "/", file.name)));
  }
  return OkStatus();
}

Status Writer::ProbeLinks(const std::string& file) {
  const std::string second = file + ".link";
  const Status linked = disk_.Link(file, second);
  if (!linked.ok() && linked.id() != "E-file-link") return linked;
  has_links_ = linked.ok();
  return linked.ok() ? disk_.Remove(second) : OkStatus();
}

// Rows of a run that has ended. Their files may have other names, so they must not be emptied and reused.
Status Writer::RemoveRows(const std::string& folder, const Manifest& head) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, disk_.List(folder));
  for (const std::string& name : names) {
    if (name.starts_with(PartName(head) + ".rows-"))
      PENSTOCK_RETURN_IF_ERROR(disk_.Remove(StrCat(folder, "/", name)));
  }
  return OkStatus();
}

// What is older than the newest whole checkpoint and not whole will never be: a server writes its parts in
// the order of the steps.
Status Writer::RemoveOld() {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Found> found, FindCheckpoints(disk_, options_.folder));
  int whole = 0;
  for (auto one = found.rbegin(); one != found.rend(); ++one) {
    const bool old = one->whole() ? whole >= options_.keep : whole > 0;
    whole += one->whole() ? 1 : 0;
    if (old) PENSTOCK_RETURN_IF_ERROR(RemoveStep(one->folder));
  }
  return OkStatus();
}

Status Writer::RemoveStep(const std::string& folder) {
  Result<std::vector<std::string>> names = disk_.List(folder);
  if (!names.ok()) return UnlessGone(disk_, folder, std::move(names).status());
  // Manifests first: without them nobody takes the rest for a checkpoint.
  std::ranges::stable_partition(*names, [](const std::string& name) { return name.ends_with(".json"); });
  bool synced = false;
  for (const std::string& name : *names) {
    if (!name.ends_with(".json") && !std::exchange(synced, true))
      PENSTOCK_RETURN_IF_ERROR(UnlessGone(disk_, folder, disk_.SyncFolder(folder)));
    const std::string path = StrCat(folder, "/", name);
    PENSTOCK_RETURN_IF_ERROR(UnlessGone(disk_, path, disk_.Remove(path)));
  }
  return UnlessGone(disk_, folder, disk_.RemoveFolder(folder));
}

Status Writer::RemoveAfter(std::uint64_t step) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Found> found, FindCheckpoints(disk_, options_.folder));
  for (const Found& one : found) {
    if (one.step <= step) continue;
    if (one.whole()) {
      return FailedPrecondition("E-checkpoint-newer", options_.folder, " has a whole checkpoint of step ",
                                one.step, ", and the job resumes at step ", step)
          .With("move the newer checkpoint away, or resume at it");
    }
    PENSTOCK_RETURN_IF_ERROR(RemoveStep(one.folder));
  }
  return OkStatus();
}

}  // namespace penstock::checkpoint
