// How the servers of a job agree on its last step when it is asked to stop: through files beside its
// checkpoints, without a message between them.
//
//   DIR/stop/request       the run of the job that is asked to stop; written by the launcher
//   DIR/stop/least         that run, and a step that the last one is not below: trainers have ended it, and
//                          begin no other; written by the launcher before the request
//   DIR/stop/part-0-of-2   that run, and the steps that this server may have begun; it begins no more
//
// The highest of these steps is the last one: each server goes on up to it and makes its part of the
// checkpoint of that step. Files of another run are ignored.
//
//   StopRequest stop(disk, "DIR", "job7.0.0", 0, 2);
//   if (stop.Asked()) stop.Answer(12);
//   stop.LastStep();             // nullopt until each server has answered; then, for example, 13
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/status.h"
#include "framework/runtime/disk.h"

namespace penstock::checkpoint {

// Not thread-safe.
class StopRequest {
 public:
  // `name`: of the folder with the files; another request may be answered in the same way (cut_request.h).
  StopRequest(Disk& disk, const std::string& folder, std::string run, int server, int servers,
              const std::string& name = "stop")
      : disk_(&disk),
        folder_(StrCat(folder, "/", name)),
        run_(std::move(run)),
        server_(server),
        servers_(servers) {}

  Status Ask();  // E-file-write
  bool Asked() const;
  // E-file-write. A higher answer remains: this server was started again, and the others may have read it.
  Status Answer(std::uint64_t step);
  std::optional<std::uint64_t> LastStep() const;

 private:
  std::optional<std::uint64_t> AnswerOf(int server) const;
  std::optional<std::uint64_t> StepIn(const std::string& file) const;

  Disk* disk_;
  const std::string folder_, run_;
  const int server_, servers_;
};

}  // namespace penstock::checkpoint
