// One parameter server, whatever carries its messages and runs its work: it opens envelopes, asks the state
// machine, and carries out what that decides on the chunk store. The simulator and the server process run
// this object.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, Pserver::Make(program, op, scope, ops, blocks, options));
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(server->address(), *server));
//   ... until server->Ended()
//
// Thread-safe. Work (merges of large gradients, blocks) goes to options.run and may run in parallel. Memory
// that runs out on the way ends the job with E-run-memory, and the trainers are told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/protocol/contract.h"
#include "executor/protocol/envelope.h"
#include "executor/pserver/admission.h"
#include "executor/pserver/checkpoint_folder.h"
#include "executor/pserver/chunk_store.h"
#include "executor/pserver/state_machine.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/line_limiter.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

struct PserverOptions {
  std::string job;  // name; trainers of another job are refused
  // Whether who connects has proved that it belongs to the job. If not, anybody could have sent a hello: one
  // that does not fit is refused, and who goes before it has sent a gradient or a first value was never
  // there.
  bool proven = true;
  // Where trainer 0 may have tables saved (checkpoint_notify).
  std::string checkpoint_folder = ".";
  std::optional<std::size_t> chunk_bytes;  // as of ChunkStore::Make
  std::size_t part_bytes = kMaxBodyBytes;
  std::size_t inline_bytes = std::size_t{16} << 10;  // gradients up to this are merged where they arrive
  std::function<void(std::function<void()>)> run;    // runs a piece of work later, never inside the call
  std::function<void()> on_end;                      // called once, when Ended() has become true
  std::function<void(const std::string&)> report;    // a line for the user
  std::function<void(const std::string&)> warn;      // one about a failure; empty: report
  // Called when a trainer's failure, not one of this server's, ends the job; may be empty.
  std::function<void(const Status&)> on_reaction;
  Clock* clock = &SystemClock();
};

class Pserver : public ConnectionHandler {
 public:
  static Result<std::unique_ptr<Pserver>> Make(const Program& program, const Op& listen_and_serv,
                                               Scope& scope, const OpRegistry& ops, BlockRunner& blocks,
                                               PserverOptions options);

  const std::string& address() const { return facts_.address; }
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;
  // Once a second or so: reports who is waited for, and whom its trainers wait for.
  void Tick();
  void Fail(const Status& why);
  // Why it ended (ok: all trainers completed); nothing while it serves.
  std::optional<Status> Ended() const;
  // After the end: whether last replies are under way, or, after an error, a trainer has yet to come and hear
  // of it. False 10 s after the end, whoever does not read or come.
  bool HasListeners() const;

 private:
  struct Trainer {
    std::shared_ptr<Connection> connection;  // null: not there
    Nanoseconds heard{0};
    Nanoseconds active{0};  // its last message that was no question
    std::string waits_for;  // as it said last
    Nanoseconds waits_said{0};
    bool worked = false;  // it has sent what the job depends on
  };
  struct Caller {  // of one message
    const std::shared_ptr<Connection>& connection;
    const protocol::Envelope& envelope;
    const Message& message;
  };

  Pserver(roles::ServerRole facts, BlockRunner& blocks, PserverOptions options);
  // Runs `work`; memory that is short, or runs out in it, ends the job with E-run-memory.
  template <typename Work>
  void Guard(const Work& work);
  PserverOptions Guarded(PserverOptions options);  // what runs later is guarded, too
  void FailForMemory();
  void Receive(const std::shared_ptr<Connection>& from, const Message& message);
  void Closed(const std::shared_ptr<Connection>& from, const Status& why);
  void ReportAwaited();
  void OnHello(const Caller& caller, Actions& actions);
  void Welcome(int trainer, std::uint64_t contract);  // which of its two contracts it has shown
  void Dispatch(const Caller& caller, Actions& actions);
  void OnPush(const Caller& caller, Actions& actions);
  void OnEndStep(const Caller& caller, Actions& actions);
  void OnPullRows(const Caller& caller, Actions& actions);
  void OnPull(const Caller& caller, Actions& actions);
  void OnSave(const Caller& caller, Actions& actions);
  void OnAsk(const Caller& caller);
  void Refuse(const std::shared_ptr<Connection>& connection, const Status& why);
  bool Forget(int trainer);
  Status CheckAlone(const Caller& caller) const;
  void Execute(Actions actions);
  void OnEnd(const Status& why);
  void Start(const MergeAction& merge, Actions& actions);
  void Start(const SaveAction& action);
  void Tell(const LeftAction& left);
  void Reply(const ReplyAction& reply);
  void ReplyRows(const ReplyAction& reply);
  void SendParts(int trainer, protocol::Envelope envelope, const Tensor& value);
  void ReplyChunk(const ReplyAction& reply);
  void SendTo(int trainer, protocol::Envelope envelope, Payload body);
  std::string Lacking(int param, int chunk) const;
  // Another trainer's failure, or its loss, ends the job.
  void React(int trainer, const Status& why, Actions& actions);
  std::string TrainersWaiting(Nanoseconds now) const;

  const roles::ServerRole facts_;
  BlockRunner& blocks_;
  const PserverOptions options_;

  mutable std::mutex mutex_;
  std::unique_ptr<ChunkStore> store_;
  std::unique_ptr<StateMachine> machine_;
  Admission admission_;
  std::vector<Trainer> trainers_;  // by id
  std::map<Connection*, int> trainer_of_;
  std::set<Connection*> refused_;  // that are still there
  LineLimiter strangers_;
  CheckpointFolder checkpoints_;
  std::optional<Status> ended_;
  Nanoseconds started_{0};
  Nanoseconds reported_{0};
  Nanoseconds ended_at_{0};
};

}  // namespace penstock::pserver
