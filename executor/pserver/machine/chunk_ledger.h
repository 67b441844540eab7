// The state of a parameter server's job: for each chunk its version, the gradients that wait for their turn,
// and the waiting pulls; for each trainer its progress. A ledger decides nothing: a StateMachine writes it,
// an UpdatePolicy reads it.
//
//   ChunkLedger ledger(config);
//   PENSTOCK_RETURN_IF_ERROR(ledger.CheckPush(push));
//   ledger.chunk({0, 2}).Collect(push, ledger.PushedBytes(push), config.part_bytes);
//   ledger.chunk({0, 2}).here(1)            // trainer 1's next gradient is whole
//
// A trainer's gradients of one chunk are taken in the order of its steps, each once. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "executor/pserver/machine/actions.h"

namespace penstock::pserver {

// The parts of one gradient or value. They may arrive in any order and more than once.
class PartSet {
 public:
  // Adds a part of `bytes` in total, cut into parts of `part_bytes`. Returns false if earlier parts gave
  // another number of rows, so this one belongs to another gradient.
  bool Add(const PushEvent& push, std::size_t bytes, std::size_t part_bytes);
  bool whole() const { return !have_.empty() && missing_ == 0; }
  // It will never come: the trainer's step has no such gradient.
  bool absent() const { return absent_; }
  void SetAbsent() { absent_ = true; }
  // Moves the parts into the action, in order.
  void MoveTo(MergeAction& merge);

 private:
  std::vector<Payload> parts_;
  std::vector<bool> have_;  // empty: no part has come
  std::size_t missing_ = 0;
  std::uint64_t rows_ = 0, largest_ = 0;
  float threshold_ = 0;
  bool absent_ = false;
};

class ChunkAccount {
 public:
  // `awaited`: the value of a held parameter, or of a key, has not come yet.
  ChunkAccount(int trainers, std::size_t bytes, bool awaited)
      : bytes_(bytes), awaited_(awaited), from_(static_cast<std::size_t>(trainers)) {}

  // A checkpoint had it in this version. `starts`, if any: with these steps of each trainer.
  void BeginAt(std::uint64_t version, const std::vector<MachineConfig::Start>& starts = {});

  std::size_t bytes() const { return bytes_; }
  bool awaited() const { return awaited_; }

  // --- The current version, and the version in progress.
  std::uint64_t version() const { return version_; }
  // Trainers' turns completed in the version in progress, including those that brought zeros.
  int merged() const { return merged_; }
  // Of these turns, those of lost trainers.
  int missing() const { return missing_; }
  void CountMissing() { ++missing_; }
  // Whether it includes a gradient, and not only zeros.
  bool fed() const { return fed_; }
  bool merging() const { return merging_; }
  bool running() const { return running_; }
  // Whether whole chunks can be sent: while a block runs, only an earlier copy can.
  bool readable() const { return !running_ || published_; }
  void Publish() { published_ = true; }

