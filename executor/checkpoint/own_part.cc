#include "executor/checkpoint/own_part.h"

#include <utility>

namespace penstock::checkpoint {

Result<std::optional<OwnPart>> NewestOwnPart(Disk& disk, const std::string& folder, const PartOwner& owner) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Found> found, FindCheckpoints(disk, folder));
  for (auto one = found.rbegin(); one != found.rend(); ++one) {
    const Result<std::uint64_t> bytes = disk.SizeOf(ManifestFile(one->folder, owner.server, owner.servers));
    if (!bytes.ok()) continue;
    const Result<std::string> text =
        disk.Read(ManifestFile(one->folder, owner.server, owner.servers), 0, *bytes);
    if (!text.ok()) continue;
    Result<Manifest> manifest = ReadManifest(*text);
    if (!manifest.ok() || manifest->run != owner.run || manifest->step != one->step) continue;
    if (manifest->server != owner.server || manifest->servers != owner.servers) continue;
    if (!WhatFilesLack(disk, one->folder, *manifest).empty()) continue;
    return std::optional(OwnPart{.folder = one->folder, .manifest = *std::move(manifest)});
  }
  return std::optional<OwnPart>();
}

}  // namespace penstock::checkpoint
