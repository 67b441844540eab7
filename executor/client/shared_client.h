// The one RpcClient of a process, shared by all its executors: to the job a process is one trainer, however
// many executors it makes.
//
//   SharedClient client(std::move(made));
//   std::unique_ptr<RpcClient> mine = client.NewUser();   // one for each executor
//   mine->Complete();                                     // close(): tells the servers if no other is in use
//   client.Complete();                                    // the process ends normally
//
// A user is in use from the first program with parameter servers that it attaches until its Complete or its
// destruction. A user's Complete tells the servers if no other user is in use. Destroying a user tells them
// nothing: an Executor that is local to a function is destroyed with it, and training may continue. As
// thread-safe as the shared client. Must outlive its users.
//
// With set_leaves_pulls, parameters may arrive after the run that has asked for them: everyone who reads a
// variable outside of runs calls CompleteLeftInto first.
#pragma once

#include <atomic>
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
  // The same for the communicator, which works on behalf of the others: it never counts as in use, so no
  // user's Complete is held back for it.
  std::unique_ptr<RpcClient> NewHelper();
  // Sets the users' communicator(). Stop it before this trainer completes; it must outlive the users.
  void set_communicator(TrainerCommunicator* communicator) { communicator_ = communicator; }
  // Whether the users' runs may leave pulls in flight. From any thread.
  void set_leaves_pulls(bool leaves) { leaves_pulls_ = leaves; }
  // Completes all users still in use; ok at once if no program with parameter servers was ever attached.
  Status Complete();
  // Whether the servers still expect steps of this trainer: a user has been in use, and nothing has completed
  // or abandoned the trainer.
  bool open() const;
  Result<std::uint64_t> FirstStep() { return client_->FirstStep(); }  // as RpcClient
  int trainer() const { return client_->trainer(); }                  // as RpcClient
  // Tells the servers that this trainer ends without completing, and why. No effect after Complete.
  void Abandon(const Status& why);
  // Ends the connections and the communicator's threads; call when the process is about to end. Afterwards
  // users may only be destroyed.
  void Disconnect();

 private:
  class User;
  Status CompleteFor(const User& user);

  std::unique_ptr<RpcClient> client_;
  TrainerCommunicator* communicator_ = nullptr;
  std::atomic<bool> leaves_pulls_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::set<const User*> in_use_;
  bool attached_ = false;  // a user has been in use
  bool ended_ = false;     // completed or abandoned
};

}  // namespace penstock::client
