// The events and actions of a StateMachine: params and chunks are given by number, independent of the
// wire.
//
//   machine.Push({.trainer = 1, .param = 0, .chunk = 2, .step = 7, .part = 0, .bytes = body}, actions);
//   for (const Action& action : actions) ...          // MergeAction, RunAction, ReplyAction ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "executor/protocol/events.h"
#include "executor/pserver/machine/row_ids.h"
#include "executor/pserver/machine/step_set.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

// What the death of a trainer that has not completed means.
enum class TrainerLoss {
  kAbort,   // the job ends
  kWait,    // the others wait for its new process, which repeats its incomplete step from the same values
  kShrink,  // the others go on without it, until its new process joins them
};

struct MachineConfig {
  int trainers = 1;
  bool has_lr_block = false;
  bool counts_steps = false;  // the learning-rate block has counters of the trainers' steps
  std::uint64_t window = 2;   // steps that a trainer may push ahead
  std::size_t part_bytes = kMaxBodyBytes;
  int backup_trainers = 0;       // trainers that a step does not wait for (policies/quorum.h)
  std::size_t early_bytes = 0;   // of params by turn: limit of bytes given to trainers and not merged yet
  std::uint64_t first_step = 0;  // complete steps of the job before this start of it (a checkpoint's)
  std::uint64_t cut_every = 0;   // the steps from one checkpoint to the next; 0: there are none
  std::uint64_t first_cut = 0;   // in asynchronous training: the step of the checkpoint that it begins with
  TrainerLoss trainer_loss = TrainerLoss::kAbort;
  // Checkpoints of keys, at points of the workers' program (key_cuts.h); `first_cut` is as above.
  bool cuts_keys = false;
  // Of a server that was started again: the version of all chunks at its beginning.
  std::uint64_t first_version = 0;
  bool restarted = false;
  // Of asynchronous training with checkpoints, by trainer: what this server begins with. Empty: trainers have
  // a common step.
  struct Start {
    std::uint64_t first_step = 0;  // its complete steps before this start of the job; the rest counts on
    std::uint64_t taken = 0;       // its steps that the memory has
    std::uint64_t ahead = 0;       // those that it had when this start of the job began
    std::uint64_t ended = 0;
    StepSet counted;  // its steps that the learning-rate schedule has counted
    // It need not keep steps below for a server that may be started again.
    std::uint64_t Durable(bool counts_steps) const {
      return counts_steps ? std::min(taken, counted.first_gap()) : taken;
    }
  };
  std::vector<Start> starts = {};
  // It may be started again: it needs the trainers until all have completed and its last checkpoint is
  // written.
  bool recovers = false;
  int servers = 1;  // servers that exchange sums (sum_exchange.h), including this one
  int server = 0;   // this server's number among them
  struct Param {
    std::string name;
    std::vector<std::size_t> bytes_of_chunks;
    bool start = false;
    bool restored = false;             // of a held param, or a key: its value is from a checkpoint
    std::size_t pushed_row_bytes = 0;  // of a sparse gradient: bytes of an id and its values; 0: dense
    bool by_turn = false;  // pushed when the trainer's turn is near (policies/turn_credit.h); dense
    bool clips = false;    // its updates depend on the sums of all servers
    // Of a compressed dense gradient, its bytes by chunk. Empty: as many as the chunk has.
    std::vector<std::size_t> compressed_bytes = {};
    // A key of a key-value store: worker 0 sends its value, each worker's steps count its own pushes of it.
    // `turns`: each push is an update by itself (policies/key_policy.h). `by_id`: it is a table of any ids,
    // whose rows have values from the start.
    bool is_key = false;
    bool turns = false;
    bool by_id = false;
    bool compressible = false;  // a dense key of f32
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
  std::uint64_t rows = 0;     // of a sparse gradient: number of rows in all its parts
  bool initial = false;       // a part of a value that a trainer set before its first step; dense, in step 0
  std::uint64_t largest = 0;  // of a key: protocol::Push::largest
  float threshold = 0;        // the same: protocol::Push::threshold
};
// A request for single rows of a table, all of one chunk.
struct RowsEvent {
  int trainer = 0, param = 0, chunk = 0;
  std::uint64_t version = 0;
  std::uint32_t variable = 0;  // the trainer's name for the request
  std::uint64_t request = 0;
  std::int64_t padding = -1;  // the id whose row is all zeros; -1: none
  RowIds ids = {};            // each within the table
  // Instead of `ids`: the rows that were updated since the trainer's last request of this kind.
  bool changed = false;
};
// A trainer's request to save a table, or a slice of a param with its optimizer state, in a file. The action
// that does it carries the request; then SaveDone.
struct SaveEvent {
  int trainer = 0, param = 0;
  std::uint64_t version = 0;
  std::uint32_t request = 0;  // the trainer's number for it, increasing
  std::string file = {};
};

// --- Actions.

// Merge this gradient into its chunk, or store this held parameter; then MergeDone. No parts: zeros.
struct MergeAction {
  int param = 0, chunk = 0, trainer = 0;
  std::uint64_t step = 0;
  std::vector<Payload> parts;  // in order
  std::uint64_t rows = 0;      // of a sparse gradient
  int of = 0;                  // as in Turn (update_policy.h)
  // Of the last turn of a version that lacks the gradients of lost trainers: the number of the others, of
  // whose gradients the update uses the mean. 0: as many as the program merges.
  int mean_of = 0;
  // A value set by a trainer: the first one becomes the chunk's; each later one must be equal.
  bool initial = false;
  std::uint64_t largest = 0;  // of a key: protocol::Push::largest
  float threshold = 0;        // the same: protocol::Push::threshold
};
// Run the optimize block on the chunk, or (param -1) the learning-rate block; then BlockDone.
struct RunAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;
  int counts = -1;  // of the learning-rate block: first counts a step of this trainer; -1: none
};
struct SaveAction {
  SaveEvent save;
};
// Copy for a checkpoint the chunk, which has been updated for the last of its steps, or (param -1) what the
// learning-rate block keeps; then CutCopied. Nothing may change them before.
struct CutAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;  // complete steps of the job
};
// Write the copies of this step; then CutWritten.
struct WriteCutAction {
  std::uint64_t step = 0;
  // In asynchronous training: checkpoint::Manifest's steps_in and counted.
  std::vector<std::uint64_t> steps_in = {};
  std::vector<std::vector<std::uint64_t>> counted = {};
  std::vector<int> params = {};  // of a server of keys: those that are in it
};
// Measure the merged gradient of the chunk, if the program does so; then MeasureDone.
struct MeasureAction {
  int param = 0, chunk = 0;
  std::uint64_t step = 0;
};
// Send the other servers what was measured here; SumsTaken when one of them has it.
struct TellSumsAction {
  std::uint64_t step = 0;
};
// Compute what all updates of the step need from all servers' measures; then CombineDone.
struct CombineAction {
  std::uint64_t step = 0;
  std::vector<Payload> sums;  // by server; empty for this one
};
// A trainer has completed while others continue. Reported once.
struct LeftAction {
  int trainer = 0;
  std::uint64_t steps = 0;  // in which it took part
};
// The server has finished: ok when all trainers have completed and no work is left. The last action.
struct EndAction {
  Status why;
};

