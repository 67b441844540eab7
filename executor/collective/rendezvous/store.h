// Keys and values that all ranks of a job share, kept by rank 0 at its address: how ranks find each other,
// agree, and learn that one of them is gone.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto store, Store::Join(transport, {.job = "j", .rank = 1, .addresses = all}));
//   PENSTOCK_RETURN_IF_ERROR(store->Set("ring/0/address/1", "10.0.0.2:4711"));
//   PENSTOCK_ASSIGN_OR_RETURN(const std::string first, store->Get("ring/0/address/0"));  // waits for it
//   PENSTOCK_RETURN_IF_ERROR(store->Barrier("connected"));
//
// One Store per job and process, for the length of the job: while it lives the others know that this rank
// does. Thread-safe; calls of several threads do not wait for each other.
//
// Every call that waits is bounded by `limit`, and reports after report_after, twice and four times that what
// it waits for, by rank and address. Cost of a call: one message to rank 0 and one back, of the value's size;
// of Join and Barrier with N ranks: N of each, without values.
//
// Errors of every call:
//   kDeadlineExceeded    E-rendezvous-timeout    names what did not come: rank 2 (10.0.0.3:6170) has not come
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
  std::string job;  // its name; processes of another one are refused
  int rank = 0;
  std::vector<std::string> addresses;            // of all ranks, in their order; the store is at the first
  Nanoseconds limit = std::chrono::minutes(10);  // of each wait
  Nanoseconds report_after = observe::kReportAfter;
  // How long rank 0 keeps the store when it leaves, while others are still there.
  Nanoseconds linger = std::chrono::seconds(5);
  std::function<void(const std::string&)> report = {};  // default: a log line
  std::function<bool()> interrupted = {};               // asked while a call waits, on its thread
  const Clock* clock = nullptr;                         // of limits and reports; null: the machine's
};

class Store : private ConnectionHandler {
 public:
  // Returns when all ranks have come to the store, which rank 0 opens; until that listens the others try
  // again. `transport` outlives the store; its connections lose no message while they are open.
  //
  // kFailedPrecondition: E-rendezvous-job, -world, -addresses, -rank: this process does not fit the others
  // (store_table.h); E-rpc-token and its kin. kInvalidArgument E-rendezvous-facts: no such rank.
  static Result<std::unique_ptr<Store>> Join(Transport& transport, StoreOptions options);
  // As Leave(ok).
  ~Store() override;

  // Replaces what is there. A key is 1 to 512 bytes, a value at most 4 MB (kInvalidArgument
  // E-rendezvous-limit); all of them have kStoreKeysMax keys and kStoreBytesMax bytes (kFailedPrecondition
  // E-rendezvous-full).
  Status Set(const std::string& key, std::string value);
  // Waits until some rank has set it.
  Result<std::string> Get(const std::string& key);
  // Adds to a counter, which begins at 0; the sum. Counters and values do not share keys.
  Result<std::int64_t> Add(const std::string& counter, std::int64_t by);
  // Returns when all ranks are at the barrier of that name; it may be used again afterwards. One call a rank
  // at a time (kFailedPrecondition E-rendezvous-barrier).
  Status Barrier(const std::string& name);

  // Tells the others that this rank has what it needs, or why it gives up: their waits end then. Rank 0 waits
  // for the others, at most options.linger. The last call but for the destructor.
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
    std::optional<std::string> waits_for;  // as rank 0 has said
  };

  explicit Store(StoreOptions options);
  Status Connect(Transport& transport);
  Result<StoreMessage> Ask(StoreMessage request, const std::string& what);
  // Waits some milliseconds for an answer; whether there is an end to tell.
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
  std::map<std::uint64_t, Call> calls_;  // that wait
  std::uint64_t next_id_ = 1;
  bool cancelled_ = false, heard_ = false, left_ = false;
  std::optional<Status> closed_;  // the connection has ended
};

}  // namespace penstock::rendezvous
