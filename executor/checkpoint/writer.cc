#include "executor/checkpoint/writer.h"

#include <algorithm>
#include <utility>

#include "framework/base/crc32c.h"
#include "framework/tensor/serialize.h"

namespace penstock::checkpoint {
namespace {

// The servers share the folder: another one may have removed the same name.
Status UnlessGone(Disk& disk, const std::string& path, Status removed) {
  return removed.ok() || !disk.Exists(path) ? OkStatus() : std::move(removed);
}

std::string BytesOf(const Variable& value) {
  std::string bytes;
  if (const auto* rows = value.If<SelectedRows>()) {
    AppendSelectedRows(bytes, *rows);
  } else {
    AppendTensor(bytes, *value.If<Tensor>());
  }
  return bytes;
}

}  // namespace

Status Writer::Write(Manifest head, const std::vector<Value>& values) {
  const std::string folder = StepFolder(options_.folder, head.step);
  const std::string manifest = ManifestFile(folder, head.server, head.servers);
  PENSTOCK_RETURN_IF_ERROR(disk_.MakeFolder(folder));
  if (disk_.Exists(manifest)) {  // of a run that has ended
    PENSTOCK_RETURN_IF_ERROR(disk_.Remove(manifest));
    PENSTOCK_RETURN_IF_ERROR(disk_.SyncFolder(folder));
  }
  PENSTOCK_RETURN_IF_ERROR(WriteValues(ValuesFile(folder, head.server, head.servers), values, head));
  PENSTOCK_RETURN_IF_ERROR(disk_.SyncFolder(folder));
  PENSTOCK_RETURN_IF_ERROR(ReplaceFile(disk_, manifest, WriteManifest(head)));
  return RemoveOld();
}

Status Writer::WriteValues(const std::string& path, const std::vector<Value>& values, Manifest& manifest) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk_.Create(path));
  manifest.bytes = 0;
  for (const Value& value : values) {
    const std::string bytes = BytesOf(value.value);
    ValueEntry& entry = manifest.values.emplace_back(value.entry);
    entry.offset = manifest.bytes;
    entry.bytes = bytes.size();
    entry.crc32c = Crc32c(0, bytes.data(), bytes.size());
    manifest.bytes += bytes.size();
    PENSTOCK_RETURN_IF_ERROR(file->Append(bytes));
  }
  PENSTOCK_RETURN_IF_ERROR(file->Sync());
  return file->Close();
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
