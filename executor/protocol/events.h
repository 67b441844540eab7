// What passes between a trainer, or another server, and a parameter server: events go to the server, replies
// to the other side. Each is a struct with a field for each meaning; how they are written is a codec's
// business (native_codec.h).
//
//   const Event event = Push{.variable = 3, .chunk = 0, .step = 7, .bytes = gradient};
//   std::visit([](const auto& e) { ... }, event);
//
// A variable is its position in the contract. A version v of a chunk is what the updates of steps 0..v-1 made
// of it: of all trainers, or (asynchronous modes) of the one that asks, and of others what there is. A large
// body travels in parts of WelcomeBody::part_bytes; the part is no unit of anything else.
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

// Of each message: who the trainer is that sends or gets it, and what it believes the server holds.
struct Sender {
  std::uint64_t job = 0;          // FNV-1a of the job's name
  std::uint64_t contract = 0;     // Contract::Hash
  std::uint64_t incarnation = 0;  // grows with each start of this trainer
  std::uint32_t trainer = 0;
  // Of a reply: the newest version that a checkpoint of the server holds; gradients of earlier steps need not
  // be kept. 0: none.
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
  std::uint64_t step = 0;  // that the trainer is in
  HelloBody body;
};
// A part of a chunk of a gradient or of an initial value; of a gradient of rows: of its int64 ids and values.
struct Push {
  ChunkRef at;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  std::uint64_t rows = 0;  // of a gradient of rows: how many, in all its parts
  Payload bytes;
};
struct EndStep {
  std::uint64_t step = 0;
  std::vector<std::uint32_t> variables;  // that were pushed in it
};
// The learning rate's schedule is to count the step, which is open. Each step once.
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
// Asks for all rows of a table that were updated since the trainer's question of a lower version; for the
// first one, since training began. A question that is repeated gets those, and what was updated since.
struct PullChanged {
  std::uint32_t variable = 0;
  std::uint64_t version = 0;
};
struct Save {
  std::uint64_t version = 0;
  std::uint32_t request = 0;
  SaveBody body;
};
// What does a pull of the chunk wait for, is a push of it welcome now? Without a chunk: only says what the
// trainer waits for.
struct Ask {
  std::optional<ChunkRef> about;
  std::uint64_t step = 0;  // or version; comes back in the answer
  std::string waits_for;
};
struct Complete {};
// Of either side: it has failed, and why.
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
// What it measured of the gradients of a step: all its values, in their order.
struct Sums {
  std::uint64_t step = 0;
  Payload bytes;
};
using Event = std::variant<Hello, Push, EndStep, CountStep, Pull, PullRows, Save, Ask, Complete, Failure,
                           PullChanged, ServerHello, Sums>;

// --- Replies.

struct Welcome {
  std::uint64_t steps_ended = 0;  // of this trainer, as the server knows
  WelcomeBody body;
};
struct Pushed {
  ChunkRef at;
  std::uint64_t step = 0;
  std::uint32_t part = 0;
  std::uint64_t welcome_below = 0;  // pushes of this chunk for steps below it are welcome
};
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
// A part of the chunk as it was after `updates` updates, in which all gradients of the trainer's steps below
// `version` are. Parts of different numbers of updates do not belong together.
struct PulledNewest {
  ChunkRef at;
  std::uint64_t version = 0;
  std::uint64_t updates = 0;
  std::uint32_t part = 0;
  Payload bytes;
};
// The version that was asked for was overwritten.
struct Gone {
  ChunkRef at;
  std::uint64_t version = 0;
  std::uint64_t welcome_below = 0;
};
// A part of the rows asked for, in the order of the ids.
struct Rows {
  std::uint32_t variable = 0, request = 0;
  std::uint64_t version = 0;
  std::uint32_t part = 0;
  // Where versions are not the updates of all trainers: of how many the table is (the low bits). Parts of
  // different numbers do not belong together.
  std::uint32_t updates = 0;
  Payload bytes;
};
struct RowsGone {
  std::uint32_t variable = 0, request = 0;
  std::uint64_t version = 0;
};
struct Credit {
  ChunkRef at;
  std::uint64_t welcome_below = 0;
};
struct Saved {
  std::uint32_t request = 0;
  Status status;
};
struct Answer {
  ChunkRef at;
  std::uint64_t step = 0;
  std::uint64_t welcome_below = 0;
  std::string lacking;  // "trainer 3 (last heard 11 s ago)"; empty if the chunk waits for nobody
};
// A part of the rows that were updated: all ids, ascending, then all values. Parts of different numbers of
// updates (the low bits) do not belong together.
struct ChangedRows {
  std::uint32_t variable = 0;
  std::uint64_t version = 0;
  std::uint32_t updates = 0;
  std::uint64_t rows = 0;  // in all parts; of none there is one empty part
  std::uint32_t part = 0;
  Payload bytes;
};
// Trainer `trainer` completed after `steps` steps, which others go beyond.
struct Left {
  std::uint64_t trainer = 0, steps = 0;
};
struct Completed {};
// To another server.
struct ServerWelcome {};
struct SumsTaken {
  std::uint64_t step = 0;
};
using Reply =
    std::variant<Welcome, Pushed, StepEnded, StepCounted, Pulled, PulledNewest, Gone, Rows, RowsGone, Credit,
                 Saved, Answer, Left, Completed, Failure, ChangedRows, ServerWelcome, SumsTaken>;

}  // namespace penstock::protocol
