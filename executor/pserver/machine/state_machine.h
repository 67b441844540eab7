// A parameter server's decisions, as a state machine: events in, actions out. It computes nothing, waits for
// nothing, and uses no network, clock or thread; the simulator and the server run the same object.
//
//   StateMachine machine(config, std::make_unique<SyncPolicy>());  // policies/
//   Actions actions;
//   machine.Push({.trainer = 1, .param = 0, .chunk = 2, .step = 7, .part = 0, .bytes = body}, actions);
//   for (const Action& action : actions) ...          // MergeAction, RunAction, ReplyAction ...
//
// It keeps a ChunkLedger and asks an UpdatePolicy. The unit is the chunk: rows of one parameter piece. A
// chunk's version counts its updates; the policy decides which gradients make one. The machine itself
// implements what is the same in every mode:
//
// Only one thing at a time happens to a chunk: a merge, a block, or the setting of a value. The learning-rate
// block runs when the policy says that nothing needs the previous rate. A repeated message is answered again
// and changes nothing.
//
// If gradients are clipped by a norm over all of them, a chunk whose version is complete is measured first;
// when all such chunks are measured, the servers exchange their measures; then one block computes what all
// updates need, and the updates run (sum_exchange.h). If another server dies, the job ends.
//
// A gradient may be selected rows of a table; a chunk is then the table, or one of its shards. It states its
// length; in sync mode every trainer sends one in each step, even without rows. Single rows of a table are
// requested by version, as chunks are.
//
// For a checkpoint each chunk is copied when it reaches the checkpoint's step (cut_progress.h). The copies
// are written while training continues; one checkpoint is made at a time. A trainer's full log brings one
// ahead of the interval.
//
// A server that was started again begins with the version of its last checkpoint, and gets the steps since
// then again.
//
// A held parameter is never updated: trainer 0 pushes its initial value once, and every version of it is that
// value. Pulls wait until it is there.
//
// Version 0 is what the server's startup program made, unless trainers set initial values before their first
// step. The first value is written, the others are compared with it, and no trainer gets the chunk meanwhile.
// The first update of such a chunk waits for the value of every trainer. A trainer that begins without one is
// an error: it computed its gradients from other values.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "executor/pserver/machine/actions.h"
#include "executor/pserver/machine/chunk_ledger.h"
#include "executor/pserver/machine/cut_progress.h"
#include "executor/pserver/machine/key_cuts.h"
#include "executor/pserver/machine/sum_exchange.h"
#include "executor/pserver/machine/update_policy.h"
#include "executor/pserver/machine/vector_cut.h"
#include "framework/base/status.h"

namespace penstock::pserver {

class StateMachine {
 public:
  StateMachine(MachineConfig config, std::unique_ptr<UpdatePolicy> policy);

  // Adds a param while the job runs; its chunks have this version. Returns its number, the next one.
  int AddParam(MachineConfig::Param param, std::uint64_t version) {
    return ledger_.AddParam(std::move(param), version);
  }
  int param_count() const { return static_cast<int>(ledger_.config().params.size()); }
  const std::string& name(int param) const { return ledger_.param(param).name; }
  // The trainer's gradients of all chunks of the param are here, or taken, for steps below this.
  std::uint64_t whole_below(int param, int trainer) const;
  // The least credit of the param's chunks.
  std::uint64_t least_credit(int param, int trainer) const;

