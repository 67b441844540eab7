// The data flow of a pserver's program: for each optimize block the variables it receives, how it merges
// them, and what it updates. Follows from which op reads what, in the order of the ops; names are never
// parsed.
//
//   const ServeView serve(*FindServe(program.main()));
//   const std::vector<int> blocks = {1, 2};
//   const ViewSet arriving = ArrivingAt(ops, program, serve, blocks);
//   for (const Update& update : ReadWiring(ops, program, serve.mode(), blocks, arriving).updates)
//     ... block update.block adds up update.merge_inputs and updates update.param with update.grad
//
// Reading never fails; what is missing is empty. All strings and ops belong to the program and outlive this.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/roles/views.h"

namespace penstock::roles {

// The slots of an op that updates a parameter: from its declaration, or Fluid's if the registry does not know
// it. nullopt if it is no optimizer. For a known op, the strings belong to the registry.
struct OptimizerSlots {
  std::string_view param, grad, rate;
  bool elementwise = true;
};
std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops);

// One optimize block.
struct Update {
  int block = 0;
  int merge_block = 0;  // where its gradient arrives; another block if it is measured before any update
  std::vector<std::string_view> consumes;  // arriving variables that are read here, in the order of reading
  Names merge_inputs;                      // of its `sum`, in order: the trainers' gradients
  const Op* merge = nullptr;
  std::string_view merged;            // the output of the sum; empty without one
  std::vector<const Op*> scales;      // in place on the merged gradient, before any other op reads it
  std::vector<const Op*> optimizers;  // one, in a correct program
  const Op* optimizer = nullptr;      // the first
  std::string_view param, grad;       // what the optimizer works on
  bool delta = false;                 // geo: adds what arrives to a parameter
};

struct ServerWiring {
  std::vector<Update> updates;  // in the order of the blocks
  // Blocks that run before any update: those that merge and measure a gradient, and one that
  // computes from all measures (-1: none does).
  std::vector<int> preludes;
  int shared_block = -1;
  const Op* exchange = nullptr;  // sends the measures to other pservers; null if none does
};

// All variables that may arrive, as far as the server's program alone tells: those that listen_and_serv
// lists, gradients of tables sharded by id, and in geo mode the names mapped to blocks.
ViewSet ArrivingAt(const OpRegistry& ops, const Program& program, const ServeView& serve,
                   std::span<const int> blocks);

//   blocks    those of `optimize_blocks` to read: each exists; the learning rate's is not among them
//   arriving  all names that may arrive
// Only a server in sync mode measures before it updates, and only one in geo mode adds differences.
ServerWiring ReadWiring(const OpRegistry& ops, const Program& program, ServeMode mode,
                        std::span<const int> blocks, const ViewSet& arriving);

// The counters of the learning rate's block: inputs, which it does not write itself, of the ops that read
// arriving variables. The counter of a trainer that sends nothing stands beside one of a trainer that does.
std::vector<std::string_view> ReadCounters(const Program& program, int lr_block, const ViewSet& arriving);

// Whether the name is selected rows where the block looks it up.
bool IsRows(const Program& program, int block, std::string_view name);

// The parameter whose rows a piece holds.
struct LogicalRows {
  std::string_view whole;        // empty: not recorded
  std::optional<Dim> row_begin;  // of the piece's first row in the whole; nullopt: not recorded
};
// From the slice that the program records (unless Fluid or compat mode made it), else from the (param,
// grad) pairs of the block's ops.
LogicalRows LogicalRowsOf(const Program& program, int block, std::string_view piece);

}  // namespace penstock::roles