// --- Replies: those of protocol/events.h, and orders to make one from the memory.

// A chunk as a reply names it: by the trainer's variable of the param, or of its gradient.
struct NamedChunk {
  ChunkId id;
  bool is_gradient = false;
};
// Send the current chunk in parts (no block is running on it, or there is a copy).
struct PulledReply {
  ChunkId at;
  std::uint64_t version = 0;
  std::uint64_t welcome_below = 0;
  // Instead of that version: the chunk after everything already decided about it is done.
  bool newest = false;
};
// Send the current values of the requested rows, in parts.
struct RowsReply {
  RowsEvent asked;
  bool newest = false;  // as in PulledReply
};
using PushedReply = protocol::PushedOf<NamedChunk>;
using GoneReply = protocol::GoneOf<NamedChunk>;
using CreditReply = protocol::CreditOf<NamedChunk>;
struct ReplyAction {
  int trainer = 0;
  std::variant<PushedReply, protocol::StepEnded, protocol::StepCounted, PulledReply, GoneReply, RowsReply,
               protocol::RowsGone, CreditReply, protocol::Saved, protocol::Completed, protocol::Failure,
               protocol::Durable>
      reply;
};

using Action = std::variant<MergeAction, RunAction, ReplyAction, SaveAction, LeftAction, EndAction,
                            MeasureAction, TellSumsAction, CombineAction, CutAction, WriteCutAction>;
using Actions = std::vector<Action>;

}  // namespace penstock::pserver
