// What goes into a StateMachine and what it wants done: params and chunks by number, never as they are called
// on a wire.
//
//   machine.Push({.trainer = 1, .param = 0, .chunk = 2, .step = 7, .part = 0, .bytes = body}, actions);
//   for (const Action& action : actions) ...          // Merge, RunBlock, Reply, Save, Left, End
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

struct MachineConfig {
  int trainers = 1;
  bool has_lr_block = false;
  bool counts_steps = false;  // that block has counters of the trainers' steps
  std::uint64_t window = 2;   // steps a trainer may push ahead
  std::size_t part_bytes = kMaxBodyBytes;
  int backup_trainers = 0;      // that a step does not wait for (quorum.h)
  std::size_t early_bytes = 0;  // of params by turn: what may be given to trainers and not merged yet
  int servers = 1;              // that exchange sums (sum_exchange.h), this one among them
  int server = 0;               // which of them this is
  struct Param {
    std::string name;
    std::vector<std::size_t> chunk_bytes;
    bool start = false;
    std::size_t pushed_row_bytes = 0;  // of a gradient of rows: an id and its values; 0: it is dense
    bool by_turn = false;              // pushed when the trainer's turn is near (turn_credit.h); dense
    bool clips = false;                // its updates need what is made of the sums of all servers
    // Of a dense gradient that travels compressed, by chunk. None: as many as the chunk has.
    std::vector<std::size_t> compressed_bytes = {};
  };
  std::vector<Param> params;
};

struct ChunkId {
  int param = 0, chunk = 0;

  friend auto operator<=>(const ChunkId&, const ChunkId&) = default;
};

// --- Events.

struct PushEvent {
  int trainer = 0, param = 0, chunk = 0;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  Payload bytes;
  std::uint64_t rows = 0;  // of a gradient of rows: how many, in all its parts
  bool initial = false;    // a part of the value that training begins from, dense, in step 0
};
// A question for single rows of a table.
struct RowsEvent {
  int trainer = 0, param = 0;
  std::uint64_t version = 0;
  std::uint32_t variable = 0;  // the trainer's names for what it asks, and for the question
  std::uint64_t request = 0;
  std::int64_t padding = -1;  // the id that stands for no row; -1: none
  Payload ids = {};           // int64, each within the table
  // In the place of `ids`, the rows that were updated since the trainer last asked for those.
  bool changed = false;
};
// Keep a table in a file: a question of a trainer, and the action that answers it; then SaveDone.
struct SaveEvent {
  int trainer = 0, param = 0;
  std::uint64_t version = 0;
  std::uint32_t request = 0;  // the trainer's number for it, larger each time
  std::string file = {};
};

// --- Actions.

// Merge this gradient into its chunk, or put this initial value there; then MergeDone. No parts: zeros.
struct MergeAction {
  int param = 0, chunk = 0, trainer = 0;
  std::uint64_t step = 0;
  std::vector<Payload> parts;  // in order
  std::uint64_t rows = 0;      // of a gradient of rows
  int of = 0;                  // as of Turn (update_policy.h)
  // The first one is what the chunk begins from; each later one must be the same.
  bool initial = false;
};
// Run the optimize block on the chunk, or (param -1) the learning-rate block; then BlockDone.
struct RunAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;
  int counts = -1;  // of the learning-rate block: first counts a step of this trainer; -1: of none
};
struct SaveAction {
  SaveEvent save;
};
// Measure the merged gradient of the chunk, if the program says so; then MeasureDone.
struct MeasureAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;
};
// Tell the other servers what was measured here; SumsTaken when one of them has it.
struct TellSumsAction {
  std::uint64_t step = 0;
};
// Compute what all updates of the step need of what the servers have measured; then CombineDone.
struct CombineAction {
  std::uint64_t step = 0;
  std::vector<Payload> sums;  // by server; of this one none
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

// --- Replies, as in protocol/events.h.

struct PushedReply {
  ChunkId at;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  std::uint64_t welcome_below = 0;  // pushes of the chunk for steps below it are welcome
  bool initial = false;             // it was no gradient
};
struct StepEndedReply {
  std::uint64_t step = 0;
};
// The server knows that the schedule is to count this step.
struct CountedReply {
  std::uint64_t step = 0;
};
// Send the chunk as it is now (no block runs on it, or there is a copy), in parts.
struct PulledReply {
  ChunkId at;
  std::uint64_t version = 0;
  std::uint64_t welcome_below = 0;
  // In the place of that version, what the chunk is once what was decided about it before is done.
  bool newest = false;
};
struct GoneReply {
  ChunkId at;
  std::uint64_t version = 0;
  std::uint64_t welcome_below = 0;
};
// Send the rows asked for as they are now, in parts.
struct RowsReply {
  RowsEvent asked;
  bool newest = false;  // as of PulledReply
};
struct RowsGoneReply {
  RowsEvent asked;
};
struct CreditReply {
  ChunkId at;
  std::uint64_t welcome_below = 0;
};
struct SavedReply {
  std::uint32_t request = 0;
  Status status;
};
struct CompletedReply {};
struct FailureReply {
  Status why;
};
struct ReplyAction {
  int trainer = 0;
  std::variant<PushedReply, StepEndedReply, CountedReply, PulledReply, GoneReply, RowsReply, RowsGoneReply,
               CreditReply, SavedReply, CompletedReply, FailureReply>
      reply;
};

using Action = std::variant<MergeAction, RunAction, ReplyAction, SaveAction, LeftAction, EndAction,
                            MeasureAction, TellSumsAction, CombineAction>;
using Actions = std::vector<Action>;

}  // namespace penstock::pserver
