// Whole files in and out.
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
  std::size_t bytes_max = std::size_t{4} << 30;  // of what is returned
};

// The most that a gzip stream of so many bytes may unpack to: a small file cannot fill the memory, and what
// text and weights compress to is far below.
constexpr std::size_t UnpackedBytesMax(std::size_t packed_bytes) {
  return packed_bytes * 64 + (std::size_t{64} << 20);
}

// The bytes of a file; a gzip file, known by its first bytes and not by its name, is unpacked.
//
// kInvalidArgument E-file-read: no such file, a folder, no permission. E-file-size: more than bytes_max, or
// unpacked more than UnpackedBytesMax.
// kDataLoss E-file-gzip: a damaged or truncated gzip stream.
Result<std::string> ReadFile(const std::string& path, const ReadOptions& options = {});

// Puts `bytes` at `path`: afterwards the file holds either what it held before or all of `bytes`, also when
// the machine stops in between; once it returns, the new file survives that. Packed with gzip (no time stamp,
// so the same bytes give the same file) if the name ends in ".gz". The folder must exist. A device or pipe at
// `path` is written to as it is.
//
// kInvalidArgument E-file-write: with the system's reason.
Status WriteFile(const std::string& path, std::string_view bytes);

// Whether `name`, joined to a folder, leads out of it: an absolute path, or one whose ".." climb above where
// it begins. "a/b" and "a/../b" stay inside. Symbolic links are not followed.
bool LeavesFolder(std::string_view name);

std::string Gzip(std::string_view bytes);
// E-file-size: more than bytes_max or UnpackedBytesMax. E-file-gzip: as in ReadFile.
Result<std::string> Gunzip(std::string_view bytes, std::size_t bytes_max);
bool IsGzip(std::string_view bytes);

}  // namespace penstock
