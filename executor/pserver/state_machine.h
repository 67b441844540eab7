// A parameter server's decisions, as a state machine: events in, actions out. It computes nothing, waits for
// nothing, and knows no network, clock or thread; the simulator and the server run the same object.
//
//   StateMachine machine(config, std::make_unique<SyncPolicy>());  // policies/
//   Actions actions;
//   machine.Push({.trainer = 1, .param = 0, .chunk = 2, .step = 7, .part = 0, .bytes = body}, actions);
//   for (const Action& action : actions) ...          // Merge, RunBlock, Reply, Save, Left, End ...
//
// It keeps a ChunkLedger and asks an UpdatePolicy. The unit is the chunk: rows of one parameter piece. Its
// version counts its updates; which gradients make one is the policy's answer. What is the same in every mode
// stands here:
//
// One thing at a time happens to a chunk: a merge, a block, or a value that is set. The learning-rate block
// runs when the policy says that nothing needs the rate of before. A repeated message is answered again and
// changes nothing.
//
// Where gradients are clipped by a norm over all of them, a chunk whose version is whole is measured first;
// when all that clip are, the servers tell each other what they have measured; then one block computes what
// all updates need of it, and the updates run (sum_exchange.h). Another server that dies ends the job.
//
// A gradient may be rows: of a table, which is one chunk. It says itself how long it is, and every trainer
// sends one each step, if with no rows. Single rows of a table are asked for by version, as chunks are.
//
// An initial value is a parameter that is never updated: trainer 0 pushes it once, and every version of it is
// that one. Pulls wait until it is there.
//
// Version 0 is what the server's startup program made, unless trainers push an initial value before their
// first step. The first that comes is written, the others are compared with it, and nobody gets a chunk while
// that lasts. The first update of such a chunk waits for the value of every trainer. One that begins without
// any is an error: it computed its gradients from other values.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "executor/pserver/actions.h"
#include "executor/pserver/chunk_ledger.h"
#include "executor/pserver/sum_exchange.h"
#include "executor/pserver/update_policy.h"
#include "framework/base/status.h"

namespace penstock::pserver {

class StateMachine {
 public:
  StateMachine(MachineConfig config, std::unique_ptr<const UpdatePolicy> policy);

  // Messages. Trainers and params are in range; everything else is checked here.
  void Push(const PushEvent& push, Actions& out);
  void EndStep(int trainer, std::uint64_t step, const std::set<int>& params_pushed, Actions& out);
  // The learning rate's schedule is to count this step of the trainer, once all its gradients are applied.
  void CountStep(int trainer, std::uint64_t step, Actions& out);
  void Pull(int trainer, int param, int chunk, std::uint64_t version, Actions& out);
  void PullRows(const RowsEvent& pull, Actions& out);
  void Save(const SaveEvent& save, Actions& out);
  void Complete(int trainer, Actions& out);
  // The trainer is dead (and had not completed), so the job ends.
  void Gone(int trainer, const Status& why, Actions& out);
  // Ends everything: an error of ours, or the user's wish.
  void Fail(const Status& why, Actions& out);

  // Messages of another server with which sums are exchanged (state_machine_sums.cc).
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

  bool ended() const { return ended_; }
  bool completed(int trainer) const { return ledger_.trainer(trainer).completed; }
  std::uint64_t steps_ended(int trainer) const { return ledger_.trainer(trainer).steps_ended; }
  std::uint64_t version(int param, int chunk) const { return ledger_.chunk({param, chunk}).version(); }
  // The trainer's gradients of this chunk are welcome for steps below it.
  std::uint64_t credit(int param, int chunk, int trainer) const {
    return WelcomeBelow({param, chunk}, trainer);
  }
  int backup_trainers() const { return ledger_.config().backup_trainers; }
  // Steps whose gradients came too late to be merged.
  std::uint64_t late_steps(int trainer) const { return ledger_.quorum().late_steps(trainer); }
  bool by_turn(int param) const { return ledger_.param(param).by_turn; }
  // What the trainer may push of a param by turn, chunk by chunk, where that is anything: for one that comes.
  void TellCredit(int param, int trainer, Actions& out);
  std::uint64_t repeats() const { return repeats_; }  // pushes that came again, and were dropped
  // Whose gradient the next version of this chunk lacks.
  std::vector<int> Lacks(int param, int chunk) const;
  // The chunk's next version waits for what other servers measure (sums().Lacks()).
  bool WaitsForSums(int param, int chunk) const {
    return ledger_.param(param).clips && ledger_.chunk({param, chunk}).measured();
  }
  const SumExchange& sums() const { return sums_; }
  // The newest version that a checkpoint holds, for every reply; 0: none.
  std::uint64_t durable_version() const { return 0; }

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
  void EndIfDrained(Actions& out);

  ChunkLedger ledger_;
  const std::unique_ptr<const UpdatePolicy> policy_;
  SumExchange sums_;
  std::uint64_t repeats_ = 0;
  std::uint64_t rate_runs_ = 0;  // of the learning-rate block
  bool rate_running_ = false;
  std::set<ChunkId> wait_for_rate_;  // whole versions
  std::size_t busy_ = 0;             // merges, measures, blocks and saves under way
  int completed_ = 0;                // trainers; those that left are not counted any more
  bool ended_ = false;
};

}  // namespace penstock::pserver
