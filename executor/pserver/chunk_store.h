// The memory of a parameter server: for every chunk a scope in which each variable shaped like the piece is
// the chunk's rows of it, and what the optimizer keeps whole (adam's beta powers) is the chunk's own, so that
// all chunks evolve alike. Of an initial value there is only the chunk itself, which its one merge fills.
// A table sharded by id is one chunk, whose scope has the columns of its rows (executor/table).
//
//   store.Merge({.trainer = 0, .parts = g0});  store.Merge({.trainer = 1, .parts = g1});
//   store.Run({.step = 0}, runner);
//   store.Publish(0, 0, 1, trainer)->part(0)
//
// Merging adds each gradient, in trainer order, to one sum that takes the place of the block's own `sum` and
// `scale` (merge_plan.h, gradient_sum.h) and lives until the block has run. Where a block merges in another
// way, or the gradients are rows, each gradient is copied to where the block reads it.
//
// Where gradients are clipped by a norm over all of them, Measure stands between merging and Combine, and
// Combine before Run: what a chunk's measure block makes for all is put into the server's scope, what other
// servers told is put beside it, and there the shared block runs (state_machine_sums.cc).
//
// Thread-safe for different chunks. What is done to one chunk is done one at a time, on its queue
// (chunk_queues.h): Merge, Measure, Run, Publish, PublishNewest, VersionOf, Gather, GatherChanged,
// CopyForSave; on that of the learning-rate block OwnSums and Combine. The rest may be called at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/protocol/contract.h"
#include "executor/pserver/backups.h"
#include "executor/pserver/buffer_pool.h"
#include "executor/pserver/changed_rows.h"
#include "executor/pserver/merge_plan.h"
#include "executor/pserver/published.h"
#include "executor/pserver/state_machine.h"
#include "executor/table/row_table.h"
#include "framework/ir/program.h"
#include "framework/runtime/block_runner.h"
#include "framework/tensor/scope.h"

namespace penstock::pserver {

class ChunkStore {
 public:
  // `scope` holds the parameters and optimizer state, and outlives the store.
  // kFailedPrecondition if a parameter has no value yet: the startup program was not run.
  // Pieces are cut into chunks of at most `chunk_bytes`, where their update allows it. Nothing: as the
  // program's plan says; a program without one is cut by the planner's rule (tensor/chunk.h). What is
  // published travels in parts of `part_bytes`.
  static Result<std::unique_ptr<ChunkStore>> Make(const Program& program, const roles::ServerRole& facts,
                                                  Scope& scope, std::optional<std::size_t> chunk_bytes = {},
                                                  std::size_t part_bytes = kMaxBodyBytes);

  std::vector<MachineConfig::Param> Shapes() const;  // for the state machine
  Dim chunk_rows(int param) const { return params_[static_cast<std::size_t>(param)].chunk_rows; }
  std::size_t chunk_count(int param) const { return params_[static_cast<std::size_t>(param)].chunks.size(); }

  // Merge may be told of fewer gradients than trainers (MergeAction::of), and divides by their number.
  // kUnimplemented E-server-backup: the update of a param is not made of the mean of the gradients.
  Status RequireMeans() const;

  // Numbers for queues: one for each chunk, and (param -1) for the learning-rate block.
  std::size_t QueueOf(int param, int chunk) const;
  std::size_t queue_count() const { return QueueOf(-1, 0) + 1; }
  std::size_t ChunkBytes(int param, int chunk) const { return At(param, chunk).param.bytes(); }
  std::size_t GatheredBytes(const RowsEvent& pull) const;
  // Memory beside the variables of the scope: sums under way and published copies (BufferPool::bytes_made).
  std::size_t pooled_bytes() const { return pool_.bytes_made(); }

  // kInvalidArgument E-rpc-row: a gradient of rows lists one that the piece does not have.
  // kDataLoss E-rpc-compressed: bytes of a compressed gradient that are none.
  // kFailedPrecondition E-load-differs: two trainers began from different values.
  Status Merge(const MergeAction& merge);
  Status Run(const RunAction& run, BlockRunner& runner);
  // Runs the block that measures the merged gradient; ok at once if the param has none.
  Status Measure(const MeasureAction& measure, BlockRunner& runner);
  // What this server tells the others, once all its chunks have been measured: a copy.
  Payload OwnSums() const;
  // Runs the shared block; the sums are as ServedExchange::BytesOf says.
  Status Combine(const CombineAction& combine, BlockRunner& runner);
  // The chunk at this version (nothing: at the one that it has now), for one trainer: copied once, shared by
  // all who ask, and kept until every trainer has been given it, or a later version is asked for. Null: that
  // version is overwritten, and there is no copy of it. `checksums`: a copy that this call makes has them.
  std::shared_ptr<const Published> Publish(int param, int chunk, std::optional<std::uint64_t> version,
                                           int trainer, bool checksums);
  // What a trainer gets that asks for the version where it may have a newer one: the chunk as it is, of so
  // many updates. Where gradients are corrected for delay, a repeated question gets what the first one got.
  struct Newest {
    std::shared_ptr<const Published> value;
    std::uint64_t updates = 0;
  };
  Newest PublishNewest(int param, int chunk, int trainer, std::uint64_t version, bool checksums);
  // How many updates the chunk has had; on its queue.
  std::uint64_t VersionOf(int param, int chunk) const { return At(param, chunk).version; }
  // Rows of a table as they are now, one for each id of the question.
  Tensor Gather(const RowsEvent& pull) const;
  // Whether trainers may ask which rows of the param were updated: of tables in geo-SGD.
  bool NotesChanges(int param) const { return params_[static_cast<std::size_t>(param)].changed.has_value(); }
  // Rows as they are now: those updated since the trainer's question of a lower version. Ids, then values.
  struct Changed {
    std::uint64_t rows = 0;
    Tensor bytes;
  };
  Changed GatherChanged(const RowsEvent& pull);
  // kInvalidArgument E-rpc-row: `ids` are not int64, or one is not a row of the table. A table sharded by id
  // has a row for any int64.
  Status CheckIds(int param, int trainer, const Payload& ids) const;
  // Of tables sharded by id: the number of the param, -1 if there is none of that name.
  int FindTable(const std::string& name) const;
  // The table as it is at the first call, copied bit by bit: the call that completes it returns it, the next
  // begins anew. An update in between first copies what is missing.
  std::optional<SelectedRows> CopyForSave(int param);
  // Puts such a copy into a file, as the program's save block says; anywhere, at any time.
  Status SaveTable(const SaveEvent& save, SelectedRows rows, BlockRunner& runner) const;
  // The rows of all tables, put into the server's scope. Nothing may write to one meanwhile.
  void PublishTables() const;

