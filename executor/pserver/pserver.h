// One parameter server, independent of what delivers its events and runs its work: it identifies trainers by
// their callers, asks the state machine, and applies its decisions to the chunk store. The simulator and the
// server process run the same object.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, Pserver::Make(program, op, scope, ops, blocks, options));
//   NativeService service(*server);
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(server->address(), service));
//   server->MeetServers(dialer);                      // if it exchanges sums with other servers
//   ... until server->Ended()
//
// Thread-safe. It only decides under the lock: work on the memory of a chunk (merges, blocks, copies for
// trainers, saves) is a job on that chunk's queue (chunk_queues.h), which options.run executes; chunks
// proceed in parallel. If memory runs out, the job ends with E-run-memory, and the trainers are told.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/observe/report_times.h"
#include "executor/protocol/contract.h"
#include "executor/protocol/events.h"
#include "executor/pserver/checkpoint_folder.h"
#include "executor/pserver/checkpoints.h"
#include "executor/pserver/cut_clock.h"
#include "executor/pserver/job_notes.h"
#include "executor/pserver/key_checkpoints.h"
#include "executor/pserver/machine/admission.h"
#include "executor/pserver/machine/keys.h"
#include "executor/pserver/machine/state_machine.h"
#include "executor/pserver/memory/chunk_queues.h"
#include "executor/pserver/memory/chunk_store.h"
#include "executor/pserver/other_servers.h"
#include "executor/pserver/portion_queue.h"
#include "executor/pserver/server_trace.h"
#include "executor/pserver/service/service.h"
#include "executor/pserver/service/wire.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/disk.h"
#include "framework/runtime/line_limiter.h"
#include "framework/runtime/process_id.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

struct PserverOptions {
  std::string job;  // name; trainers of other jobs are refused
  // Whether connections prove that they belong to the job. If not, anyone could send a hello: one that does
  // not match is refused without effect, and a peer that leaves before it has sent a gradient, an initial
  // value or the end of a step is forgotten.
  bool proven = true;
  // The folder in which trainer 0 may have tables and slices of params saved (checkpoint_notify).
  std::string checkpoint_folder = ".";
  CheckpointOptions checkpoints;           // of the whole job
  std::optional<std::size_t> chunk_limit;  // as in ChunkStore::Make
  std::size_t part_bytes = kMaxBodyBytes;
  TableShards table_shards;
  // Merges and answers up to this size run on the thread that causes them, once the lock is free.
  std::size_t inline_bytes = std::size_t{16} << 10;
  // Limit for gradients that wait here before their turn or are in flight (one chunk is always allowed);
  // those up to inline_bytes do not count. The default is what a network carries while credit is in flight.
  std::size_t early_bytes = std::size_t{8} << 20;
  std::function<void(std::function<void()>)> run;  // must run the work later, never inside the call
  // The same for writing checkpoints, which must not delay the rest; empty: run.
  std::function<void(std::function<void()>)> aside;
  std::function<void()> on_end;                    // called once, when Ended() has become true
  std::function<void(const std::string&)> report;  // prints a line for the user
  std::function<void(const std::string&)> warn;    // prints a line about a failure; empty: report
  // Called when the failure of a trainer or of another server ends the job; may be empty.
  std::function<void(const Status&)> on_reaction;
  Clock* clock = &SystemClock();
  Disk* disk = &SystemDisk();
  Nanoseconds report_after = observe::kReportAfter;  // first report of a wait; then at each doubling
  // After this time, the job ends if a trainer, or another server with which this one exchanges sums, has not
  // come.
  Nanoseconds start_deadline = std::chrono::minutes(15);
  Nanoseconds resend_after = std::chrono::seconds(1);  // for unacknowledged messages to other servers
  // How long a trainer, or another server, may be out of reach before it counts as gone. It is gone at once
  // if its process has ended, as far as this host can see. 0: a connection that breaks is the end.
  Nanoseconds reconnect_deadline{0};
  // What the death of a trainer means. If the others do not end, its new process is welcome, which has a
  // greater incarnation. After start_deadline without one, the job ends (kWait). Only in synchronous jobs of
  // one program, without backup trainers.
  TrainerLoss trainer_loss = TrainerLoss::kAbort;
  std::function<ProcessState(const std::string&)> state_of = StateOfProcess;
  // Called at the start if this server cannot be started again by itself, although the job does so: why. May
  // be empty.
  std::function<void(const std::string&)> on_fixed;
  // Called when this server, started again by itself, has the steps again that trainers had ended; may be
  // empty.
  std::function<void(const std::string&)> on_back;
  // Called when a connection was lost; Tick should then be called every few milliseconds for a second. May be
  // empty.
  std::function<void()> on_lost;
  observe::Observer* observer = nullptr;  // records and counts what it does; may be null
};

