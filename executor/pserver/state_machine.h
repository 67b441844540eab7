// A parameter server's decisions in sync mode, as a state machine: events in, actions out. It computes
// nothing, waits for nothing, and knows no network, clock or thread; the simulator and the server run the
// same object.
//
//   Actions actions;
//   machine.Push({.trainer = 1, .param = 0, .chunk = 2, .step = 7, .part = 0, .bytes = body}, actions);
//   for (const Action& action : actions) ...          // Merge, RunBlock, Reply, End
//
// The unit is the chunk: rows of one parameter piece. Version v of a chunk is what the update of steps 0..v-1
// made of it; it goes from v to v+1 when the last trainer's gradient of step v is merged and the block has
// run. There is no barrier across chunks, but the learning-rate block runs once before the first optimize
// block of a step, and not before all optimize blocks of the step before have run. Trainer t's gradient is
// merged after those of 0..t-1, so bytes do not depend on who comes first. A repeated message is answered
// again and changes nothing. A trainer that has completed counts as a gradient of zeros in the steps that it
// no longer takes part in, as in Fluid.
//
// A gradient may be rows: of a table, which is one chunk. It says itself how long it is, and every trainer
// sends one each step, if with no rows. Single rows of a table are asked for by version, as chunks are.
//
// A start value is a parameter that is never updated: trainer 0 pushes it once, and every version of it is
// that one. Pulls wait until it is there.
//
// Version 0 is what the server's start-up program made, unless trainers push an initial value before their
// first step. The first that comes is written, the others are compared with it, and nobody gets a chunk while
// that lasts. An update of step 0 that only some trainers have sent an initial value for is an error: the
// others computed their gradients from other values.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "executor/protocol/envelope.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

// Merge this gradient into its chunk, or put this start value there; then MergeDone. No parts: zeros.
struct MergeAction {
  int param = 0, chunk = 0, trainer = 0;
  std::uint64_t step = 0;
  std::vector<Payload> parts;  // in order
  std::uint64_t rows = 0;      // of a gradient of rows
  // The first one is what the chunk begins from; each later one must be the same.
  bool initial = false;
};
// Run the optimize block on the chunk, or (param -1) the learning-rate block; then BlockDone.
struct RunAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;
};
// A question for single rows of a table.
struct RowsEvent {
  int trainer = 0, param = 0;
  std::uint64_t version = 0;
  std::uint32_t variable = 0;  // the trainer's names for what it asks, and for the question
  std::uint64_t request = 0;
  std::int64_t padding = -1;  // the id that stands for no row; -1: none
  Payload ids = {};           // int64, each within the table
};

// kPulled: send the chunk as it is now (no block runs on it), in parts. kRows: the same of the rows asked
// for. Others: what the fields say.
struct ReplyAction {
  int trainer = 0;
  protocol::MessageKind kind = protocol::MessageKind::kPushed;
  int param = 0, chunk = 0;
  std::uint32_t part = 0;
  std::uint64_t step = 0;
  std::uint64_t credit = 0;
  bool initial = false;  // of kPushed: it was no gradient
  Status error = {};     // of kError and kSaved
  RowsEvent rows = {};   // of kRows and kRowsGone: the question
};
// Keep a table in a file: a question of a trainer, and the action that answers it; then SaveDone.
struct SaveEvent {
  int trainer = 0, param = 0;
  std::uint64_t version = 0;
  std::uint32_t request = 0;  // the trainer's number for it, larger each time
  std::string file = {};
};
struct SaveAction {
  SaveEvent save;
};
// A trainer completed, and others go on. Told once.
struct LeftAction {
  int trainer = 0;
  std::uint64_t steps = 0;  // that it took part in
};
// The server is done: ok when all trainers have completed and nothing is under way. The last action ever.
struct EndAction {
  Status why;
};
using Action = std::variant<MergeAction, RunAction, ReplyAction, SaveAction, LeftAction, EndAction>;
using Actions = std::vector<Action>;

struct MachineConfig {
  int trainers = 1;
  bool has_lr_block = false;
  std::uint64_t window = 2;  // steps a gradient may be ahead of its chunk's version
  std::size_t part_bytes = kMaxBodyBytes;
  struct Param {
    std::string name;
    std::vector<std::size_t> chunk_bytes;
    bool start = false;
    std::size_t pushed_row_bytes = 0;  // of a gradient of rows: an id and its values; 0: it is dense
  };
  std::vector<Param> params;
};

struct PushEvent {
  int trainer = 0, param = 0, chunk = 0;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  Payload bytes;
  std::uint64_t rows = 0;  // of a gradient of rows: how many, in all its parts
  bool initial = false;    // a part of the value that training begins from, dense, in step 0
};

class StateMachine {
 public:
  explicit StateMachine(MachineConfig config);