 private:
  struct View {  // a variable that the block writes, and the memory where the result belongs
    Variable* variable;
    Tensor rows;
  };
  struct Chunk {
    std::unique_ptr<Scope> scope;
    int merged = 0;                             // gradients in the sum
    std::optional<std::vector<Payload>> first;  // the first of them, until it is added to the second
    Variable* sum = nullptr;  // where gradients are added up, between the first and the block's end; or
    // Where each is kept, by trainer; or one alone, of whoever's turn it is.
    std::vector<std::shared_ptr<Variable>> grads;
    std::vector<View> views;
    std::vector<std::pair<const Variable*, Variable*>> measures;  // its own, and where all find it
    std::optional<Backups> backups;                               // where gradients are corrected for delay
    Tensor param;                                                 // its rows of the parameter
    std::uint64_t version = 0;
    std::shared_ptr<const Published> published;  // of published_version
    std::uint64_t published_version = 0;
    std::set<int> published_to;            // trainers
    std::optional<int> initial_of;         // the trainer whose value the chunk began from
    std::optional<table::RowCopy> saving;  // of a table: as far as it got
  };
  struct Param {
    protocol::ContractPiece piece;
    bool start = false;
    bool rows = false;             // its gradients are
    Compression compression = {};  // of its gradients, on their way
    int addends = 0;               // gradients of an update
    int block = 0;
    int measure_block = -1;
    bool clips = false;
    Dim chunk_rows = 0;
    std::optional<MergePlan> merge;
    std::size_t first_queue = 0;
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::unique_ptr<table::RowTable> table;  // of one sharded by id
    std::optional<ChangedRows> changed;      // on the queue of the one chunk
  };

  ChunkStore(const Program& program, const roles::ServerRole& facts, Scope& scope, std::size_t part_bytes)
      : program_(program), facts_(facts), scope_(scope), part_bytes_(part_bytes) {}
  Status AddParam(const roles::ServedParam& served, std::optional<std::size_t> chunk_bytes);
  Status AddTable(const roles::ServedParam& served);
  Param& NewParam(const roles::ServedParam& served);
  void TakeOverMerge(const roles::ServedParam& served, Param& param);
  void TakeOverWhose(const roles::ServedParam& served);
  static void AddGradients(const roles::ServedParam& served, const std::optional<MergePlan>& merge,
                           Chunk& chunk);
  static Status AddBackups(const roles::ServedParam& served, Chunk& chunk);
  // The variable of the trainer's gradient, where the sum is the block's.
  static Variable& GradientOf(const Chunk& chunk, int trainer) {
    return *chunk.grads[chunk.grads.size() == 1 ? 0 : static_cast<std::size_t>(trainer)];
  }
  Status CountStep(int trainer);
  Status RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner);
  Status SetInitial(const MergeAction& merge);
  Status MergeRows(const MergeAction& merge, SelectedRows& gradient) const;
  Status AddChunk(const roles::ServedParam& served, const Tensor& whole, Dim begin, Dim end, Param& param);
  void TakeOverExchange();
  void AddMeasures(int block, Chunk& chunk);
  Status MergeTensor(const MergeAction& merge, const Param& param, Chunk& chunk);
  Status MergeExpanded(const MergeAction& merge, const Param& param, Chunk& chunk);
  void AddToSum(const MergeAction& merge, const Param& param, Chunk& chunk);
  Chunk& At(int param, int chunk) const {
    return *params_[static_cast<std::size_t>(param)].chunks[static_cast<std::size_t>(chunk)];
  }

  Program program_;  // its optimize blocks without what the store does in their place
  const roles::ServerRole facts_;
  Scope& scope_;
  const std::size_t part_bytes_;
  BufferPool pool_;
  std::set<std::string> made_for_all_;  // variables that the learning rate's and the shared block write
  std::set<std::string> shared_reads_;  // variables that the shared block reads
  std::vector<Param> params_;
};

}  // namespace penstock::pserver