  // --- Gradients of a trainer. The next one belongs to step taken(trainer).
  std::uint64_t taken(int trainer) const { return From(trainer).taken; }
  // Its gradients of steps below this are in the current version, or were dropped for good.
  std::uint64_t applied(int trainer) const { return From(trainer).applied; }
  bool here(int trainer) const { return !From(trainer).ahead.empty() && From(trainer).ahead.front().whole(); }
  bool whole(int trainer, std::uint64_t step) const;  // and not taken yet
  // No part of any step from this one on has come.
  std::uint64_t come(int trainer) const { return taken(trainer) + From(trainer).ahead.size(); }
  // Its gradients of all steps below this are whole here, or taken.
  std::uint64_t whole_below(int trainer) const;
  // Drops what has come of the trainer's gradients from this step on, except those taken.
  void Forget(int trainer, std::uint64_t from_step);
  // The trainer was told, with its last gradient or later, that steps below this are welcome.
  std::uint64_t told(int trainer) const { return From(trainer).told; }
  void Tell(int trainer, std::uint64_t welcome_below) { From(trainer).told = welcome_below; }
  // Of the trainers whose next gradient is here() and may be taken, the one whose gradient was complete
  // first; -1: none.
  int first_here() const;
  // Until it is copied for a checkpoint, it takes only gradients of steps below these, by trainer.
  using TakeBelow = std::shared_ptr<const std::vector<std::uint64_t>>;
  void Limit(TakeBelow below) { take_below_ = std::move(below); }
  bool limited() const { return take_below_ != nullptr; }
  bool HasAllBelowTheLimit() const;
  // No value that a trainer has set is still to be written or compared.
  bool is_set() const { return !loading() && initial_.empty(); }
  // The trainer whose gradient was taken last; -1: none was.
  int last_taken() const { return last_taken_; }
  bool has_ahead() const;  // part of a gradient, of any trainer, has not been taken
  // The step must not be below taken(). Returns false as PartSet::Add.
  bool Collect(const PushEvent& push, std::size_t bytes, std::size_t part_bytes);
  // The trainer's step has no gradient of this chunk: later steps proceed without it. The step must not be
  // skipped or taken already. Returns false if more than so many steps wait for an earlier one.
  bool Skip(int trainer, std::uint64_t step, std::uint64_t waiting_max);
  // Begins to merge the trainer's next gradient, if it is here(), otherwise zeros.
  void StartMerge(MergeAction& merge);
  void EndMerge();
  // Drops the trainer's next gradient, which is here().
  void Drop(int trainer);
  // The merged gradient has been or is being measured, for a norm over all (sum_exchange.h).
  bool measured() const { return measured_; }
  void SetMeasured() { measured_ = true; }
  void StartBlock() { running_ = true; }
  void EndBlock();

  // --- Values that trainers set before their first step.
  bool loading() const { return loading_ >= 0; }                   // one is written or compared now
  const std::set<int>& initial_of() const { return initial_of_; }  // trainers whose value is the chunk's
  void CollectInitial(const PushEvent& push, std::size_t part_bytes);
  bool StartInitial(MergeAction& merge);  // false: no value is complete
  void EndInitial();

  // --- Waiting requests.
  std::set<std::pair<std::uint64_t, int>> pulls;  // version, trainer
  std::vector<RowsEvent> row_pulls;
  std::vector<SaveEvent> saves;  // while `saving`, the first is in progress
  bool saving = false;

 private:
  struct Sequence {
    std::uint64_t taken = 0;
    std::uint64_t applied = 0;  // taken, not counting the version in progress
    std::uint64_t told = 0;
    std::vector<PartSet> ahead;  // by step from `taken` on; made when needed
  };
  const Sequence& From(int trainer) const { return from_[static_cast<std::size_t>(trainer)]; }
  Sequence& From(int trainer) { return from_[static_cast<std::size_t>(trainer)]; }
  static void PassAbsent(Sequence& from);
  PartSet Take(int trainer);

  std::size_t bytes_ = 0;
  std::uint64_t version_ = 0;
  int merged_ = 0;
  int missing_ = 0;
  bool fed_ = false;
  bool merging_ = false;
  bool running_ = false;
  bool awaited_ = false;
  bool published_ = false;
  bool measured_ = false;
  std::vector<Sequence> from_;  // by trainer
  std::vector<int> arrived_;    // the trainers of complete gradients, in the order of their completion
  int last_taken_ = -1;
  TakeBelow take_below_;
  std::map<int, PartSet> initial_;
  std::set<int> initial_of_;
  int loading_ = -1;
};

struct TrainerAccount {
  std::uint64_t steps_ended = 0;
  std::uint64_t steps_begun = 0;  // by a push
  // Of asynchronous training: steps that it has ended, and not begun here: its log for this server is full.
  std::set<std::uint64_t> announced;
  StepSet reported;                 // steps that it has reported to the learning-rate schedule
  StepSet counted;                  // those of them that the schedule has counted
  std::uint64_t step_at_hello = 0;  // its open step, at its last hello to a server that was started again
  bool completed = false;
  bool left = false;  // others continue without it, which was reported
  // Of a trainer that has been lost:
  bool lost = false;               // others continue without it (TrainerLoss::kShrink)
  bool joins = true;               // it has sent no gradient yet, and may say that it begins at a later step
  std::uint64_t absent_below = 0;  // its new process takes no part in steps below this
  std::uint64_t kept_below = 0;    // its gradients of steps below this are here, from its last process
  bool saves_for_last = false;     // a save in progress was requested by its last process
  std::uint64_t saves_done = 0;    // requests below it
  Status save_status;              // of the last
};

// A step that a trainer has reported to the learning-rate schedule.
struct CountedStep {
  int trainer = 0;
  std::uint64_t step = 0;
};

class ChunkLedger {
 public:
  explicit ChunkLedger(MachineConfig config);

