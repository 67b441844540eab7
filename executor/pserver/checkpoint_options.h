// How a job makes checkpoints, and what its servers, of programs and of keys, do alike before the first.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const int number, options.NumberOf("10.0.0.1:6174"));
//   PENSTOCK_RETURN_IF_ERROR(options.PrepareFolder(disk, writer, number));
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/writer.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/disk.h"

namespace penstock::pserver {

struct CheckpointOptions {
  std::string folder;       // all servers of the job have the same
  std::uint64_t every = 0;  // steps from one checkpoint to the next; 0: none are made
  // Without an interval: checkpoints are as frequent as this share of the time allows, and not more frequent
  // than that. Then `every` is kNoInterval.
  std::optional<double> share = {};
  Nanoseconds least = std::chrono::seconds(10);
  static constexpr std::uint64_t kNoInterval = std::uint64_t{1} << 62;
  int keep = 2;  // whole checkpoints that are kept
  // The job continues after this step, from its checkpoint. 0: it starts again from the beginning, because an
  // earlier start of it made no checkpoint. nullopt: it is new, and the folder must have no checkpoint.
  std::optional<std::uint64_t> resume;
  std::vector<std::string> servers;  // the addresses of all servers of the job
  std::string run;                   // names this start of the job; the same on all servers
  // How often this server may be started again by itself, and how often it has been.
  std::uint64_t restarts_max = 0, restarts = 0;

  bool used() const { return every > 0 || resume.has_value(); }
  // The number of the server with this address. kInvalidArgument E-checkpoint-servers: `servers` lacks it.
  Result<int> NumberOf(const std::string& address) const;
  // Call it before server `number` writes its first part. A new job's folder must have no checkpoint; that of
  // a job that continues loses those after its step. kFailedPrecondition E-checkpoint-exists; E-file-read,
  // E-file-write.
  Status PrepareFolder(Disk& disk, checkpoint::Writer& writer, int number) const;
};

}  // namespace penstock::pserver
