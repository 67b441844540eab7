// The communication of a trainer's program with servers: its communication ops in program order, what each
// sends, requests or waits for, and how a whole variable is cut into pieces or joined from them.
//
//   const TrainerFacts role = ReadTrainer(trainer_program);       // or its startup program
//   for (const CommOp& one : role.ops) {
//     if (one.kind == CommOp::Kind::kSend) ... one.whole in one.pieces, each to its pserver
//   }
//
// Names of variables are never parsed: the ops that split and join determine which pieces make a whole.
// Reading never fails, even for broken programs, and accepts every mode; the caller decides whether a program
// is correct and can run. Of the blocks that ops run, only requests for rows of tables are read.
// The role is a view of the program, which must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/roles/views.h"

namespace penstock::roles {

// A part of a variable that is sent as one message. If an op's lists differ in length, missing names are
// empty and missing addresses leave has_address false.
struct Piece {
  std::string_view local;    // the trainer's variable; the whole variable if it is cut at run time
  std::string_view remote;   // the pserver's variable
  std::string_view pserver;  // address
  Dim rows = kUnknownDim;    // if the op gives the number; otherwise see the variable's declaration
  bool has_address = false;  // the op names a pserver for it
};

struct CommOp {
  enum class Kind {
    kSend,  // gradients, or initial values in a startup program
    kStep,  // no gradient: tells the servers that a step is complete
    kTold,  // a message to the trainer's own communicator only (geo: which rows were touched)
    kRecv,
    kLookup,    // requests rows of a range-sliced table
    kSampler,   // likewise, by an op that also computes with the rows
    kPrefetch,  // requests rows of a table sharded by id
    kAnswers,   // a merge_ids whose rows no prefetch requests
    kSendBarrier,
    kFetchBarrier,
    kSave,  // asks servers to save a table
  };
  Kind kind = Kind::kSend;
  const Op* op = nullptr;
  int position = 0;              // of the op in block 0, or of the op of block 0 that runs its block
  bool by_communicator = false;  // a thread of the process, not the op, sends or receives the names it lists
  bool idle = false;             // a recv that does nothing
  std::string_view param;        // of the op's first (param, grad) pair; empty if it has none
  std::string_view whole;        // the variable that is cut or joined; for a lookup, the table
  Cut cut = Cut::kNot;
  const Op* cut_op = nullptr;  // splits the variable by rows or ids, or joins it; null if none does
  int cut_position = 0;
  const Op* merge_op = nullptr;  // for a prefetch: joins the answers
  std::vector<Piece> pieces;     // for barriers and saves: only the addresses
};

struct TrainerFacts {
  const Program* program = nullptr;
  std::vector<CommOp> ops;  // in program order
  // From the first barrier or active recv that gives it, otherwise from a lookup. Sends do not count: Fluid's
  // say 0 in every trainer.
  std::optional<int> trainer_id;
  bool by_communicator = false;       // a communicator sends at least one gradient
  bool pulls_end_at_barrier = false;  // the program has a fetch_barrier
  std::string_view bn_sync = "none";  // how moving statistics are kept equal (policy "bn_sync")
  // The fingerprint (plan::Fingerprint) of the plan that made the program, if recorded. Job facts contain it
  // too; trainers and servers compare them when they connect.
  std::optional<std::uint64_t> plan_fingerprint;
};

// Cost: one walk over block 0 and the blocks that its ops run.
TrainerFacts ReadTrainer(const Program& program);

// The plan_fingerprint of any role program.
std::optional<std::uint64_t> PlanFingerprintOf(const Program& program);

}  // namespace penstock::roles
