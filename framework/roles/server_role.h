// What a pserver serves, recovered from the wiring of its program: which gradients belong together and in
// which order (the inputs of the op that merges them), which block updates which parameter, and how far it
// may be cut into chunks. Names are never parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(ServerRole role, ReadServer(ops, pserver_program, listen_and_serv));
//   for (const ServedParam& served : role.params) ... served.grads update served.param
//
// Reads programs of every mode; the runtime decides which of them it runs. Plain data, independent of the
// program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/roles/piece.h"
#include "framework/roles/views.h"

namespace penstock::roles {

// A request for rows of a table sharded by id.
struct ServedLookup {
  std::string ids;            // the name of the request
  std::int64_t padding = -1;  // the id that stands for no row; -1: none
};

// A parameter piece on a server, or a variable that it only holds: an initial value that trainer 0 sends and
// all trainers pull.
struct ServedParam {
  PieceType param;
  bool start = false;  // only held: no block, no gradients
  int block = 0;       // the optimize block that updates it
  // Per trainer, in the order in which the merge adds them. A single one if nothing merges: all trainers send
  // under that name, and each gradient is applied by itself.
  std::vector<std::string> grads;
  Compression compression = {};  // of each gradient, in transit
  bool elementwise = false;      // every op of the block is: it may run on a row range
  bool rows = false;             // the gradients are selected rows: the piece is not cut into chunks
  // A shard of a table sharded by id: `param` is the whole table, some of whose rows are
  // here.
  bool by_id = false;
  std::vector<ServedLookup> lookups = {};  // if by_id
  // The chunk size: rows that are merged, updated and versioned together, from the program's plan. nullopt:
  // the program has no plan.
  std::optional<Dim> chunk_rows = {};
  // The parameter whose rows it holds ("": not recorded), and the index of its first row (nullopt: not
  // recorded).
  std::string logical = {};
  std::optional<Dim> row_begin = {};
  int measure_block = -1;  // merges and measures the gradient before any update runs; -1: `block` merges it
  // Its update depends on the measures of all gradients, or it has a measure block.
  bool clips = false;
  bool delta = false;  // geo: `block` adds the arriving difference
  // Delay compensation: per trainer a copy of the parameter as that trainer last fetched it, and the variable
  // that gives the trainer whose gradient is being applied.
  std::vector<std::string> backups = {};
  std::string backup_of = {};

  // The name under which a trainer sends its gradient.
  const std::string& GradientOf(int trainer) const {
    return grads.size() == 1 ? grads.front() : grads[static_cast<std::size_t>(trainer)];
  }
};

// What servers tell each other about their merged gradients before any of them updates (exchange_sums).
struct ServedExchange {
  struct Value {
    PieceType type;
    int owner = 0;  // the server that measures it: a position in `servers`
  };
  std::vector<std::string> servers;  // addresses of all participants; empty: no exchange
  int self = 0;                      // the position of this server
  std::vector<Value> values;         // in the order that all servers share

  std::string ToText() const;            // a line for each server and value
  std::size_t BytesOf(int owner) const;  // of all its values
};

struct ServerRole {
  std::string address;
  int trainers = 0;
  int save_block = -1;              // saves tables sharded by id; -1: none
  int lr_block = -1;                // runs once a step, before the optimize blocks; -1: none
  std::vector<ServedParam> params;  // by name
  std::string job_facts;            // the program's job facts; may be empty
  ServeMode mode = ServeMode::kSync;
  int number = -1;             // its position among the servers; -1: not recorded
  bool keeps_backups = false;  // keeps of each parameter what each trainer last fetched
  // Blocks that measure gradients, in the order in which they run before all updates; the last may exchange
  // the measures with other servers (shared_block; -1: none does).
  std::vector<int> measure_blocks;
  int shared_block = -1;
  ServedExchange exchange;
  // The counters of the learning rate's block, per trainer, if trainers report their steps.
  std::vector<std::string> counters;
  // The fingerprint (plan::Fingerprint) of the plan that made the program, if recorded. Job facts contain it
  // too, and are compared at hello.
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
Result<ServerRole> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv);

}  // namespace penstock::roles
