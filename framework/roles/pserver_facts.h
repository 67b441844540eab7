// What a pserver serves, derived from the data flow of its program: which gradients are merged and in which
// order (the inputs of the op that merges them), which block updates which parameter, and whether the
// parameter may be cut into chunks. Names are never parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(PserverFacts role, ReadServer(ops, pserver_program, listen_and_serv));
//   for (const ServedParam& served : role.params) ... served.grads update served.param
//
// Reads programs of every mode; the runtime decides which modes it runs. A PserverFacts is plain data: it may
// outlive the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/roles/piece.h"
#include "framework/roles/row_optimizer.h"
#include "framework/roles/views.h"

namespace penstock::roles {

// A request for rows of a table sharded by id.
struct ServedLookup {
  std::string ids;            // the name of the request
  std::int64_t padding = -1;  // the id whose row is all zeros; -1: none
};

// A piece of a parameter that a server updates, or a variable that it only holds: trainer 0 sends the initial
// value of a held variable, and all trainers pull it.
struct ServedParam {
  PieceType param;
  bool start = false;  // only held: no block, no gradients
  int block = 0;       // the optimize block that updates it
  // One name per trainer, in the order in which the merge adds the gradients. A single name if no op merges:
  // all trainers send under that name, and each gradient is applied separately.
  std::vector<std::string> grads;
  Compression compression = {};  // of each gradient's message
  bool elementwise = false;      // every op of the block is elementwise: the block may run on a row range
  bool rows = false;             // the gradients are selected rows: the piece is not cut into chunks
  // A shard of a table sharded by id: `param` describes the whole table, of which this server holds some
  // rows.
  bool by_id = false;
  std::vector<ServedLookup> lookups = {};          // if by_id
  std::optional<RowOptimizer> row_optimizer = {};  // of a by_id table whose rows can be updated one by one
  // The chunk size from the program's plan: the number of rows that are merged, updated and versioned
  // together. nullopt: the program has no plan.
  std::optional<Dim> chunk_rows = {};
  // The whole parameter of which this is a piece ("": not recorded), and the index of the piece's first row
  // in it (nullopt: not recorded).
  std::string logical = {};
  std::optional<Dim> row_begin = {};
  int measure_block = -1;  // merges and measures the gradient before any update runs; -1: `block` merges it
  // The update depends on the measures of all gradients, or the piece has a measure block.
  bool clips = false;
  bool delta = false;  // geo: `block` adds the arriving difference
  // Delay compensation: one copy of the parameter per trainer, as that trainer last fetched it, and the
  // variable that holds the number of the trainer whose gradient is being applied.
  std::vector<std::string> backups = {};
  std::string backup_of = {};

  // The name under which a trainer sends its gradient.
  const std::string& GradientOf(int trainer) const {
    return grads.size() == 1 ? grads.front() : grads[static_cast<std::size_t>(trainer)];
  }
};

// The measures of merged gradients that servers exchange before any of them updates (exchange_sums).
struct ServedExchange {
  struct Value {
    PieceType type;
    int owner = 0;  // the server that measures it: a position in `servers`
  };
  std::vector<std::string> servers;  // addresses of all participants; empty: no exchange
  int self = 0;                      // the position of this server
  std::vector<Value> values;         // in the order that all servers share

  std::string ToText() const;            // one line per server and value
  std::size_t BytesOf(int owner) const;  // the bytes of all values of that server
};

struct PserverFacts {
  std::string address;
  int trainers = 0;
  int save_block = -1;              // saves tables sharded by id; -1: none
  int lr_block = -1;                // runs once a step, before the optimize blocks; -1: none
  std::vector<ServedParam> params;  // by name
  std::string job_facts;            // the program's job facts; may be empty
  ServeMode mode = ServeMode::kSync;
  int number = -1;             // its position among the servers; -1: not recorded
  bool keeps_backups = false;  // keeps a copy of each parameter as each trainer last fetched it
  // The blocks that run before all updates, in this order: those that measure gradients, and shared_block,
  // which computes from all measures and may exchange them with other servers (-1: there is none).
  std::vector<int> measure_blocks;
  int shared_block = -1;
  ServedExchange exchange;
  // The counters of the learning rate's block, per trainer, if trainers report their steps.
  std::vector<std::string> counters;
  // The fingerprint (plan::Fingerprint) of the plan that made the program, if recorded. Job facts contain it
  // too; trainers and servers compare them when they connect.
  std::optional<std::uint64_t> plan_fingerprint;
};

// `listen_and_serv` is an op of the program.
//
// kInvalidArgument, for programs that no mode could serve:
//   E-server-trainers   Fanin is out of range
//   E-server-block      a block does not exist
//   E-server-optimizer  a block updates nothing, or two parameters
//   E-server-merge      gradients to be merged do not match the trainers, each other, or what is
//                       received
//   E-server-twice      a parameter is updated or held twice
//   E-server-compression  the gradients of a parameter are compressed differently, or cannot be compressed
//   E-server-lookup     no block can answer a request
//   E-server-exchange   servers cannot exchange the measures
//   E-server-chunk      the plan cuts a piece in a way that its update does not allow
//   E-op-unknown, E-contract-var, E-contract-shape, E-policy-value, E-text-syntax, E-compression-value
Result<PserverFacts> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv);

}  // namespace penstock::roles
