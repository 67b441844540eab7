// Writes the variables of a checkpoint for serving: tables in parts, with memory for one part, whatever their
// size.
//
//   PENSTOCK_RETURN_IF_ERROR(ExportParts(disk, reader, "out", {.format = ArrayFormat::kSafetensors}));
//
//   out/t.part-0.safetensors     "t.ids" int64[n], "t" f32[n, 16], and its states, each by its name
//   out/t.part-1.safetensors     other rows
//   out/variables.safetensors    all variables that are not tables
//
//   out/t.part-0.ids.npy         NumPy: an array a file
//   out/t.part-0.npy, out/t_moment.part-0.npy, out/fc_w.npy
//
// The ids of a part ascend; each id is in one part. With `since`, the parts have the rows that were changed
// after the checkpoint of that step, and out/t.gone.npy, or "t.gone" in out/t.gone.safetensors, has the ids
// that have lost their rows since then, and perhaps ids that had none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "executor/checkpoint/reader.h"
#include "framework/base/status.h"
#include "framework/runtime/disk.h"

namespace penstock::checkpoint {

enum class ArrayFormat { kNumpy, kSafetensors };

struct PartsOptions {
  ArrayFormat format = ArrayFormat::kSafetensors;
  std::size_t part_bytes = std::size_t{256} << 20;  // of ids and rows; a part begins a file when it has them
  bool states = true;                               // with what updates keep of each row
  std::optional<std::uint64_t> since = {};
};

// The folder must be empty. The errors of ExportNumpy, and kFailedPrecondition E-checkpoint-since: the
// checkpoint does not tell which rows have changed since that step.
Status ExportParts(Disk& disk, const Reader& reader, const std::string& folder, const PartsOptions& options);

}  // namespace penstock::checkpoint
