// A key-value store that all ranks of a job share, kept by rank 0 at its address: with it, ranks find each
// other, agree, and learn when one of them is gone.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto store, Store::Join(transport, {.job = "j", .rank = 1, .addresses = all}));
//   PENSTOCK_RETURN_IF_ERROR(store->Set("ring/0/address/1", "10.0.0.2:4711"));
//   PENSTOCK_ASSIGN_OR_RETURN(const std::string first, store->Get("ring/0/address/0"));  // waits for it
//   PENSTOCK_RETURN_IF_ERROR(store->Barrier("connected"));
//
// Make one Store per job and process, for the length of the job: while it lives, the others know that this
// rank is alive. Thread-safe; calls from several threads do not wait for each other.
//
// Every wait is limited, and is reported after report_after, twice and four times that, with the
// rank and address that it waits for. Cost of a call: one message to rank 0 and one back, of the value's
// size; of Join and Barrier with N ranks: N of each, without values.
//
// Errors of every call:
//   kDeadlineExceeded    E-rendezvous-timeout    names what is missing: rank 2 (10.0.0.3:6170) has not come
//   kUnavailable         E-rendezvous-gone       a rank has ended, or said why it gave up
//   kCancelled           E-rendezvous-cancelled  Cancel(), or options.interrupted
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/store_message.h"
#include "executor/collective/rendezvous/store_server.h"
#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::rendezvous {

struct StoreOptions {
  std::string job;  // its name; processes of other jobs are refused
  int rank = 0;
  std::vector<std::string> addresses;                  // of all ranks, in order; the store is at the first
  Nanoseconds start_limit = std::chrono::minutes(15);  // of Join's wait for all ranks
  Nanoseconds limit = std::chrono::minutes(10);        // of each later wait
  Nanoseconds report_after = observe::kReportAfter;
  // How long rank 0 keeps the store after it leaves, while other ranks are still there.
  Nanoseconds linger = std::chrono::seconds(5);
  std::function<void(const std::string&)> report = {};  // default: a log line
  std::function<bool()> interrupted = {};               // polled while a call waits, on its thread
  const Clock* clock = nullptr;                         // for limits and reports; null: the machine's
};

class Store : private ConnectionHandler {
 public:
  // Returns when all ranks have reached the store. Rank 0 opens it; the others retry until it listens.
  // `transport` outlives the store; it must not lose messages on open connections.
  //
  // kFailedPrecondition: E-rendezvous-job, -world, -addresses, -rank: this process does not match the others
  // (store_table.h); E-rpc-token and related. kInvalidArgument E-rendezvous-facts: no such rank.
  static Result<std::unique_ptr<Store>> Join(Transport& transport, StoreOptions options);
  // As Leave with status ok.
  ~Store() override;

  // Replaces the value. A key has 1 to 512 bytes, a value at most 4 MB (kInvalidArgument E-rendezvous-limit);
  // the store holds at most kStoreKeysMax keys and kStoreBytesMax bytes (kFailedPrecondition
  // E-rendezvous-full).
  Status Set(const std::string& key, std::string value);
  // Waits until a rank has set the key.
  Result<std::string> Get(const std::string& key);
  // Adds to a counter, initially 0; returns the sum. Counters and values have separate keys.
  Result<std::int64_t> Add(const std::string& counter, std::int64_t by);
  // Returns when all ranks are at the barrier of that name; the name can be reused afterwards. A rank may
  // make one call at a time (kFailedPrecondition E-rendezvous-barrier).
  Status Barrier(const std::string& name);

  // Tells the others that this rank has what it needs, or why it gives up, which ends their waits. Rank 0
  // waits for the others, at most options.linger. Call last.
  void Leave(const Status& why);
  // Ends the calls that wait, and all later ones. From any thread.
  void Cancel();

  int rank() const { return options_.rank; }
  int ranks() const { return static_cast<int>(options_.addresses.size()); }
  const std::vector<std::string>& addresses() const { return options_.addresses; }

 private:
  struct Call {
    bool answered = false;
    StoreMessage answer;
    std::optional<std::string> waits_for;  // according to rank 0
  };

  explicit Store(StoreOptions options);
  Status Connect(Transport& transport);
  Result<StoreMessage> Ask(StoreMessage request, const std::string& what) {
    return Ask(std::move(request), what, options_.limit);
  }
  Result<StoreMessage> Ask(StoreMessage request, const std::string& what, Nanoseconds limit);
  // Waits some milliseconds for an answer; nullopt: none yet.
  std::optional<Result<StoreMessage>> Poll(std::uint64_t id);
  std::string WhatLacks(std::uint64_t id);
  void Forget(std::uint64_t id);
  static Status CheckKey(const std::string& key);
  std::string Keeper() const;

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

  const StoreOptions options_;
  const Clock& clock_;
  std::unique_ptr<StoreServer> server_;  // rank 0's
  std::shared_ptr<Connection> connection_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Call> calls_;  // waiting calls
  std::uint64_t next_id_ = 1;
  bool cancelled_ = false, heard_ = false, left_ = false;
  std::optional<Status> closed_;  // the connection has ended
};

}  // namespace penstock::rendezvous
