// The memory of a parameter server: for every chunk a scope in which each variable shaped like the piece is
// the chunk's rows of it, and what the optimizer keeps whole (adam's beta powers) is the chunk's own, so that
// all chunks evolve alike. Of a start value there is only the chunk itself, which its one merge fills.
// A table that is dealt out by id is one chunk, whose scope has the columns of its rows (executor/table).
// Merging copies a gradient, a tensor or rows of one, to where the optimize block reads it; the block's own
// `sum` and `scale` add them up, in trainer order.
//
// Thread-safe for different chunks; what is done to one chunk is done one at a time (the state machine sees
// to it).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/protocol/contract.h"
#include "executor/pserver/state_machine.h"
#include "executor/table/row_table.h"
#include "framework/runtime/block_runner.h"
#include "framework/tensor/scope.h"

namespace penstock::pserver {

class ChunkStore {
 public:
  // `scope` holds the parameters and optimizer state, and outlives the store; so does the program.
  // kFailedPrecondition if a parameter has no value yet: the start-up program was not run.
  // Pieces are cut into chunks of at most `chunk_bytes`, where their update allows it. Nothing: as the
  // program's plan says; a program without one is cut by the planner's rule (tensor/chunk.h).
  static Result<std::unique_ptr<ChunkStore>> Make(const Program& program, const roles::ServerRole& facts,
                                                  Scope& scope, std::optional<std::size_t> chunk_bytes = {});

  std::vector<MachineConfig::Param> Shapes() const;  // for the state machine
  Dim chunk_rows(int param) const { return params_[static_cast<std::size_t>(param)].chunk_rows; }
  std::size_t chunk_count(int param) const { return params_[static_cast<std::size_t>(param)].chunks.size(); }

  // kInvalidArgument E-rpc-row: a gradient of rows lists one that the piece does not have.
  // kFailedPrecondition E-load-differs: two trainers began from different values.
  Status Merge(const MergeAction& merge);
  Status Run(const RunAction& run, BlockRunner& runner);
  // The chunk as it is at this version: copied once, shared by all who ask. No block may run on it the first
  // time.
  const Tensor& Snapshot(int param, int chunk, std::uint64_t version);
  // Rows of a table as they are now, one for each id of the question. No block may run on it.
  Tensor Gather(const RowsEvent& pull) const;
  // kInvalidArgument E-rpc-row: `ids` are no numbers, or one is no row of the table. One that is dealt out by
  // id has a row for any int64.
  Status CheckIds(int param, int trainer, const Payload& ids) const;
  // Of tables that are dealt out by id: the number of the param, -1 if there is none of that name; the rows,
  // put into the server's scope (no block may run on it); and from there into a file, as the program's save
  // block says.
  int FindTable(const std::string& name) const;
  void PublishTable(int param) const;
  void PublishTables() const;
  Status SaveTable(const SaveEvent& save, BlockRunner& runner) const;

 private:
  struct View {  // a variable that the block writes, and the memory where the result belongs
    Variable* variable;
    Tensor rows;
  };
  struct Chunk {
    std::unique_ptr<Scope> scope;
    std::vector<std::shared_ptr<Variable>> grads;  // by trainer
    std::vector<View> views;
    Tensor param;  // its rows of the parameter
    Tensor copy;   // of `copy_version`, if initialised
    std::uint64_t copy_version = 0;
    std::optional<int> initial_of;  // the trainer whose value the chunk began from
  };
  struct Param {
    protocol::ContractPiece piece;
    bool start = false;
    bool rows = false;  // its gradients are
    int block = 0;
    Dim chunk_rows = 0;
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::unique_ptr<table::RowTable> table;  // of one that is dealt out by id
  };

  ChunkStore(const Program& program, const roles::ServerRole& facts, Scope& scope)
      : program_(program), facts_(facts), scope_(scope) {}
  Status AddParam(const roles::ServedParam& served, std::optional<std::size_t> chunk_bytes);
  Status AddTable(const roles::ServedParam& served);
  static void AddGradients(const roles::ServedParam& served, Chunk& chunk);
  Status RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner);
  Status SetInitial(const MergeAction& merge);
  Status MergeRows(const MergeAction& merge, SelectedRows& gradient) const;
  Status AddChunk(const roles::ServedParam& served, const Tensor& whole, Dim begin, Dim end, Param& param);
  Chunk& At(int param, int chunk) {
    return *params_[static_cast<std::size_t>(param)].chunks[static_cast<std::size_t>(chunk)];
  }

  const Program& program_;
  const roles::ServerRole facts_;
  Scope& scope_;
  std::set<std::string> made_by_schedule_;  // variables that the block of the learning rate writes
  std::vector<Param> params_;
};

}  // namespace penstock::pserver
