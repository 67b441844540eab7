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
  std::uint32_t variable = 0;
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
using Event = std::variant<Hello, Push, EndStep, CountStep, Pull, PullRows, Save, Ask, Complete, Failure,
                           PullChanged, ServerHello, Sums, RequestCut>;

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
// To another server.
struct ServerWelcome {};
struct SumsTaken {
  std::uint64_t step = 0;
};
using Reply =
    std::variant<Welcome, Pushed, StepEnded, StepCounted, Pulled, PulledNewest, Gone, Rows, RowsGone, Credit,
                 Saved, Answer, Left, Completed, Failure, ChangedRows, ServerWelcome, SumsTaken, Durable>;

}  // namespace penstock::protocol