  // Messages. The caller has checked that trainers and params are in range; everything else is checked here.
  void Push(const PushEvent& push, Actions& out);
  void EndStep(int trainer, std::uint64_t step, const std::set<int>& params_pushed, Actions& out);
  // The learning-rate schedule must count this step of the trainer, once all its gradients are applied.
  void CountStep(int trainer, std::uint64_t step, Actions& out);
  void Pull(int trainer, int param, int chunk, std::uint64_t version, Actions& out);
  void PullRows(const RowsEvent& pull, Actions& out);
  void Save(const SaveEvent& save, Actions& out);
  void Complete(int trainer, Actions& out);
  // The trainer's log is nearly full, after it has ended the steps below `step` (protocol::RequestCut).
  void RequestCut(int trainer, std::uint64_t step, Actions& out);
  // The worker is at a cut of this name, and has pushed the keys so often (protocol::CutKeys).
  void CutKeys(int worker, std::uint64_t name, const KeyCuts::Pushes& pushes, Actions& out);
  // A trainer has come, with this open step.
  void Joined(int trainer, std::uint64_t step);
  bool gone(int trainer) const {  // it has completed, or the others go on without it
    return completed(trainer) || ledger_.trainer(trainer).lost;
  }
  // The trainer has died before it completed, and the others wait for a new process, or go on without it.
  void Lose(int trainer, Actions& out);
  // A new process takes the trainer's place. What has come of its incomplete step is dropped, except
  // gradients that are merged: those it sends again are recognised.
  void Return(int trainer, Actions& out);
  // A new process of a trainer begins at this step, because another server is so far. Only before its first
  // gradient.
  void BeginAt(int trainer, std::uint64_t step, Actions& out);
  // The trainer has failed or died before it completed, which ends the job.
  void Gone(int trainer, const Status& why, Actions& out);
  // The highest version whose updates may have begun.
  std::uint64_t steps_begun() const;
  // Until StopAt or CutAt no update begins beyond those of the returned version, which is so far ahead of
  // those that may have begun.
  std::uint64_t HoldUpdates(std::uint64_t ahead = 0);
  // Of asynchronous training: the name of the next checkpoint by the interval.
  std::uint64_t next_cut() const { return vector_.next(); }
  // The servers have agreed on a checkpoint of this version, at least the returned one; updates go on. False:
  // another one is being made; try again.
  bool CutAt(std::uint64_t version, Actions& out);
  // No update begins beyond those of this version, at least the returned one; a checkpoint of it is made.
  void StopAt(std::uint64_t version, Actions& out);
  // Ends the job: an error of ours, or a cancellation.
  void Fail(const Status& why, Actions& out);

  // Messages of other servers with which sums are exchanged (state_machine_sums.cc).
  void TakeSums(int server, std::uint64_t step, Payload sums, Actions& out);
  void SumsTaken(int server, std::uint64_t step, Actions& out);
  void ServerCompleted(int server, Actions& out);
  void ServerGone(int server, const Status& why, Actions& out);

  // Results of actions.
  void MeasureDone(int param, int chunk, const Status& status, Actions& out);
  void CombineDone(const Status& status, Actions& out);
  void MergeDone(int param, int chunk, Actions& out);
  void BlockDone(int param, int chunk, const Status& status, Actions& out);
  void SaveDone(const SaveEvent& save, const Status& status, Actions& out);
  void CutCopied(Actions& out);
  void CutWritten(const Status& status, Actions& out);  // an error ends the job

  bool ended() const { return ended_; }
  bool completed(int trainer) const { return ledger_.trainer(trainer).completed; }
  std::uint64_t steps_ended(int trainer) const { return ledger_.trainer(trainer).steps_ended; }
  // Where a new process of the trainer may continue. A server that updates nothing does not know it:
  // protocol::kAnyStep.
  std::uint64_t continues_at(int trainer) const;
  TrainerLoss trainer_loss() const { return ledger_.config().trainer_loss; }
  std::uint64_t version(int param, int chunk) const { return ledger_.chunk({param, chunk}).version(); }
  // The trainer's gradients of this chunk are welcome for steps below this.
  std::uint64_t credit(int param, int chunk, int trainer) const {
    return WelcomeBelow({param, chunk}, trainer);
  }
  int backup_trainers() const { return ledger_.config().backup_trainers; }
  // The number of steps whose gradients came too late to be merged.
  std::uint64_t late_steps(int trainer) const { return policy_->LateSteps(trainer); }
  bool by_turn(int param) const { return ledger_.param(param).by_turn; }
  // Tells a trainer that has just come what it may push of a param by turn, chunk by chunk, if anything.
  void TellCredit(int param, int trainer, Actions& out);
  std::uint64_t repeats() const { return repeats_; }  // number of duplicate pushes, dropped
  // The trainers whose gradients the next version of this chunk lacks.
  std::vector<int> Lacks(int param, int chunk) const;
  // Whether the chunk's next version waits for the measures of other servers (sums().Lacks()).
  bool WaitsForSums(int param, int chunk) const {
    return ledger_.param(param).clips && ledger_.chunk({param, chunk}).measured();
  }
  const SumExchange& sums() const { return sums_; }
  // The newest version in a checkpoint, sent in every reply; 0: none. In asynchronous training, the number of
  // this trainer's steps in one.
  std::uint64_t durable_version(int trainer) const {
    return by_trainer() ? vector_.durable[static_cast<std::size_t>(trainer)] : durable_version_;
  }
  // Of a server that was started again: whether it has the steps that trainers had ended when they came.
  bool HasCaughtUp() const;

