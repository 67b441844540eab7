// The store of a job as a state machine: the ranks present, values by key, counters, and waiting requests. It
// neither waits nor sends; each event returns the resulting answers.
//
//   StoreTable table("job", {"10.0.0.1:6170", "10.0.0.2:6170"});
//   PENSTOCK_RETURN_IF_ERROR(table.Enter(hello));                        // the rank is accepted
//   for (StoreTable::Answer& answer : table.Take(hello.rank, message)) Send(answer.rank, answer.message);
//   ... its connection ends:  table.Lose(rank, why)
//
// Not thread-safe. Each event costs O(waiting requests) for a Get, a barrier or the wait for all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/collective/rendezvous/store_message.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

inline constexpr std::size_t kStoreKeysMax = std::size_t{1} << 16;
inline constexpr std::size_t kStoreBytesMax = std::size_t{256} << 20;  // of all values

class StoreTable {
 public:
  struct Answer {
    int rank = 0;
    StoreMessage message;
  };
  using Answers = std::vector<Answer>;

  // `addresses`: of all ranks, in order.
  StoreTable(std::string job, std::vector<std::string> addresses);

  // Accepts or refuses a process. A refusal changes nothing but the reports:
  //
  // kFailedPrecondition E-rendezvous-job (another job), E-rendezvous-world (another number of ranks, or the
  // rank is out of range), E-rendezvous-addresses (another list of ranks), E-rendezvous-rank (the rank is
  // taken, or has been and is gone).
  Status Enter(const Hello& hello);
  // Handles a message of an accepted rank. A hello is answered once all ranks have come. Failures are
  // returned as answers: E-rendezvous-full, E-rendezvous-barrier, E-rendezvous-gone (kUnavailable).
  Answers Take(int rank, StoreMessage message);
  // Handles the end of a rank's connection. `why`: ok if closed in order.
  Answers Lose(int rank, const Status& why);

  // The number of ranks that have come and not left.
  int present() const;

 private:
  enum class Stage { kAbsent, kPresent, kLeft, kGone };
  struct Rank {
    Stage stage = Stage::kAbsent;
    std::int64_t process = 0;
  };
  struct Waiter {
    StoreVerb verb;
    std::string key;
  };
  using WaiterId = std::pair<int, std::uint64_t>;  // rank, request

  std::string NameOf(int rank) const;
  Rank& At(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& At(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  bool AllCame() const { return came_ == static_cast<int>(ranks_.size()); }
  // Why a request can never be answered; nullopt if it can.
  std::optional<Status> Hopeless(const Waiter& waiter) const;
  Answers Set(int rank, StoreMessage message);
  Answer Add(int rank, const StoreMessage& message);
  Answers AwaitOrAnswer(int rank, StoreMessage message);
  bool IsAtBarrier(int rank, const std::string& name) const;
  Answers AnswerAll(StoreVerb verb, const std::string& key, const std::string& value);
  Answers FailHopeless();
  std::string WhatLacks(const Waiter& waiter) const;
  std::string NotCome() const;
  Status Refuse(Status why);

  const std::string job_;
  const std::vector<std::string> addresses_;
  std::vector<Rank> ranks_;
  int came_ = 0;                      // ranks that have ever come
  std::optional<Status> first_end_;   // of the first rank that did not leave in order; told to the others
  std::vector<std::string> refused_;  // the most recent refusals
  std::map<std::string, std::string> values_;
  std::size_t value_bytes_ = 0;
  std::map<std::string, std::int64_t> counters_;
  std::map<WaiterId, Waiter> waiters_;
};

}  // namespace penstock::rendezvous
