// The data flow of a pserver's program: for each optimize block the variables that it receives, how it merges
// them, and what it updates. Derived from the ops' inputs and outputs, in the order of the ops; names are
// never parsed.
//
//   const ServeView serve(*FindServe(program.main()));
//   const std::vector<int> blocks = {1, 2};
//   const ViewSet arriving = ArrivingAt(ops, program, serve, blocks);
//   for (const Update& update : ReadWiring(ops, program, serve.mode(), blocks, arriving).updates)
//     ... block update.block adds up update.merge_inputs and updates update.param with update.grad
//
// Reading never fails; missing parts are empty. All strings and ops belong to the program, which must outlive
// this.
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

// The slots of an op that updates a parameter: from its declaration, or Fluid's usual slots if the registry
// does not know the op. nullopt if the op is not an optimizer. For a known op, the strings belong to the
// registry.
struct OptimizerSlots {
  std::string_view param, grad, rate;
  bool elementwise = true;
};
std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops);

// One optimize block.
struct Update {
  int block = 0;
  int merge_block = 0;  // reads the arriving gradient; not `block` if another block measures it
  std::vector<std::string_view> consumes;  // arriving variables that are read here, in the order of reading
  Names merge_inputs;                      // inputs of its `sum`, in order: the trainers' gradients
  const Op* merge = nullptr;
  std::string_view merged;            // the output of the sum; empty without one
  std::vector<const Op*> scales;      // scale the merged gradient in place before any other op reads it
  std::vector<const Op*> optimizers;  // exactly one in a correct program
  const Op* optimizer = nullptr;      // the first of them
  std::string_view param, grad;       // the optimizer's arguments
  // No optimizer op: `optimizer` is the last op that writes the parameter, `grad` the merged gradient.
  bool by_hand = false;
  bool delta = false;  // geo: adds the arriving difference to a parameter
};

struct ServerWiring {
  std::vector<Update> updates;  // in the order of the blocks
  // Blocks that run before any update: blocks that merge and measure a gradient, and shared_block, which
  // computes from all measures (-1: none does).
  std::vector<int> preludes;
  int shared_block = -1;
  const Op* exchange = nullptr;  // sends the measures to other pservers; null if none does
};

// All variables that may arrive, according to the server's program alone: the variables that listen_and_serv
// lists, gradients of tables sharded by id, and in geo mode the names that are mapped to blocks.
ViewSet ArrivingAt(const OpRegistry& ops, const Program& program, const ServeView& serve,
                   std::span<const int> blocks);

//   blocks    the blocks of `optimize_blocks` to read; each must exist; without the learning rate's block
//   arriving  all names that may arrive
//
// Preludes are read only in sync mode, differences only in geo mode.
ServerWiring ReadWiring(const OpRegistry& ops, const Program& program, ServeMode mode,
                        std::span<const int> blocks, const ViewSet& arriving);

// The counters of the learning rate's block: all inputs, except those that the block writes, of ops that read
// an arriving variable. The counter of a trainer that sends nothing is therefore included.
std::vector<std::string_view> ReadCounters(const Program& program, int lr_block, const ViewSet& arriving);

// Whether the variable that the block sees under this name is selected rows.
bool IsRows(const Program& program, int block, std::string_view name);

// The whole parameter of which a variable is a piece.
struct LogicalRows {
  std::string_view whole;        // empty: not recorded
  std::optional<Dim> row_begin;  // of the piece's first row in the whole; nullopt: not recorded
};
// Taken from the slice that the program records. Programs of Fluid or compat mode record none; then from the
// (param, grad) pairs of the block's ops.
LogicalRows LogicalRowsOf(const Program& program, int block, std::string_view piece);

}  // namespace penstock::roles
