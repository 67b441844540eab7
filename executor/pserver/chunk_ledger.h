// The books of a parameter server: for each chunk its version, the gradients that came and wait for their
// turn, and who waits for a version; for each trainer how far it is. A ledger decides nothing: a StateMachine
// writes it, an UpdatePolicy reads it.
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
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "executor/pserver/actions.h"
#include "executor/pserver/quorum.h"
#include "executor/pserver/turn_credit.h"

namespace penstock::pserver {

// The parts of one gradient or value. They arrive in any order, perhaps more than once.
class PartSet {
 public:
  // A part of `bytes` in all, cut into parts of `part_bytes`. False: those before it said another number of
  // rows, so it is not of this gradient.
  bool Add(const PushEvent& push, std::size_t bytes, std::size_t part_bytes);
  bool whole() const { return !have_.empty() && missing_ == 0; }
  // It will never come: the trainer's step has no such gradient.
  bool absent() const { return absent_; }
  void SetAbsent() { absent_ = true; }
  // Puts them into the action, in order.
  void MoveTo(MergeAction& merge);

 private:
  std::vector<Payload> parts_;
  std::vector<bool> have_;  // empty: none has come
  std::size_t missing_ = 0;
  std::uint64_t rows_ = 0;
  bool absent_ = false;
};

class ChunkAccount {
 public:
  // `awaited`: an initial value that is not there yet.
  ChunkAccount(int trainers, std::size_t bytes, bool awaited)
      : bytes_(bytes), awaited_(awaited), from_(static_cast<std::size_t>(trainers)) {}

  std::size_t bytes() const { return bytes_; }
  bool awaited() const { return awaited_; }

  // --- The version that there is, and the one in the making.
  std::uint64_t version() const { return version_; }
  // Turns that are over in the version in the making, those that brought zeros included.
  int merged() const { return merged_; }
  // A gradient, and not only zeros, is part of it.
  bool fed() const { return fed_; }
  bool merging() const { return merging_; }
  bool running() const { return running_; }
  // Whole chunks can be sent: while a block runs, only a copy that was made for somebody before.
  bool readable() const { return !running_ || published_; }
  void Publish() { published_ = true; }

  // --- Gradients of a trainer. The next one is that of step taken(trainer).
  std::uint64_t taken(int trainer) const { return From(trainer).taken; }
  // Its gradients of steps below this are in the version that there is, or in none for good.
  std::uint64_t applied(int trainer) const { return From(trainer).applied; }
  bool here(int trainer) const { return !From(trainer).ahead.empty() && From(trainer).ahead.front().whole(); }
  bool whole(int trainer, std::uint64_t step) const;  // it was not taken yet
  // Of no step from here on anything has come.
  std::uint64_t come(int trainer) const { return taken(trainer) + From(trainer).ahead.size(); }
  // What is welcome, as the trainer was told with its last gradient or since: steps below it.
  std::uint64_t told(int trainer) const { return From(trainer).told; }
  void Tell(int trainer, std::uint64_t welcome_below) { From(trainer).told = welcome_below; }
  // Of the trainers whose next gradient is here(), the one whose gradient was whole first; -1: there is none.
  int first_here() const;
  // Whose gradient was taken last; -1: none was.
  int last_taken() const { return last_taken_; }
  bool has_ahead() const;  // a part of a gradient that was not taken yet, of any trainer
  // Not of a step below taken(). False: as PartSet::Add.
  bool Collect(const PushEvent& push, std::size_t bytes, std::size_t part_bytes);
  // The trainer's step has no gradient of this chunk: what follows goes on without it. Not of a step that was
  // skipped or taken before. False: too many steps wait for an earlier one.
  bool Skip(int trainer, std::uint64_t step);
  // Begins to merge the trainer's next gradient, if it is here(), or zeros in its place.
  void StartMerge(MergeAction& merge);
  void EndMerge();
  // Leaves the trainer's next gradient, which is here(), out of every version.
  void Drop(int trainer);
  // The gradient that is merged was measured, or is now, for a norm over all (sum_exchange.h).
  bool measured() const { return measured_; }
  void SetMeasured() { measured_ = true; }
  void StartBlock() { running_ = true; }
  void EndBlock();

  // --- Values that trainers set before their first step.
  bool loading() const { return loading_ >= 0; }                   // one is written or compared now
  const std::set<int>& initial_of() const { return initial_of_; }  // trainers whose value is the chunk's
  void CollectInitial(const PushEvent& push, std::size_t part_bytes);
  bool StartInitial(MergeAction& merge);  // false: none is whole
  void EndInitial();