  // Adds a param while the job runs, in this version, after those that there are. Returns its number.
  int AddParam(MachineConfig::Param param, std::uint64_t version);
  const MachineConfig& config() const { return config_; }
  int trainers() const { return config_.trainers; }
  const MachineConfig::Param& param(int param) const {
    return config_.params[static_cast<std::size_t>(param)];
  }
  bool has_rows(int param) const { return this->param(param).pushed_row_bytes > 0; }
  const ChunkAccount& chunk(ChunkId at) const { return chunks_[Row(at)][static_cast<std::size_t>(at.chunk)]; }
  ChunkAccount& chunk(ChunkId at) { return chunks_[Row(at)][static_cast<std::size_t>(at.chunk)]; }
  std::vector<ChunkId> AllChunks() const;
  // The number of chunks that are updated, without those of held params.
  std::size_t UpdatedChunks() const;
  const TrainerAccount& trainer(int id) const { return trainers_[static_cast<std::size_t>(id)]; }
  TrainerAccount& trainer(int id) { return trainers_[static_cast<std::size_t>(id)]; }
  bool AllCompleted() const;
  bool AnyCompleted() const;
  // Whether each trainer has completed or is lost.
  bool NobodyIsLeft() const;
  // Whether a trainer has returned, and begins after this step.
  bool BeginsAfter(std::uint64_t step) const;
  // Whether the trainer takes no part in the step, because it is lost, or was.
  bool IsMissing(int trainer, std::uint64_t step) const;
  // Whether it takes no part in it, for that reason or because it has completed before.
  bool IsAbsent(int trainer, std::uint64_t step) const;
  // The lowest version of all updated chunks.
  std::uint64_t low_version() const { return low_version_; }
  void StartBlock(ChunkId at);
  // The block has run on the chunk, whose version increases by one. Returns whether the lowest one does too.
  bool EndBlock(ChunkId at);
  int running_blocks() const { return running_blocks_; }

  // --- Steps that the schedule has yet to count, in the order in which they were reported.
  // One that comes late is before later ones of its trainer, which may wait for what it makes durable.
  void AddCounted(CountedStep step);
  // Whether all gradients of the first such step are applied. Valid after FindDueCount.
  bool count_is_due() const { return count_is_due_; }
  void FindDueCount();
  CountedStep TakeCounted();
  std::size_t counts_waiting() const { return counted_.size(); }
  std::uint64_t counts_taken() const { return counts_taken_; }

  // The size of the whole to which the pushed part belongs.
  std::size_t PushedBytes(const PushEvent& push) const;
  // kInvalidArgument E-rpc-chunk: the param has no such chunk. `did`: "pushed".
  Status CheckChunk(int trainer, const char* did, ChunkId at) const;
  // Also E-rpc-size: the part's size does not match what it belongs to.
  Status CheckPush(const PushEvent& push) const;

 private:
  static std::size_t Row(ChunkId at) { return static_cast<std::size_t>(at.param); }
  void CountLow();

  void AddChunks(const MachineConfig::Param& param, std::uint64_t version);

  MachineConfig config_;  // the params grow
  std::vector<std::vector<ChunkAccount>> chunks_;
  std::vector<TrainerAccount> trainers_;
  std::uint64_t low_version_ = 0;
  std::size_t at_low_version_ = 0;  // number of chunks that have it
  int running_blocks_ = 0;
  std::deque<CountedStep> counted_;
  bool count_is_due_ = false;
  ChunkId count_waits_for_;  // the chunks before it have applied the gradients of the first step
  std::uint64_t counts_taken_ = 0;
};

}  // namespace penstock::pserver
