// The messages between a trainer, or another server, and a parameter server: events go to the server, replies
// to the other side. Each is a struct with one field per meaning; a codec defines its encoding
// (native_codec.h).
//
//   const Event event = Push{.at = {3, 0}, .step = 7, .bytes = gradient};
//   std::visit([](const auto& e) { ... }, event);
//
// A variable is given by its position in the contract; `at` names one of its chunks. Version v of a chunk is
// the result of the updates of steps 0..v-1 of all trainers; in asynchronous modes, of the requesting
// trainer's steps 0..v-1 and of the gradients that other trainers have sent so far. A large body travels in
// parts of WelcomeBody::part_bytes; parts have no other meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "executor/protocol/bodies.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::protocol {

// Part of each message: the trainer that sends or receives it, and its contract with the server.
struct Sender {
  std::uint64_t job = 0;          // FNV-1a of the job's name
  std::uint64_t contract = 0;     // Contract::Hash
  std::uint64_t incarnation = 0;  // increases with each start of this trainer
  std::uint32_t trainer = 0;
  // In a reply: the newest version in a checkpoint of the server; gradients of earlier steps need not be
  // kept. 0: none.
  std::uint64_t durable_version = 0;

  friend bool operator==(const Sender&, const Sender&) = default;
};

// A chunk of a variable at a step or a version.
struct ChunkRef {
  std::uint32_t variable = 0, chunk = 0;

  friend bool operator==(const ChunkRef&, const ChunkRef&) = default;
};

// --- Events.

struct Hello {
  std::uint64_t step = 0;  // the trainer's current step
  HelloBody body;
};
// A part of a chunk of a gradient or of an initial value; of a sparse gradient: of its int64 ids and values.
struct Push {
  ChunkRef at;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  std::uint64_t rows = 0;  // of a sparse gradient: the number of rows in all its parts
  Payload bytes;
  // Of a key, whose steps count this worker's pushes of it: the most pushes of any key, this one included.
  std::uint64_t largest = 0;
  // Of a dense key: `bytes` are two_bit codes of this threshold (compressed.h). 0: they are the values.
  float threshold = 0;
};
struct EndStep {
  std::uint64_t step = 0;
  std::vector<std::uint32_t> variables;  // pushed in the step
};
// The learning-rate schedule must count the open step. Sent once per step.
struct CountStep {
  std::uint64_t step = 0;
};
struct Pull {
  ChunkRef at;
  std::uint64_t version = 0;
};
struct PullRows {
  ChunkRef at;  // all ids are of this shard (row_shards.h); of another table: chunk 0
  std::uint64_t version = 0;
  std::uint32_t request = 0;
  Payload ids;  // int64
};
// Asks for all rows of a table that were updated since the trainer's request for the last lower version (for
// the first request: since training began). The answer to a repeated request also has the rows updated
// meanwhile.
struct PullChanged {
  std::uint32_t variable = 0;
  std::uint64_t version = 0;
};
struct Save {
  std::uint64_t version = 0;
  std::uint32_t request = 0;
  SaveBody body;
};
// Asks what a pull of the chunk waits for, and whether a push of it is welcome. Without a chunk, only reports
// what the trainer waits for.
struct Ask {
  std::optional<ChunkRef> about;
  std::uint64_t step = 0;  // or version; repeated in the answer
  std::string waits_for;
};
struct Complete {};
// The trainer keeps nearly as much as it may of what no checkpoint of the server has. It has ended the steps
// below `step`.
struct RequestCut {
  std::uint64_t step = 0;
};
// --- Of a key-value store. A worker is a trainer whose contract is empty; its variables are keys.

// A key has two variables: its value, which is pulled and set, and its gradient, which is pushed. The
// receiver numbers them when the first worker declares the key. Worker 0 pushes the initial value; pulls wait
// for it.
struct DeclareKey {
  std::uint32_t request = 0;  // the worker's number for it
  KeyBody body;
};
// The optimizer of all keys from now on, as text (executor/kvstore/optimizer.h); empty: pushes replace the
// value. Its state begins anew, unless it is kept. All workers say so, and the first counts.
struct SetOptimizer {
  std::uint64_t number = 0;       // of this worker's calls, from 1
  std::uint32_t keeps_state = 0;  // 1: state that the optimizer before it had too is kept
  std::string text;
};
// Wait until all workers that have not completed have come here.
struct Barrier {
  std::uint64_t number = 0;  // of this worker's barriers, from 1
};
// The worker is at a point of its program at which a checkpoint of that name is made: it has pushed these
// keys so often, and sends no later push before the answer.
struct CutKeys {
  std::uint64_t step = 0;  // the most pushes of any key so far
  std::vector<KeyPushes> pushes;
};
// How many workers are gone without having completed?
struct CountGone {
  std::uint32_t request = 0;  // the worker's number for it
};
// From either side: the sender has failed.
struct Failure {
  Status why;
};

// --- Events of another server, with which this one exchanges sums (roles::ServedExchange). It also sends
// Complete, when its trainers have completed, and Failure; its Sender has no trainer.

