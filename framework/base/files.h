// Reads and writes whole files.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::string bytes, ReadFile("main.pb.gz"));   // unpacked
//   PENSTOCK_RETURN_IF_ERROR(WriteFile("out/main.pb", bytes));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace penstock {

struct ReadOptions {
  std::size_t bytes_max = std::size_t{4} << 30;  // upper limit of the returned bytes
};

// The most bytes that a gzip stream of `packed_bytes` may unpack to. This limit keeps a small file from
// filling the memory; text and weights compress far less.
constexpr std::size_t UnpackedBytesMax(std::size_t packed_bytes) {
  return packed_bytes * 64 + (std::size_t{64} << 20);
}

// Returns the bytes of a file. A gzip file, recognised by its first bytes and not by its name, is unpacked.
//
// kInvalidArgument E-file-read: no such file, a folder, no permission. E-file-size: more than bytes_max, or
// unpacked more than UnpackedBytesMax.
// kDataLoss E-file-gzip: a damaged or truncated gzip stream.
Result<std::string> ReadFile(const std::string& path, const ReadOptions& options = {});

// Replaces the file at `path` atomically: after a crash it holds either its old content or all of `bytes`;
// once this returns, the new content survives a crash. Packs with gzip if the name ends in ".gz" (without a
// time stamp, so equal bytes give equal files). The folder must exist. A device or pipe at `path` is written
// to directly.
//
// kInvalidArgument E-file-write: gives the system's reason.
Status WriteFile(const std::string& path, std::string_view bytes);

// Whether `name`, joined to a folder, leads out of it: an absolute path, or one whose ".." climb above the
// folder. "a/b" and "a/../b" stay inside. Symbolic links are not followed.
bool LeavesFolder(std::string_view name);

std::string Gzip(std::string_view bytes);
// E-file-size: more than bytes_max or UnpackedBytesMax. E-file-gzip: as in ReadFile.
Result<std::string> Gunzip(std::string_view bytes, std::size_t bytes_max);
bool IsGzip(std::string_view bytes);

}  // namespace penstock