  // Messages. Trainers and params are in range; everything else is checked here.
  void Push(const PushEvent& push, Actions& out);
  void EndStep(int trainer, std::uint64_t step, const std::set<int>& params_pushed, Actions& out);
  void Pull(int trainer, int param, int chunk, std::uint64_t version, Actions& out);
  void PullRows(const RowsEvent& pull, Actions& out);
  void Save(const SaveEvent& save, Actions& out);
  void Complete(int trainer, Actions& out);
  // The trainer is dead (and had not completed): nobody can go on.
  void Gone(int trainer, const Status& why, Actions& out);
  // Ends everything: an error of ours, or the user's wish.
  void Fail(const Status& why, Actions& out);

  // Results of actions.
  void MergeDone(int param, int chunk, Actions& out);
  void BlockDone(int param, int chunk, const Status& status, Actions& out);
  void SaveDone(const SaveEvent& save, const Status& status, Actions& out);

  bool ended() const { return ended_; }
  bool completed(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)].completed; }
  std::uint64_t steps_ended(int trainer) const {
    return trainers_[static_cast<std::size_t>(trainer)].steps_ended;
  }
  std::uint64_t version(int param, int chunk) const;
  // Gradients of this chunk are welcome for steps below it.
  std::uint64_t credit(int param, int chunk) const { return version(param, chunk) + config_.window; }
  // Whose gradient the next version of this chunk lacks.
  std::vector<int> Lacks(int param, int chunk) const;

 private:
  struct Gradient {  // of one trainer, for one step
    std::vector<Payload> parts;
    std::vector<bool> have;
    std::size_t missing = 0;
    std::uint64_t rows = 0;
    bool begun = false;
    bool Whole() const { return begun && missing == 0; }
  };
  struct Chunk {
    std::size_t bytes = 0;
    std::uint64_t version = 0;
    int merged = 0;  // gradients of trainers 0..merged-1 of step `version` are merged
    bool merging = false;
    bool running = false;
    bool awaited = false;                     // a start value that is not there yet
    bool published = false;                   // this version was sent to somebody, so there is a copy of it
    std::deque<std::vector<Gradient>> ahead;  // by step from `version` on, by trainer; made when needed
    std::set<std::pair<std::uint64_t, int>> pulls;  // waiting: version, trainer
    std::vector<RowsEvent> row_pulls;               // waiting
    std::vector<SaveEvent> saves;                   // waiting, or the first under way
    bool saving = false;
    std::map<int, Gradient> initial;  // by trainer: values that arrive or wait
    std::set<int> initial_of;         // trainers whose value is the chunk's
    int loading = -1;                 // the trainer whose value is written or compared now
  };
  struct Trainer {
    std::uint64_t steps_ended = 0;
    std::uint64_t steps_begun = 0;  // by a push
    bool completed = false;
    bool left = false;             // others went on, which was told
    std::uint64_t saves_done = 0;  // requests below it
    Status save_status;            // of the last
  };

  Chunk& At(int param, int chunk) {
    return chunks_[static_cast<std::size_t>(param)][static_cast<std::size_t>(chunk)];
  }
  const Chunk& At(int param, int chunk) const {
    return chunks_[static_cast<std::size_t>(param)][static_cast<std::size_t>(chunk)];
  }
  bool IsStart(int param) const { return config_.params[static_cast<std::size_t>(param)].start; }
  std::size_t PushedBytes(const PushEvent& push) const;
  void AddPart(const PushEvent& push, Gradient& gradient) const;
  bool CheckPush(const PushEvent& push, Actions& out);
  Gradient& Collect(const PushEvent& push, std::uint64_t ahead);
  void PushStart(const PushEvent& push, Actions& out);
  void PushInitial(const PushEvent& push, Actions& out);
  bool StartInitial(int param, int chunk, Actions& out);
  void InitialDone(int param, int chunk, Actions& out);
  bool RequireAllInitial(int param, int chunk, Actions& out);
  void TellWhoLeft(Actions& out);
  void Acknowledge(const PushEvent& push, std::uint64_t credit, Actions& out);
  void StartMerge(int param, int chunk, int trainer, Gradient* gradient, Actions& out);
  void AnswerWaiting(int param, int chunk, Actions& out);
  void GiveCredit(int param, int chunk, Actions& out);
  void StartSave(int param, Actions& out);
  void AnswerSave(int trainer, std::uint32_t request, Actions& out);
  void RequireStarter(int param, int chunk, Actions& out);
  bool IsAbsent(int trainer, std::uint64_t step) const;
  void Advance(int param, int chunk, Actions& out);
  void StartBlock(int param, int chunk, Actions& out);
  void EndIfDrained(Actions& out);
  bool AllCompleted() const;
  void AnswerPull(int trainer, int param, int chunk, std::uint64_t version, Actions& out);

  MachineConfig config_;
  std::vector<std::vector<Chunk>> chunks_;
  std::vector<Trainer> trainers_;
  std::uint64_t lr_version_ = 0;  // runs of the learning-rate block
  bool lr_running_ = false;
  std::set<std::pair<int, int>> wait_for_lr_;  // merged chunks
  std::uint64_t low_version_ = 0;              // the lowest version of all chunks
  std::size_t at_low_version_ = 0;             // how many chunks have it
  std::size_t busy_ = 0;                       // merges and blocks under way
  int completed_ = 0;                          // trainers; those that left are not counted any more
  bool ended_ = false;
};

}  // namespace penstock::pserver