// The body's contract is ServedExchange::ToText.
struct ServerHello {
  std::uint32_t server = 0;  // its position in the exchange
  HelloBody body;
};
// What a server measured of the gradients of a step: all its values, in order.
struct Sums {
  std::uint64_t step = 0;
  Payload bytes;
};
using Event =
    std::variant<Hello, Push, EndStep, CountStep, Pull, PullRows, Save, Ask, Complete, Failure, PullChanged,
                 ServerHello, Sums, RequestCut, DeclareKey, SetOptimizer, Barrier, CutKeys, CountGone>;

// --- Replies. Those that a server decides without its memory are also what its state machine returns
// (pserver/machine/actions.h); there, a reply of a template names its chunk in the server's own numbers.
// About(chunk) is the same reply in the numbers of the contract.

struct Welcome {
  std::uint64_t steps_ended = 0;  // of this trainer, according to the server
  std::uint64_t first_step = 0;   // complete steps of the job before this start of it, from a checkpoint
  WelcomeBody body;
};
template <typename Chunk>
struct PushedOf {
  Chunk at;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  std::uint64_t welcome_below = 0;  // pushes of this chunk for steps below it are welcome

  PushedOf<ChunkRef> About(ChunkRef named) const { return {named, step, part, welcome_below}; }
};
using Pushed = PushedOf<ChunkRef>;
struct StepEnded {
  std::uint64_t step = 0;
};
struct StepCounted {
  std::uint64_t step = 0;
};
struct Pulled {
  ChunkRef at;
  std::uint64_t version = 0;
  std::uint32_t part = 0;
  std::uint64_t welcome_below = 0;
  Payload bytes;
};
// A part of the chunk after `updates` updates, which include all gradients of the trainer's steps below
// `version`. Parts with different numbers of updates must not be combined.
struct PulledNewest {
  ChunkRef at;
  std::uint64_t version = 0;
  std::uint64_t updates = 0;
  std::uint32_t part = 0;
  Payload bytes;
};
// The requested version was overwritten.
template <typename Chunk>
struct GoneOf {
  Chunk at;
  std::uint64_t version = 0;
  std::uint64_t welcome_below = 0;

  GoneOf<ChunkRef> About(ChunkRef named) const { return {named, version, welcome_below}; }
};
using Gone = GoneOf<ChunkRef>;
// A part of the requested rows, in the order of the ids.
struct Rows {
  std::uint32_t variable = 0, request = 0;
  std::uint64_t version = 0;
  std::uint32_t part = 0;
  // If versions do not count all trainers' updates: the table's number of updates (low bits). Parts with
  // different numbers must not be combined.
  std::uint32_t updates = 0;
  Payload bytes;
};
struct RowsGone {
  std::uint32_t variable = 0, request = 0;
  std::uint64_t version = 0;
};
template <typename Chunk>
struct CreditOf {
  Chunk at;
  std::uint64_t welcome_below = 0;

  CreditOf<ChunkRef> About(ChunkRef named) const { return {named, welcome_below}; }
};
using Credit = CreditOf<ChunkRef>;
struct Saved {
  std::uint32_t request = 0;
  Status status;
};
struct Answer {
  ChunkRef at;
  std::uint64_t step = 0;
  std::uint64_t welcome_below = 0;
  std::string lacking;  // "trainer 3 (last heard 11 s ago)"; empty if the chunk waits for no trainer
};
// A part of the updated rows: all ids, ascending, then all values. Parts with different numbers of updates
// (low bits) must not be combined.
struct ChangedRows {
  std::uint32_t variable = 0;
  std::uint64_t version = 0;
  std::uint32_t updates = 0;
  std::uint64_t rows = 0;  // in all parts; if there are no rows, one empty part is sent
  std::uint32_t part = 0;
  Payload bytes;
};
// Trainer `trainer` completed after `steps` steps; others continue.
struct Left {
  std::uint64_t trainer = 0, steps = 0;
};
struct Completed {};
// Sent when a checkpoint is written, and to answer RequestCut: it carries the sender's durable version.
struct Durable {};
struct KeyDeclared {
  std::uint32_t request = 0;
  std::uint32_t variable = 0;       // the value; the gradient has the next number
  std::uint64_t welcome_below = 0;  // pushes of all chunks for steps below it are welcome
  KeyDeclaredBody body;
};
struct OptimizerSet {
  std::uint64_t number = 0;
  Status status;
};
struct BarrierPassed {
  std::uint64_t number = 0;  // this barrier and all before it
};
struct KeysCut {
  std::uint64_t step = 0;
};
struct GoneCounted {
  std::uint32_t request = 0;
  std::uint64_t workers = 0;
};
// To another server.
struct ServerWelcome {};
struct SumsTaken {
  std::uint64_t step = 0;
};
using Reply =
    std::variant<Welcome, Pushed, StepEnded, StepCounted, Pulled, PulledNewest, Gone, Rows, RowsGone, Credit,
                 Saved, Answer, Left, Completed, Failure, ChangedRows, ServerWelcome, SumsTaken, Durable,
                 KeyDeclared, OptimizerSet, BarrierPassed, KeysCut, GoneCounted>;

}  // namespace penstock::protocol
