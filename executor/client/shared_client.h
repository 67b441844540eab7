// The one RpcClient of a process, shared by all its executors: a trainer is a process of a job, however many
// executors it makes.
//
//   SharedClient client(std::move(made));
//   std::unique_ptr<RpcClient> mine = client.NewUser();   // one for each executor
//   mine->Complete();                                     // close(): tells the servers if nobody else is
//   client.Complete();                                    // the process ends normally
//
// A user is in use from the first program with parameter servers that it attaches until its Complete or its
// destruction. Complete of a user tells the servers once no other user is in use. Destroying a user tells
// them nothing: an Executor that is local to a function goes with it, and training may go on.
// Thread-safe, as far as the shared client is. Must outlive its users.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "framework/runtime/rpc_client.h"
#include "framework/runtime/trainer_communicator.h"

namespace penstock::client {

class SharedClient {
 public:
  explicit SharedClient(std::unique_ptr<RpcClient> client);
  ~SharedClient();

  std::unique_ptr<RpcClient> NewUser();
  // The same for the communicator, which works for the others: it is never in use itself, so that nobody's
  // Complete waits for it.
  std::unique_ptr<RpcClient> NewHelper();
  // What its users answer for communicator(); it is stopped before this trainer completes, and outlives them.
  void set_communicator(TrainerCommunicator* communicator) { communicator_ = communicator; }
  // Completes whoever still is in use; ok at once if no program with parameter servers was ever attached.
  Status Complete();
  // Tells the servers that this trainer ends without having completed, and why. Without effect after
  // Complete.
  void Abandon(const Status& why);
  // Ends the connections and the communicator's threads, when the process is about to end. Users may be
  // destroyed after it, and no more.
  void Disconnect();

 private:
  class User;
  Status CompleteFor(const User& user);

  std::unique_ptr<RpcClient> client_;
  TrainerCommunicator* communicator_ = nullptr;
  std::mutex mutex_;  // of what follows
  std::set<const User*> in_use_;
  bool attached_ = false;  // a user was in use at some time
};

}  // namespace penstock::client