 private:
  bool IsStart(int param) const { return ledger_.param(param).start; }
  std::uint64_t WelcomeBelow(ChunkId at, int trainer) const;
  void PushGradient(const PushEvent& push, Actions& out);
  void PushStart(const PushEvent& push, Actions& out);
  void PushInitial(const PushEvent& push, Actions& out);
  bool StartInitial(ChunkId at, Actions& out);
  bool HasAllInitial(ChunkId at, Actions& out);
  void TellWhoLeft(Actions& out);
  void Acknowledge(const PushEvent& push, std::uint64_t welcome_below, Actions& out);
  void Advance(ChunkId at, Actions& out);
  void AdvanceAll(Actions& out);
  void StartMerge(ChunkId at, const Turn& turn, Actions& out);
  void StartBlock(ChunkId at, Actions& out);
  bool MayUpdate(ChunkId at, Actions& out);
  void CombineIfWhole(Actions& out);
  void StartRate(Actions& out);
  void CountWhatIsDue(Actions& out);
  void StartThoseThatWaitForTheRate(Actions& out);
  bool PassOver(int trainer, std::uint64_t step, int param, Actions& out);
  void AnswerWaiting(ChunkId at, Actions& out);
  void TellWelcome(ChunkId at, Actions& out);
  void TellCredit(ChunkId at, int trainer, Actions& out);
  void GiveTurns(int param, Actions& out);
  void GiveAllTurns(Actions& out);
  void RequireStarter(ChunkId at, Actions& out);
  void StartSave(int param, Actions& out);
  void AnswerSave(int trainer, std::uint32_t request, Actions& out);
  void Leave(int trainer, Actions& out);
  void ForgetRequests(int trainer);
  std::uint64_t FindStep(int trainer) const;
  Status CanRepeat(int trainer, std::uint64_t step) const;
  void EndIfDrained(Actions& out);
  void Cut(ChunkId at, std::uint64_t step, Actions& out);
  void CutIfDue(ChunkId at, bool all_are_there, Actions& out);
  void CutTheRest(std::uint64_t step, Actions& out);
  void CutIfIdle(Actions& out);
  void CutIfStopped(Actions& out);
  void PlanCut(std::uint64_t version, Actions& out);
  void CutThoseAt(std::uint64_t version, Actions& out);

  // Checkpoints of asynchronous training (state_machine_vector_cuts.cc).
  bool by_trainer() const { return !ledger_.config().starts.empty(); }
  std::uint64_t FirstDurable(int trainer) const {
    const MachineConfig::Start& start = ledger_.config().starts[static_cast<std::size_t>(trainer)];
    return start.Durable(ledger_.config().counts_steps);
  }
  std::uint64_t StepsToBeIn(int trainer) const;
  bool WouldFreeALog() const;
  std::uint64_t LowStep() const;
  bool ValuesAreSet() const;
  bool HoldsUpdate(ChunkId at) const;
  void CutVectorIfDue(Actions& out);
  void BeginVector(std::uint64_t name, Actions& out);
  void CutIfReached(ChunkId at, Actions& out);
  void CutTheRestOfVector(Actions& out);
  void VectorWritten(Actions& out);
  bool HasCaughtUpByTrainer() const;

  // Checkpoints of keys (state_machine_key_cuts.cc).
  bool IsInKeyCuts(int param) const;
  void CutKeyIfReached(ChunkId at, Actions& out);
  void CutKeysIfDue(Actions& out);
  void WriteKeysIfWhole(Actions& out);
  void KeysWritten(Actions& out);

  ChunkLedger ledger_;
  const std::unique_ptr<UpdatePolicy> policy_;
  SumExchange sums_;
  std::uint64_t repeats_ = 0;
  std::uint64_t rate_runs_ = 0;  // runs of the learning-rate block
  bool rate_running_ = false;
  std::set<ChunkId> wait_for_rate_;  // chunks with complete versions
  CutProgress cut_;
  std::uint64_t durable_version_ = 0;
  std::set<ChunkId> wait_for_cut_;  // chunks with complete versions
  VectorCut vector_;
  KeyCuts key_cuts_;
  bool key_cut_is_whole_ = false;  // all chunks have its rounds, and it is not written yet
  bool holds_updates_ = false;     // of asynchronous training: the job is about to stop
  std::uint64_t idle_steps_ = 0;   // of a server without updates: the steps that need no checkpoint any more
  std::optional<std::uint64_t> stop_at_;  // a version, until its checkpoint is begun
  std::size_t busy_ = 0;                  // merges, measures, blocks, saves and copies in progress
  int completed_ = 0;                     // trainers, not counting those that left
  bool ended_ = false;
};

}  // namespace penstock::pserver
