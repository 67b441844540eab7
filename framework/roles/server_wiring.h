// What a pserver's program does with what arrives: per optimize block what it reads of it, how that is
// merged, and what is updated with it. Found from which op reads what, in the order of the ops; no name is
// ever parsed.
//
//   const ServeView serve(*FindServe(program.main()));
//   const std::vector<int> blocks = {1, 2};
//   const ViewSet arriving = ArrivingAt(ops, program, serve, blocks);
//   for (const Update& update : ReadWiring(ops, program, serve.mode(), blocks, arriving).updates)
//     ... block update.block adds up update.merge_inputs and updates update.param with update.grad
//
// Reading never fails; what is not there is empty. All texts and ops are the program's, which outlives them.
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

// The slots of an op that updates a parameter: as it declares, or Fluid's if the registry does not know it.
// Nothing if it is none. Of an op that is known, the texts are the registry's.
struct OptimizerSlots {
  std::string_view param, grad, rate;
  bool elementwise = true;
};
std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops);

// One optimize block.
struct Update {
  int block = 0;
  int merge_block = 0;  // where its gradient comes in; another one if it is measured before any update
  std::vector<std::string_view> consumes;  // what arrives and is read here, in the order of reading
  Names merge_inputs;                      // of its `sum`, in order: the trainers' gradients
  const Op* merge = nullptr;
  std::string_view merged;            // what the sum writes; without one, empty
  std::vector<const Op*> scales;      // in place on the merged gradient, up to its first other reader
  std::vector<const Op*> optimizers;  // one, in a correct program
  const Op* optimizer = nullptr;      // the first
  std::string_view param, grad;       // what the optimizer works on
  bool delta = false;                 // geo: adds what arrives to a parameter
};

struct ServerWiring {
  std::vector<Update> updates;  // in the order of the blocks
  // Blocks that run before any update: those that merge and measure the gradient of an update, and one that
  // computes for all of them what no gradient alone says (-1: none does).
  std::vector<int> preludes;
  int shared_block = -1;
  const Op* exchange = nullptr;  // tells other pservers what was measured here; null if none does
};

// All that may come in, as far as the server's program alone says it: what listen_and_serv lists, the
// gradients of tables sharded by id, and in geo mode what is mapped to blocks.
ViewSet ArrivingAt(const OpRegistry& ops, const Program& program, const ServeView& serve,
                   std::span<const int> blocks);

//   blocks    of `optimize_blocks`, those to read: each exists; the learning rate's is none of them
//   arriving  all names that may come in
// Only a server in sync mode measures before it updates, and only one in geo mode adds differences.
ServerWiring ReadWiring(const OpRegistry& ops, const Program& program, ServeMode mode,
                        std::span<const int> blocks, const ViewSet& arriving);

// What the learning rate's block counts: inputs, which it does not write itself, of the ops that read what
// arrives. The counter of a trainer from which nothing arrives stands beside one that does.
std::vector<std::string_view> ReadCounters(const Program& program, int lr_block, const ViewSet& arriving);

// Whether the block sees selected rows under that name.
bool IsRows(const Program& program, int block, std::string_view name);

// The parameter that a piece is rows of.
struct LogicalRows {
  std::string_view whole;        // empty: nothing says it
  std::optional<Dim> row_begin;  // of the piece's first row in the whole; nothing: not recorded
};
// From the slice that the program records (it does unless Fluid or compat made it), else from the (param,
// grad) pairs of the block's ops.
LogicalRows LogicalRowsOf(const Program& program, int block, std::string_view piece);

}  // namespace penstock::roles
