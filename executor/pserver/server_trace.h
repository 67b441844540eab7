// What a server tells the process's trace: merges, updates, replies and saves, with the numbers that its
// trainers' traces give to the messages. Does nothing without a tracer.
//
//   ServerTrace trace(tracer, facts);                    // facts outlive it
//   const Nanoseconds begin = trace.Now();
//   const Status status = store.Merge(merge);
//   trace.Merged(merge, bytes, begin);
//
// Thread-safe once it is made.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/observe/trace/flow.h"
#include "executor/observe/trace/tracer.h"
#include "executor/pserver/machine/actions.h"
#include "executor/pserver/memory/growing_list.h"
#include "framework/roles/pserver_facts.h"

namespace penstock::pserver {

class ServerTrace {
 public:
  ServerTrace() = default;
  ServerTrace(trace::Tracer* tracer, const roles::PserverFacts& facts);

  // A key has been added while the job runs.
  void AddKey(const std::string& name);

  bool on() const { return tracer_ != nullptr; }
  Nanoseconds Now() const { return tracer_ == nullptr ? Nanoseconds{0} : tracer_->Now(); }

  void Merged(const MergeAction& merge, std::uint64_t bytes, Nanoseconds begin) const;
  void Ran(const RunAction& run, Nanoseconds begin) const;
  void Saved(const SaveEvent& save, Nanoseconds begin) const;
  // Before the first part of the answer is sent.
  void Replies(int trainer, ChunkId at, std::uint64_t version, std::uint64_t bytes) const;
  // `name`: of the request, in the trainer's contract.
  void RepliesRows(int trainer, const RowsEvent& asked, std::string_view name, std::uint64_t bytes) const;

 private:
  struct Param {
    trace::NameId name = 0;
    std::uint64_t hash = 0;
    bool is_held = false;               // its pushes are its value
    std::vector<std::uint64_t> pushed;  // by trainer: the hash of the name under which it pushes for it
  };
  struct Trainer {
    trace::NameId name;
    trace::FlowBase base;
  };
  const Param& At(int param) const { return params_[static_cast<std::size_t>(param)]; }
  const Trainer& From(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)]; }

  trace::Tracer* tracer_ = nullptr;
  trace::NameId lr_block_ = 0;
  GrowingList<Param> params_;
  std::vector<Trainer> trainers_;
};

}  // namespace penstock::pserver
