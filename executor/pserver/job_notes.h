// A server's notes on its trainers for reports, the flight recorder and the receipt. They never influence the
// server.
//
//   JobNotes notes(options.observer, facts.trainers, config.params, is_sync);
//   notes.Taken(merge);  notes.Started(run);  notes.StepEnded(trainer, step, now);
//
// Call with the server's lock held, except for Sent, Ran, Rows and Published, which are called from any
// thread. Does nothing without an observer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "executor/observe/observer.h"
#include "executor/protocol/events.h"
#include "executor/pserver/machine/actions.h"
#include "executor/pserver/memory/growing_list.h"
#include "executor/table/cold_tier.h"
#include "executor/table/row_life.h"

namespace penstock::pserver {

class JobNotes {
 public:
  JobNotes() = default;
  JobNotes(observe::Observer* observer, int trainers, const std::vector<MachineConfig::Param>& params,
           bool is_sync);

  // A param has been added while the job runs.
  void AddParam(const MachineConfig::Param& param);

  void Came(int trainer, std::uint64_t step) const;
  void Left(int trainer, std::uint64_t step) const;
  void Received(int trainer, const protocol::Event& event) const;
  void Sent(int trainer, std::uint64_t bytes) const;
  void Repeated(int trainer) const { At(trainer).Repeated(); }
  void Lacks(int trainer, std::uint64_t step, int param) const;  // the param's update waits for it; -1: all

  void StepEnded(int trainer, std::uint64_t step, Nanoseconds now);
  void Taken(const MergeAction& merge);
  void Started(const RunAction& run);
  void Answered(int trainer, ChunkId at);  // with the newest value
  void Ran(const RunAction& run) const;
  // Of a shard, since the start; on its queue.
  void Rows(ChunkId at, const table::RowCounts& counts, const table::ColdCounts& cold);
  void Published(int trainer, ChunkId at, std::uint64_t version, std::uint64_t bytes) const;

 private:
  struct Chunk {
    std::uint64_t updates = 0;         // begun
    int taken = 0;                     // the trainer whose gradient is in the update that begins next
    std::vector<std::uint64_t> asked;  // by trainer: updates in its last answer, plus 1; 0: no answer yet
  };
  struct EndOfStep {
    int trainers = 0;  // that have ended it
    Nanoseconds last{0};
  };
  const observe::PeerNotes& At(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)]; }
  Chunk& At(ChunkId at) {
    return chunks_[static_cast<std::size_t>(at.param)][static_cast<std::size_t>(at.chunk)];
  }
  observe::NameId Name(int param) const { return param < 0 ? 0 : names_[static_cast<std::size_t>(param)]; }

  observe::Observer* observer_ = nullptr;
  bool is_sync_ = true;
  std::vector<observe::PeerNotes> trainers_;
  std::vector<std::uint64_t> steps_;  // ended steps by trainer
  GrowingList<observe::NameId> names_;
  struct OfShard {
    table::RowCounts rows;
    table::ColdCounts cold;
  };
  GrowingList<std::vector<OfShard>> rows_;  // noted so far, by param and chunk
  std::vector<std::vector<Chunk>> chunks_;  // of asynchronous modes
  std::map<std::uint64_t, EndOfStep> ends_;
};

}  // namespace penstock::pserver
