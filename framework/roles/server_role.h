// What a pserver serves, recovered from the wiring of its program: which gradients belong together and in
// which order (the inputs of the op that merges them), which block updates what, and how far it may be cut
// into chunks. No name is ever parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(ServerRole role, ReadServer(ops, pserver_program, listen_and_serv));
//   for (const ServedParam& served : role.params) ... served.grads update served.param
//
// Programs of every mode are read: which modes run is for the runtime to say. Plain data: it does not need
// the program.
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

// A way to ask for rows of a table sharded by id.
struct ServedLookup {
  std::string ids;            // the name of the question
  std::int64_t padding = -1;  // the id that stands for no row; -1: none
};

// One parameter piece on a server, or a variable that it only holds: trainer 0's initial value, for all to
// pull.
struct ServedParam {
  PieceType param;
  bool start = false;  // held only: no block, no gradients
  int block = 0;       // the optimize block that updates it
  // By trainer: the order in which the merge adds them. One alone where nothing merges: all trainers send
  // under that name, and each gradient is applied for itself.
  std::vector<std::string> grads;
  Compression compression = {};  // of each of them, on its way
  bool elementwise = false;      // every op of the block: it may run on a row range
  bool rows = false;             // the gradients are rows: then it is not cut into chunks
  // It is a shard of a table sharded by id: `param` is the whole table, of which some rows live
  // here.
  bool by_id = false;
  std::vector<ServedLookup> lookups = {};  // of by_id
  // Rows that are merged, updated and versioned together, as the program's plan says. Nothing: it has no
  // plan.
  std::optional<Dim> chunk_rows = {};
  // The parameter that it is rows of ("": nothing says), and which is the first of them (nothing: not
  // recorded).
  std::string logical = {};
  std::optional<Dim> row_begin = {};
  int measure_block = -1;  // merges and measures the gradient before any update runs; -1: `block` merges
  // Its update reads what is made of the measures of all gradients, or it has a measure block.
  bool clips = false;
  bool delta = false;  // geo: what arrives is a difference, which `block` adds
  // Delay compensation: copies of the parameter as each trainer last fetched it, by trainer, and the variable
  // that says whose gradient is worked on.
  std::vector<std::string> backups = {};
  std::string backup_of = {};

  // What a trainer sends for it.
  const std::string& GradientOf(int trainer) const {
    return grads.size() == 1 ? grads.front() : grads[static_cast<std::size_t>(trainer)];
  }
};

// What servers tell each other of their merged gradients before any of them updates (exchange_sums).
struct ServedExchange {
  struct Value {
    PieceType type;
    int owner = 0;  // that measures it: a position among `servers`
  };
  std::vector<std::string> servers;  // addresses of all that take part; empty: there is no exchange
  int self = 0;                      // the position of this server
  std::vector<Value> values;         // in the order that is the same on all servers

  std::string ToText() const;            // a line for each server and value
  std::size_t BytesOf(int owner) const;  // of all its values
};

struct ServerRole {
  std::string address;
  int trainers = 0;
  int save_block = -1;              // saves tables sharded by id; -1: there are none
  int lr_block = -1;                // runs once a step, before the optimize blocks; -1: none
  std::vector<ServedParam> params;  // by name
  std::string job_facts;            // what its program says of the job; empty: nothing
  ServeMode mode = ServeMode::kSync;
  int number = -1;             // its position among the servers; -1: the program does not say
  bool keeps_backups = false;  // of each parameter, as each trainer last fetched it
  // Blocks without an update, in the order in which they run before all updates: they measure gradients, and
  // the last may exchange what was measured with other servers (shared_block; -1: none does).
  std::vector<int> measure_blocks;
  int shared_block = -1;
  ServedExchange exchange;
  // What the learning rate's block counts where trainers tell of their steps: by trainer.
  std::vector<std::string> counters;
  // Of the plan that made the program, where it carries one: what plan::Fingerprint says of it. Job facts
  // name it too, and are compared at hello.
  std::optional<std::uint64_t> plan_fingerprint;
};

// `listen_and_serv` is of the program.
//
// kInvalidArgument, all of what no mode could serve:
//   E-server-trainers   Fanin is out of range
//   E-server-block      a block does not exist
//   E-server-optimizer  a block updates nothing, or two parameters
//   E-server-merge      gradients that are merged do not fit the trainers, each other, or what is
//                       received
//   E-server-twice      a parameter is updated or held twice
//   E-server-compression  the gradients of a parameter are compressed in different ways, or cannot be
//   E-server-lookup     a question that no block can answer
//   E-server-exchange   measures that servers could not tell each other
//   E-server-chunk      the plan cuts a piece as its update does not allow
//   E-op-unknown, E-contract-var, E-contract-shape, E-policy-value, E-text-syntax, E-compression-value
Result<ServerRole> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv);

}  // namespace penstock::roles