// A server of a key-value store: it has no program, and its params are the keys that its workers declare.
struct KeyServerFacts {
  std::string address;
  int workers = 1;
  const OpRegistry* ops = nullptr;  // of optimizers that are programs, and of tables; null: both are refused
};

class Pserver : public EventHandler, public ReplyHandler {
 public:
  static Result<std::unique_ptr<Pserver>> Make(const Program& program, const Op& listen_and_serv,
                                               Scope& scope, const OpRegistry& ops, BlockRunner& blocks,
                                               PserverOptions options);

  static Result<std::unique_ptr<Pserver>> MakeForKeys(const KeyServerFacts& facts, BlockRunner& blocks,
                                                      PserverOptions options);

  const std::string& address() const { return facts_.address; }
  const std::string& job_facts() const { return facts_.job_facts; }
  // Whether it would admit the trainer that sends this hello.
  bool Fits(const protocol::Sender& sender, const protocol::HelloBody& hello) const;
  // Whether a trainer has come.
  bool HasCome() const;
  struct Progress {
    std::uint64_t steps_ended = 0;
    bool waits = false;  // it has said so, and nothing else since
    Nanoseconds heard{0};
  };
  // By trainer; empty if trainers do not wait for each other's steps.
  std::vector<Progress> ProgressOfTrainers() const;
  std::string Title() const;  // "the program that updates w, b and 3 more"
  Served served() const;      // without `run`
  void OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
               protocol::Event event) override;
  void OnEvents(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                std::vector<protocol::Event> events) override;
  void OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnClosed(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnNoMemory() override { FailForMemory(); }
  void OnReply(const std::shared_ptr<Callee>& from, protocol::Reply reply) override;
  void OnUnreadableReply(const std::shared_ptr<Callee>& from, const Status& why) override;
  void OnCalleeClosed(const std::shared_ptr<Callee>& from, const Status& why) override;
  // Call once if the program exchanges sums: connects to the other servers. The dialer must end its calls
  // (EndAll) before this object is destroyed.
  void MeetServers(Dialer& dialer);
  bool meets_servers() const { return facts_.exchange.servers.size() > 1; }
  // Call about once a second: reports awaited trainers, and what the trainers wait for.
  void Tick();
  void Fail(const Status& why);
  // Why it ended (ok: all trainers completed); nullopt while it serves.
  std::optional<Status> Ended() const;
  // After the end: whether a trainer or another server may still need its last reply (for 5 s at most) or,
  // after an error, a trainer that has not come yet must be told (for 9 s at most).
  bool HasListeners() const;

 private:
  struct Lost {
    Nanoseconds at{0};
    std::string how;
  };
  struct Trainer {
    std::shared_ptr<Caller> caller;  // null: not there
    std::string process;             // as its hello describes it
    std::optional<Lost> lost;        // its connection has broken; it may come back
    std::optional<Lost> dead;        // its process has ended; a new one may come
    Nanoseconds heard{0};
    Nanoseconds active{0};                // when it last made progress
    std::pair<std::uint64_t, int> place;  // its progress: a step, and how much of it was sent
    std::string waits_for;                // its last report; empty: it has made progress since
    bool worked = false;                  // it has sent something on which the job depends
  };
  struct From {  // the sender of one event; the trainer is one of ours unless the event is a hello
    const std::shared_ptr<Caller>& caller;
    const protocol::Sender& sender;
    int trainer;
    RowIds row_ids = {};  // of a PullRows; copied before the lock is taken
  };

  Pserver(roles::PserverFacts facts, BlockRunner& blocks, PserverOptions options);
  Status RequireBackups(const MachineConfig& config) const;
  Status RequireReturns(int backup_trainers) const;
  // Continues from a checkpoint, if options_ say so; returns the names of the values from it.
  Result<std::set<std::string>> BeginCheckpoints(const Program& program, int backup_trainers, Scope& scope);
  // Runs `work`; if memory is short, or runs out in it, the job ends with E-run-memory.
  template <typename Work>
  void Guard(const Work& work);
  // The same for work that decides: under the lock. Small jobs that it starts run afterwards.
  template <typename Work>
  void Decide(const Work& work);
  PserverOptions Guarded(PserverOptions options);  // guards work that runs later
  void FailForMemory();
  void OnEnd(const Status& why);
  void End(const Status& why);
  Trainer& At(int trainer) { return trainers_[static_cast<std::size_t>(trainer)]; }
  const Trainer& At(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)]; }

  // Starting again by itself (pserver_recovery.cc).
  bool Recovers() const;
  void BeginRecovery(MachineConfig& config);
  void ReportIfBack();
  void ReportBackByTrainer();

  // Trainers that come and leave (pserver_trainers.cc).
  void On(const From& from, const protocol::Hello& hello, Actions& actions);
  void TurnAway(const From& from, const Status& why, Actions& actions);
  void Welcome(int trainer, std::uint64_t contract);  // `contract`: the hash in its hello
  void Unreadable(const std::shared_ptr<Caller>& from, const Status& why);
  void Refuse(const std::shared_ptr<Caller>& caller, const Status& why);
  bool Forget(int trainer);
  Status CheckAlone(const From& from) const;
  void Replace(int trainer, const std::shared_ptr<Caller>& caller);
  bool MayComeBack(int trainer) const;
  Status GoneError(int trainer, const std::string& how) const;
  void GiveUpLost();
  void Closed(const std::shared_ptr<Caller>& from, const Status& why);
  // A trainer has died.
  void Lose(int trainer, const std::string& how, const Status& why, Actions& actions);
  bool MayReturn(const protocol::Sender& sender) const;
  void Return(int trainer, Actions& actions);
  void GiveUpDead(Nanoseconds now);
  // The failure of a trainer ends the job.
  void React(int trainer, const Status& why, Actions& actions);

  // Messages of admitted trainers (pserver_events.cc).
  bool IsOfTrainer(const From& from, const protocol::Event& event);
  void On(const From& from, const protocol::Push& push, Actions& actions);
  void On(const From& from, const protocol::EndStep& end, Actions& actions);
  void On(const From& from, const protocol::CountStep& count, Actions& actions);
  void On(const From& from, const protocol::Pull& pull, Actions& actions);
  void On(const From& from, const protocol::PullRows& pull, Actions& actions);
  void On(const From& from, const protocol::PullChanged& pull, Actions& actions);
  void On(const From& from, const protocol::Save& save, Actions& actions);
  void On(const From& from, const protocol::Ask& ask, Actions& actions);
  void On(const From& from, const protocol::Complete&, Actions& actions);
  void On(const From& from, const protocol::RequestCut& request, Actions& actions);
  void On(const From& from, const protocol::Failure& failure, Actions& actions);

  void On(const From& from, const protocol::Sums&, Actions& actions);

  // Keys of a key-value store (pserver_keys.cc).
  void On(const From& from, const protocol::DeclareKey& declare, Actions& actions);
  void On(const From& from, const protocol::SetOptimizer& set, Actions& actions);
  void On(const From& from, const protocol::Barrier& barrier, Actions& actions);
  void On(const From& from, const protocol::CutKeys& cut, Actions& actions);
  void On(const From& from, const protocol::CountGone& count, Actions& actions);
  Status BeginKeyCheckpoints();
  Result<std::optional<KeyCheckpoints::Kept>> KeptOf(const protocol::KeyBody& key);
  Status ContinueKey(int param, KeyCheckpoints::Kept kept);
  Status ContinuesWith(const kvstore::KeyOptimizer& optimizer, int param) const;
  void StartKeyCut(const CutAction& cut);
  void WriteKeyCut(const WriteCutAction& write);
  Result<int> AddKey(const protocol::KeyBody& key);
  Result<std::shared_ptr<const kvstore::KeyTable>> TableOf(const protocol::KeyBody& key) const;
  bool TakesOptimizer(int param) const;
  Status TakeOptimizer(const protocol::SetOptimizer& set);
  void StartUpdates(int param, bool keeps_state);
  void EndBarriers();
  void DropKey(int param);
  void RefuseKeys(const From& from);
  std::string LackingBarrier() const;
  bool ServesKeys() const { return keys_ != nullptr; }

  // Other servers (pserver_servers.cc).
  void On(const From& from, const protocol::ServerHello& hello, Actions& actions);
  void OnServer(int server, const protocol::Event& event, Actions& actions);
  void TakeSums(int server, const protocol::Sums& sums, Actions& actions);
  bool ForgetServer(int server);
  void Replied(int server, const protocol::Reply& reply, Actions& actions);
  void CalleeClosed(int server, const Status& why);
  void ServerClosed(int server, const std::string& how);
  std::string HowServerClosed(int server, const Status& why) const;
  void GiveUpLostServers();
  void ReactToServer(int server, const Status& why, Actions& actions);

  void Take(const From& from, const protocol::Event& event);
  // Carries out the state machine's decisions (pserver_actions.cc).
  void Execute(Actions actions);
  void Start(MergeAction merge);
  void Start(const RunAction& run);
  void SweepRows(ChunkId at);
  void Start(const MeasureAction& measure);
  void Start(const TellSumsAction& tell);
  void Start(CombineAction combine);
  void Start(const SaveAction& action);
  void Start(const CutAction& cut);
  void NoteRows(ChunkId at);
  void CopyForCheckpoint(const CutAction& cut);
  void Copied(const std::function<void()>& put);
  void CopyNextCut();
  void Start(const WriteCutAction& write);
  void CopyForSave(const SaveEvent& save, int shard, const std::shared_ptr<TableParts>& parts);
  void WriteSaved(const SaveEvent& save, TableParts& parts);
  void CopyState(const SaveEvent& save);
  void WriteState(const SaveEvent& save, const std::shared_ptr<StateCopy>& copy);
  void Saved(const SaveEvent& save, Status status);
  // For what is sent once the lock is free.
  static constexpr std::size_t kQueueOfCredits = 1;
  static_assert(kQueueOfCredits < ChunkStore::kFirstQueue);
  // The end of a job of a queue: takes the lock, and carries out the state machine's decisions.
  void Done(const std::function<void(Actions&)>& decide);
  ChunkQueues::Size SizeOf(std::size_t bytes) const {
    return bytes <= options_.inline_bytes ? ChunkQueues::Size::kSmall : ChunkQueues::Size::kLarge;
  }
  void Tell(const LeftAction& left);
  void Reply(const ReplyAction& action);
  void ReplyChunk(int trainer, const PulledReply& reply);
  void ReplyNewest(int trainer, const PulledReply& reply, const protocol::ChunkRef& at,
                   const std::shared_ptr<Caller>& to, const protocol::Sender& sender);
  void ReplyRows(int trainer, const RowsReply& reply);
  std::string TracedName(int trainer, const RowsEvent& asked) const;
  void ReplyChanged(int trainer, const RowsReply& reply);
  void SendTo(int trainer, protocol::Reply reply);
  void SendLater(int trainer, protocol::Reply reply);
  protocol::Sender SenderOf(int trainer) const;

  void LookForStop();
  std::uint64_t StartOf(int trainer) const;
  void LookForCut();
  bool CutIsDue(Nanoseconds now);
  bool HaveAllCompleted() const;

  // Reports (pserver_reports.cc).
  std::string Awaited() const;
  void ReportAwaited();
  bool EndIfStartIsLate(Nanoseconds now, const std::string& awaited);
  void ReportLate() const;
  void NoteActivity(Trainer& trainer, const protocol::Event& event);
  void NoteLacking() const;
  static std::string ListOf(const std::vector<int>& trainers);
  std::string Waits(Nanoseconds now) const;
  std::optional<ChunkId> FirstNotWhole() const;
  std::string Lacking(int param, int chunk) const;
  std::string LackingSums() const;
  std::string StateOf(int trainer) const;
  std::string TrainersWaiting(Nanoseconds now) const;

  const roles::PserverFacts facts_;
  BlockRunner& blocks_;
  const PserverOptions options_;

  mutable std::mutex mutex_;
  std::unique_ptr<ChunkStore> store_;
  std::unique_ptr<ChunkQueues> queues_;
  static constexpr std::size_t kPortionsBytes = std::size_t{64} << 20;
  PortionQueue portions_;     // of tables, on their way into a checkpoint
  std::deque<ChunkId> cuts_;  // chunks to be copied into a checkpoint
  bool copies_cuts_ = false;  // CopyNextCut goes through them
  std::unique_ptr<StateMachine> machine_;
  Admission admission_;
  OtherServers others_;
  std::vector<Trainer> trainers_;  // by id
  std::map<const Caller*, int> trainer_of_;
  std::set<const Caller*> refused_;  // callers still connected
  JobNotes notes_;
  ServerTrace trace_;
  LineLimiter strangers_;
  CheckpointFolder saves_;
  // Of a key-value store; else null.
  std::unique_ptr<Keys> keys_;
  std::unique_ptr<Program> no_program_;
  const OpRegistry* key_ops_ = nullptr;
  Scope key_scope_;
  std::shared_ptr<const kvstore::KeyOptimizer> optimizer_;  // null: pushes replace values
  std::uint64_t optimizer_resets_ = 0;                      // calls that begin states anew
  // Keys that continue from a checkpoint, by param, with the optimizer that they had then.
  struct Resumed {
    std::uint64_t since = 0;
    std::shared_ptr<const kvstore::KeyOptimizer> optimizer;
  };
  std::map<int, Resumed> resumed_;
  std::unique_ptr<KeyCheckpoints> key_saves_;  // null: it serves no keys, or makes no checkpoints
  std::unique_ptr<Checkpoints> checkpoints_;   // null: the job has none, or it serves keys
  bool coming_back_ = false;  // it was started again by itself, and lacks steps that trainers had ended
  enum class Stopping { kNo, kHolds, kKnows } stopping_ = Stopping::kNo;  // used by Tick alone
  CutClock cut_clock_;
  // Of jobs without an interval; used by Tick alone.
  bool holds_for_cut_ = false;
  std::uint64_t agreed_step_ = 0, slowest_ms_ = 0;
  std::optional<Nanoseconds> cut_began_;  // the copies of the one that is being made
  std::optional<Status> ended_;
  Nanoseconds started_{0};
  observe::ReportTimes reports_;
  Nanoseconds ended_at_{0};
};

}  // namespace penstock::pserver
