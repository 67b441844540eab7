// What a trainer's program says to servers, and when: its communication ops in program order, with what each
// sends, asks for or waits for, and how a whole variable is cut into pieces or made of them.
//
//   const TrainerRole role = ReadTrainer(trainer_program);       // or its startup program
//   for (const CommOp& one : role.ops) {
//     if (one.kind == CommOp::Kind::kSend) ... one.whole in one.pieces, each to its pserver
//   }
//
// Names of variables are looked up, never read: which pieces make a whole follows from the ops that split and
// join. Reading never fails: programs of every mode are read, and broken ones too; whether they can be run,
// or are right, is for who asks. The role is views of the program, which outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/roles/views.h"

namespace penstock::roles {

// A part of a variable that travels as one message. Where an op lists fewer of one kind than of another, what
// is missing is an empty name, or no address.
struct Piece {
  std::string_view local;    // the trainer's variable; the whole one if it is cut at run time
  std::string_view remote;   // the pserver's
  std::string_view pserver;  // address
  Dim rows = kUnknownDim;    // where the op says how many; else the variable's declaration does
  bool has_address = false;  // the op names a pserver for it
};

struct CommOp {
  enum class Kind {
    kSend,  // gradients, or initial values in a startup program
    kStep,  // not a gradient: tells the servers that a step was done
    kTold,  // to the trainer's own communicator alone (geo: which rows were touched)
    kRecv,
    kLookup,    // rows of a table that lies in slices
    kSampler,   // likewise, by an op that computes more than that
    kPrefetch,  // rows of a table sharded by id
    kAnswers,   // a merge_ids whose answers nobody asked for
    kSendBarrier,
    kFetchBarrier,
    kSave,  // asks servers to save a table
  };
  Kind kind = Kind::kSend;
  const Op* op = nullptr;
  int position = 0;              // of the op in block 0
  bool by_communicator = false;  // it names what is sent or received; a thread of the process does it
  bool idle = false;             // a recv that does nothing
  std::string_view param;        // of the op's (param, grad) pair; empty if it has none
  std::string_view whole;        // what the pieces are cut from or joined to; of a lookup, the table
  Cut cut = Cut::kNot;
  const Op* cut_op = nullptr;  // the op that splits, joins or shards; null if there is none
  int cut_position = 0;
  const Op* merge_op = nullptr;  // of a prefetch: what puts the answers together
  std::vector<Piece> pieces;     // of barriers and saves: only the addresses
};

struct TrainerRole {
  const Program* program = nullptr;
  std::vector<CommOp> ops;  // in program order
  std::optional<int>
      trainer_id;  // of the first barrier, or recv that runs, that says it, else lookup: Fluid's sends say 0
  bool by_communicator = false;       // of any send
  bool pulls_end_at_barrier = false;  // there is a fetch_barrier
  std::string_view bn_sync = "none";  // how moving statistics are kept alike, where the program says it
  // Of the plan that made the program, where it carries one: what plan::Fingerprint says of it. Job facts
  // name it too, and are compared at hello.
  std::optional<std::uint64_t> plan_fingerprint;
};

// Cost: one walk over block 0.
TrainerRole ReadTrainer(const Program& program);

// Of any role program.
std::optional<std::uint64_t> PlanFingerprintOf(const Program& program);

}  // namespace penstock::roles