  // --- Who waits.
  std::set<std::pair<std::uint64_t, int>> pulls;  // version, trainer
  std::vector<RowsEvent> row_pulls;
  std::vector<SaveEvent> saves;  // while `saving`, the first is under way
  bool saving = false;

 private:
  struct Sequence {
    std::uint64_t taken = 0;
    std::uint64_t applied = 0;  // taken, but for those in the version in the making
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
  bool fed_ = false;
  bool merging_ = false;
  bool running_ = false;
  bool awaited_ = false;
  bool published_ = false;
  bool measured_ = false;
  std::vector<Sequence> from_;  // by trainer
  std::vector<int> arrived_;    // a trainer for each gradient that is whole, in the order in which they were
  int last_taken_ = -1;
  std::map<int, PartSet> initial_;
  std::set<int> initial_of_;
  int loading_ = -1;
};

struct TrainerAccount {
  std::uint64_t steps_ended = 0;
  std::uint64_t steps_begun = 0;    // by a push
  std::uint64_t counted_below = 0;  // steps of which it has told the learning rate's schedule
  bool completed = false;
  bool left = false;             // others went on, which was told
  std::uint64_t saves_done = 0;  // requests below it
  Status save_status;            // of the last
};

// A trainer has told the learning rate's schedule that it has done a step.
struct CountedStep {
  int trainer = 0;
  std::uint64_t step = 0;
};

class ChunkLedger {
 public:
  explicit ChunkLedger(MachineConfig config);

  const MachineConfig& config() const { return config_; }
  int trainers() const { return config_.trainers; }
  const MachineConfig::Param& param(int param) const {
    return config_.params[static_cast<std::size_t>(param)];
  }
  TurnCredit& turns() { return turns_; }
  const TurnCredit& turns() const { return turns_; }
  Quorum& quorum() { return quorum_; }
  const Quorum& quorum() const { return quorum_; }
  bool has_rows(int param) const { return this->param(param).pushed_row_bytes > 0; }
  const ChunkAccount& chunk(ChunkId at) const { return chunks_[Row(at)][static_cast<std::size_t>(at.chunk)]; }
  ChunkAccount& chunk(ChunkId at) { return chunks_[Row(at)][static_cast<std::size_t>(at.chunk)]; }
  std::vector<ChunkId> AllChunks() const;
  const TrainerAccount& trainer(int id) const { return trainers_[static_cast<std::size_t>(id)]; }
  TrainerAccount& trainer(int id) { return trainers_[static_cast<std::size_t>(id)]; }
  bool AllCompleted() const;
  // It has completed, and did not take part in this step.
  bool IsAbsent(int trainer, std::uint64_t step) const;
  // The lowest version of all chunks that are updated.
  std::uint64_t low_version() const { return low_version_; }
  void StartBlock(ChunkId at);
  // The block has run on the chunk: its version is one higher. True: so is the lowest one.
  bool EndBlock(ChunkId at);
  int running_blocks() const { return running_blocks_; }

  // --- Steps that the schedule is still to be told of, in the order in which they came.
  void AddCounted(CountedStep step) { counted_.push_back(step); }
  // All gradients of the first one are applied. Only after FindDueCount.
  bool count_is_due() const { return count_is_due_; }
  void FindDueCount();
  CountedStep TakeCounted();
  std::size_t counts_waiting() const { return counted_.size(); }
  std::uint64_t counts_taken() const { return counts_taken_; }

  // How long the whole is of which the push is a part.
  std::size_t PushedBytes(const PushEvent& push) const;
  // kInvalidArgument E-rpc-chunk: the param has no such chunk. `did`: "pushed".
  Status CheckChunk(int trainer, const char* did, ChunkId at) const;
  // The same, and E-rpc-size: the part is none of what the push says that it belongs to.
  Status CheckPush(const PushEvent& push) const;

 private:
  static std::size_t Row(ChunkId at) { return static_cast<std::size_t>(at.param); }
  void CountLow();

  const MachineConfig config_;
  std::vector<std::vector<ChunkAccount>> chunks_;
  std::vector<TrainerAccount> trainers_;
  TurnCredit turns_;
  Quorum quorum_;
  std::uint64_t low_version_ = 0;
  std::size_t at_low_version_ = 0;  // how many chunks have it
  int running_blocks_ = 0;
  std::deque<CountedStep> counted_;
  bool count_is_due_ = false;
  ChunkId count_waits_for_;  // chunks before it have applied the first one's gradients
  std::uint64_t counts_taken_ = 0;
};

}  // namespace penstock::pserver
