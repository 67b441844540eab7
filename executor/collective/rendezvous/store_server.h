// The listening side of the store, in the process of rank 0: turns messages into events of a StoreTable.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, StoreServer::Listen(transport, job, addresses, report));
//   server->WaitUntilAlone(5s);        // lets the other ranks read what they need, and leave
//
// Thread-safe. The transport rejects peers that do not know the job's token, and limits what a process may
// send until its hello is accepted.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/store_table.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/line_limiter.h"
#include "framework/runtime/transport.h"

namespace penstock::rendezvous {

class StoreServer : public ConnectionHandler {
 public:
  // Listens at addresses[0]. kUnavailable E-rpc-bind, and other errors of Transport::Listen.
  // `report`: receives lines about refused processes.
  static Result<std::unique_ptr<StoreServer>> Listen(Transport& transport, const std::string& job,
                                                     const std::vector<std::string>& addresses,
                                                     std::function<void(const std::string&)> report);
  ~StoreServer() override;

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

  // Returns when all other ranks have left, or after `limit`.
  void WaitUntilAlone(Nanoseconds limit);

 private:
  StoreServer(const std::string& job, const std::vector<std::string>& addresses,
              std::function<void(const std::string&)> report)
      : table_(job, addresses), strangers_(std::move(report), &SystemClock()) {}
  // Call with the lock held.
  void Enter(const std::shared_ptr<Connection>& from, StoreMessage message);
  void Send(const StoreTable::Answers& answers);
  void Lose(int rank, const Status& why);
  // Ignores what the peer sends from now on. The caller must still end the connection.
  void Refuse(const Connection* from, const Status& why);

  std::mutex mutex_;
  std::condition_variable changed_;
  StoreTable table_;
  LineLimiter strangers_;
  static constexpr int kRefused = -1;
  std::map<const Connection*, int> rank_of_;
  std::map<int, std::shared_ptr<Connection>> connections_;
  std::unique_ptr<Listener> listener_;  // destroyed first, because it calls this object
};

}  // namespace penstock::rendezvous
