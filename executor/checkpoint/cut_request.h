// How the servers of a job without an interval agree on the step of a checkpoint, through files beside the
// checkpoints, without a message between them and without a pause:
//
//   DIR/cut/request       the run, and the number of the request; written by the first server when one is due
//   DIR/cut/part-0-of-2   the same, and a step a little ahead of what this server may have begun; until all
//                         have answered, it begins none beyond that step
//
// The highest of these steps is that of the checkpoint: no server is beyond it. Files of another run are
// ignored. A server that was started again answers again; a higher answer remains.
//
//   CutRequest cut(disk, "DIR", "job7.0.0", 0, 2);
//   cut.Ask();                                   // the first server
//   if (cut.Asked()) cut.Answer(12);
//   cut.Step();                                  // nullopt until each server has answered; then 13
//   cut.Done();                                  // the next request has another number
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "executor/checkpoint/stop_request.h"

namespace penstock::checkpoint {

// Not thread-safe.
class CutRequest {
 public:
  CutRequest(Disk& disk, std::string folder, std::string run, int server, int servers)
      : disk_(&disk), folder_(std::move(folder)), run_(std::move(run)), server_(server), servers_(servers) {}

  // E-file-write.
  Status Ask();
  // Whether there is a request that is not done.
  bool Asked() const { return Number() > done_; }
  // E-file-write.
  Status Answer(std::uint64_t step) { return Current().Answer(step); }
  std::optional<std::uint64_t> Step() const { return Current().LastStep(); }
  void Done() { done_ = Number(); }

 private:
  std::uint64_t Number() const;  // of the last request of this run; 0: there is none
  StopRequest Current() const { return Of(Number()); }
  StopRequest Of(std::uint64_t number) const {
    return {*disk_, folder_, StrCat(run_, " ", number), server_, servers_, kName};
  }

  static constexpr char kName[] = "cut";
  Disk* disk_;
  std::string folder_, run_;
  int server_, servers_;
  std::uint64_t done_ = 0;
};

}  // namespace penstock::checkpoint
