// The memory of a parameter server. Each chunk has its own scope, whose variables are views of the chunk's
// rows; state that the optimizer does not keep per row (adam's beta powers) has a copy per chunk, so all
// chunks evolve alike. A held parameter has only the chunk itself, which its one merge fills. Of a table
// sharded by id, a chunk is a shard (TableShards), with a table::RowTable of its own.
//
//   store.Merge({.trainer = 0, .parts = g0});  store.Merge({.trainer = 1, .parts = g1});
//   store.Run({.step = 0}, runner);
//   store.Publish(0, 0, 1, trainer, true)->part(0)     // version 1 of the first chunk of the first param
//
// Merging adds each gradient, in trainer order, to one sum that replaces the block's own `sum` and `scale`
// (merge_plan.h, gradient_sum.h) and lives until the block has run. If a block merges differently, or the
// gradients are sparse, each gradient is copied to where the block reads it.
//
// If gradients are clipped by a norm over all of them, Measure follows merging, and Combine follows Measure,
// before Run: the results of the chunks' measure blocks are put into the server's scope, beside the results
// that other servers sent, and the shared block runs there (state_machine_sums.cc).
//
// Thread-safe for different chunks. These run one at a time on the queue of their chunk (chunk_queues.h):
// Merge, Measure, Run, Publish, PublishNewest, VersionOf, Gather, GatherChanged, CopyForSave,
// CopyForCheckpoint, CopyTable, CopyState, BeginCut, CopyCut, BeginSweep, Sweep, RowCountsOf, SetUpdate,
// DropKey; on the queue of the learning-rate block: its Run, OwnSums, Combine, CopyRates, CopyShared.
// PublishTables has its own rule; the others may be called at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/protocol/contract.h"
#include "executor/pserver/machine/state_machine.h"
#include "executor/pserver/memory/buffer_pool.h"
#include "executor/pserver/memory/chunk_policy.h"
#include "executor/pserver/memory/growing_list.h"
#include "executor/pserver/memory/kept_rows.h"
#include "executor/pserver/memory/lazy_block.h"
#include "executor/pserver/memory/merge_plan.h"
#include "executor/pserver/memory/published.h"
#include "executor/pserver/memory/table_copy.h"
#include "executor/table/row_table.h"
#include "framework/ir/program.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/disk.h"
#include "framework/tensor/scope.h"
#include "framework/text/row_policy.h"

namespace penstock::kvstore {
struct KeyOptimizer;
class KeyTable;
}  // namespace penstock::kvstore

namespace penstock::pserver {

class KeyUpdater;  // key_updater.h

// What the updates of a param keep from one step to the next, at some version of each chunk.
struct StateCopy {
  NamedTensors tensors;       // the param first
  std::size_t constants = 0;  // the last of them, which updates only read
  std::atomic<int> chunks_left = 0;
};

// The same of a chunk of a key.
struct KeyCopy {
  Tensor value;
  std::uint64_t rounds = 0;                                // its updates so far
  std::shared_ptr<const kvstore::KeyOptimizer> optimizer;  // null: pushes replace the value
  std::uint64_t since = 0;                                 // updates by it
  NamedTensors states = {};                                // that it keeps
};

// The number of shards of each table sharded by id. It changes no byte of any result. Tables have one shard
// where an update may depend on all rows of a gradient or of the table: if rows are not updated one by one
// (a clip, a regularizer, an optimizer without a RowRule), with momentum (RowRule::StepsWithoutRows), with a
// budget; and if the startup program gives values without ids.
struct TableShards {
  std::optional<int> exactly = {};  // where a table can have several; nullopt: by its size
  int most = 1;                     // by size: a shard for each 4 MB that the table is expected to have
};

class ChunkStore {
 public:
  // `scope` holds the parameters and optimizer state, and outlives the store.
  // kFailedPrecondition if a parameter has no value yet: the startup program was not run.
  // Cuts pieces into chunks of at most `chunk_limit` if their updates allow it; nullopt: as the program's
  // plan says, or, without a plan, by the planner's rule (tensor/chunk.h). Published chunks travel in parts
  // of `part_bytes`.
  static Result<std::unique_ptr<ChunkStore>> Make(const Program& program, const roles::PserverFacts& facts,
                                                  Scope& scope, std::optional<std::size_t> chunk_limit = {},
                                                  std::size_t part_bytes = kMaxBodyBytes,
                                                  TableShards shards = {}, Disk& disk = SystemDisk());

  // Sets the version of all chunks that are updated. Call before any is used.
  void BeginAt(std::uint64_t version);
  // Trainers may have other values of any row: those that ask which were updated get all.
  void NoteAllRows();
  std::vector<MachineConfig::Param> Shapes() const;  // for the state machine
  Dim chunk_rows(int param) const { return params_[static_cast<std::size_t>(param)].chunk_rows; }
  std::size_t chunk_count(int param) const { return params_[static_cast<std::size_t>(param)].chunks.size(); }

  // Adds a key of a key-value store (chunk_store_keys.cc) after the params that there are, with zeros.
  // Returns its number. kFailedPrecondition E-kv-memory: it is too large.
  struct NewKey {
    protocol::ContractPiece piece;
    bool turns = false;                                   // as in MachineConfig::Param
    bool whole = false;                                   // one chunk, and not a piece of a key
    std::shared_ptr<const kvstore::KeyTable> table = {};  // null: it is no table of any ids
  };
  Result<int> AddKey(const NewKey& key);
  MachineConfig::Param ShapeOf(int param) const;
  // What updates keys from now on, or nothing: then a merged gradient replaces the value. OptimizerFits tells
  // first whether it can update the key: E-kv-optimizer-... SetUpdate is called on the queue of each chunk.
  Status OptimizerFits(const kvstore::KeyOptimizer& optimizer, int param) const;
  Status SetUpdate(std::shared_ptr<const kvstore::KeyOptimizer> optimizer, ChunkId at, bool keeps_state,
                   BlockRunner& runner);

  // For a checkpoint, on the chunk's queue: the copy is of now, and is made by CopyCut, or before the chunk
  // changes. ContinueKey gives a chunk that nobody has used yet what such a copy has.
  void BeginKeyCut(ChunkId at, std::shared_ptr<KeyCopy> copy) {
    At(at.param, at.chunk).key_cut = std::move(copy);
  }
  Status ContinueKey(ChunkId at, const KeyCopy& from, BlockRunner& runner);

  // Frees the memory of a chunk of a key that is used no longer; on its queue.
  void DropKey(ChunkId at);

  // Requires that Merge may get fewer gradients than trainers (MergeAction::of) and divide by their number.
  // kUnimplemented E-server-backup: the update of a param is not made of the mean of the gradients.
  Status RequireMeans() const;

  // From now on, the memory keeps the last version of each chunk and of each row until the next update, for
  // trainers that return (TrainerLoss::kWait). Costs up to two more copies of the parameters' values, and the
  // values of the rows that an update changes. Call before the first job.
  void KeepVersions();
  // Requires that each update can use the mean of fewer gradients than trainers (MergeAction::mean_of).
  // kUnimplemented E-server-shrink.
  Status RequireLiveMeans() const;

  // The index of a queue: one for each chunk, and (param -1) one for the learning-rate block.
  // Numbers below kFirstQueue that QueueOf does not return are the caller's.
  static constexpr std::size_t kFirstQueue = 2;
  std::size_t QueueOf(int param, int chunk) const {
    if (param < 0) return 0;
    return params_[static_cast<std::size_t>(param)].first_queue + static_cast<std::size_t>(chunk);
  }
  std::size_t queue_count() const {
    return params_.empty() ? kFirstQueue : params_.back().first_queue + params_.back().chunks.size();
  }
  std::size_t ChunkBytes(int param, int chunk) const { return At(param, chunk).param.bytes(); }
  std::size_t GatheredBytes(const RowsEvent& pull) const;
  // Memory beside the scope's variables: sums in progress and published copies (BufferPool::bytes_made).
  std::size_t pooled_bytes() const { return pool_.bytes_made(); }

  // kInvalidArgument E-rpc-row: a sparse gradient names a row that the piece does not have.
  // kDataLoss E-rpc-compressed: invalid bytes of a compressed gradient.
  // kFailedPrecondition E-load-differs: two trainers set different values.
  Status Merge(const MergeAction& merge);
  Status Run(const RunAction& run, BlockRunner& runner);
  // Runs the block that measures the merged gradient; ok at once if the param has none.
  Status Measure(const MeasureAction& measure, BlockRunner& runner);
  // A copy of what this server tells the others, once all its chunks have been measured.
  Payload OwnSums() const;
  // Runs the shared block on sums as described by ServedExchange::BytesOf.
  Status Combine(const CombineAction& combine, BlockRunner& runner);
  // The chunk at this version (nullopt: its current one), for one trainer: copied once, shared by all who
  // ask, and kept until every trainer has got it, or a later version is requested; after KeepVersions, until
  // the update after the next. Null: that version was
  // overwritten, and there is no copy of it. `checksums`: a copy made by this call gets checksums.
  std::shared_ptr<const Published> Publish(int param, int chunk, std::optional<std::uint64_t> version,
                                           int trainer, bool checksums);
  // The answer to a trainer that may get a newer version than requested: the current chunk and its number of
  // updates, or what the chunk's policy gives instead.
  struct Newest {
    std::shared_ptr<const Published> value;
    std::uint64_t updates = 0;
  };
  Newest PublishNewest(int param, int chunk, int trainer, std::uint64_t version, bool checksums);
  // The number of updates of the chunk; call on its queue.
  std::uint64_t VersionOf(int param, int chunk) const { return At(param, chunk).version; }
  // kInvalidArgument E-rpc-row: an id of the request is not of its shard.
  Status CheckShard(const RowsEvent& pull) const;
  // The current rows of a table, one for each id of the request; after KeepVersions, in its version. Errors
  // of RowTable::Fetch.
  Result<Tensor> Gather(const RowsEvent& pull) const;
  // Whether trainers may ask which rows of the param were updated: for tables in geo-SGD.
  bool NotesChanges(int param) const { return chunk_count(param) > 0 && At(param, 0).policy->NotesRows(); }
  // The current values of rows updated since the trainer's request of a lower version. Ids, then values.
  struct Changed {
    std::uint64_t rows = 0;
    Tensor bytes;
  };
  Changed GatherChanged(const RowsEvent& pull);
  // kInvalidArgument E-rpc-row: `ids` are not int64, or one is not a row of the table. A table sharded by id
  // has a row for any int64.
  Status CheckIds(int param, int trainer, const RowIds& ids) const;
  // The number of a param of the program that is a table sharded by id; -1 if there is none of that name.
  int FindTable(const std::string& name) const;
  // Copies the shard of a table in portions, as it is at the first call: the call that completes the copy
  // returns it, the next starts a new one. An update in between first copies the rows that it changes, or
  // what is missing, if it may change any. The rows are not in order yet (TableCopy::SortRows, JoinShards).
  std::optional<TableCopy> CopyForSave(int param, int shard = 0);
  // The same for a checkpoint, beside a copy for a save; returns each portion. Of a table whose rows may have
  // missed updates, it has the rows as they lie, and table::RowCopy::versions among the states, and ::history
  // among the scalars, under these names. A store made in a scope with such variables continues from them.
  // BeginCut comes first: the copy is of that time. `changes`: only rows that changed since the last
  // BeginCut.
  void BeginCut(int param, int shard, bool changes);
  CutPortion CopyForCheckpoint(int param, int shard);
  // All of a shard at once, in the order of ids.
  TableCopy CopyTable(int param, int shard = 0) const;
  static std::string VersionsOf(const std::string& table) { return table + "@VERSIONS"; }
  static std::string HistoryOf(const std::string& table) { return table + "@HISTORY"; }
  // Continues the policy of rows of a table, whose rows are in it, before the first update.
  // kInvalidArgument E-server-shape: `life` is of other rows.
  Status RestoreLife(int param, const table::LifeCopy& life);
  // Writes the rows of such a copy to a file, with the program's save block, and the state, if any, to
  // StateFileOf(file); from any thread, at any time.
  Status SaveTable(const SaveEvent& save, TableCopy copy, BlockRunner& runner, Disk& disk) const;
  // The state file is a list of tensors as of WriteState. The first is the int64 ids, with the table's name;
  // then one of the name "crc32c" holds the checksum of the values in the other file, as an int64.
  static std::string StateFileOf(const std::string& table_file) { return table_file + ".state"; }
  bool KeepsState(int table) const;
  // The number of a param that is updated here and is not a table sharded by id; -1 if there is none of that
  // name.
  int FindUpdated(const std::string& name) const;
  // The variables that the updates of a param keep from one step to the next, or only read, the param first;
  // -1: those that the blocks before all updates keep.
  std::vector<std::string> KeptNames(int param) const;
  // A copy to be filled by CopyState on the queue of each chunk, then by CopyRates on that of the
  // learning-rate block; it holds one version of each chunk. WriteState writes it as tensor records, of which
  // the first holds the others' names, one per line.
  std::shared_ptr<StateCopy> BeginStateCopy(int param) const;
  void CopyState(int param, int chunk, StateCopy& copy) const;
  // The same for a checkpoint, of the chunk as it is at BeginCut: made by CopyCut, or by the next update, if
  // that comes before it.
  void BeginCut(int param, int chunk, std::shared_ptr<StateCopy> copy) {
    At(param, chunk).cut = std::move(copy);
  }
  void CopyCut(int param, int chunk);
  void CopyRates(StateCopy& copy) const;
  // The same for a checkpoint: what the blocks that run before all updates keep.
  NamedTensors CopyShared() const;
  static Status WriteState(Disk& disk, const std::string& file, const NamedTensors& tensors);
  bool IsTable(int param) const { return params_[static_cast<std::size_t>(param)].by_id; }
  bool HasTables() const;  // of the program, sharded by id
  bool HasRowPolicies() const { return !row_policies_.empty(); }
  // Whether a checkpoint keeps something of the policy.
  bool KeepsLife(int param) const { return IsTable(param) && At(param, 0).table->has_policy(); }
  bool HasRowPolicy(int param) const {
    return KeepsLife(param) || row_policies_.contains(params_[static_cast<std::size_t>(param)].piece.name);
  }
  // Whether a table has begun to take back memory of evicted rows, or to move rows to disk, and nothing
  // continues it yet: then Sweep must be called on the table's queue, in jobs of their own, until it returns
  // false. Each call takes less
  // than a millisecond.
  bool BeginSweep(int param, int shard = 0);
  bool Sweep(int param, int shard = 0);
  table::RowCounts RowCountsOf(int param, int shard = 0) const;  // zeros for a param that is not a table
  table::ColdCounts ColdCountsOf(int param, int shard = 0) const;
  // Puts the rows of all tables into the server's scope. No table may be written meanwhile. Errors of
  // RowTable::Fetch.
  Status PublishTables() const;

 private:
  struct View {  // a variable that the block writes, and the memory to which the result belongs
    Variable* variable;
    Tensor rows;
  };
  struct Chunk {
    std::unique_ptr<Scope> scope;
    LazyBlock update, measure;                  // in the scope
    int merged = 0;                             // gradients in the sum
    int mean_of = 0;                            // of the last merge
    std::shared_ptr<StateCopy> cut;             // to be filled before the chunk changes
    std::shared_ptr<KeyCopy> key_cut;           // the same, of a key
    std::optional<std::vector<Payload>> first;  // the first of them, until it is added to the second
    // The sum of the gradients, until the block has run.
    Variable* sum = nullptr;
    // Without a sum: each gradient, by trainer; or a single one, of the trainer whose turn it is.
    std::vector<std::shared_ptr<Variable>> grads;
    std::vector<View> views;
    std::vector<std::pair<const Variable*, Variable*>> measures;  // the chunk's own, and the shared variable
    std::unique_ptr<ChunkPolicy> policy = std::make_unique<ChunkPolicy>();
    Tensor param;  // its rows of the parameter
    std::uint64_t version = 0;
    std::shared_ptr<const Published> published;  // of published_version
    std::uint64_t published_version = 0;
    std::set<int> published_to;  // trainers
    // After KeepVersions: the version before the current one; of a table sharded by id, its rows that the
    // last update may have changed.
    std::shared_ptr<const Published> kept;
    std::optional<KeptRows> kept_rows;
    std::optional<int> initial_of;  // the trainer that set the chunk's first value
    // Of a table sharded by id. Its columns are the server's variables, or, of several shards, `columns`.
    std::unique_ptr<table::RowTable> table;
    std::vector<std::unique_ptr<Variable>> columns;
    // A copy of the table in progress, and the scalars of that time.
    struct Copying {
      table::RowCopy rows;
      NamedTensors scalars;
    };
    std::optional<Copying> saving, cutting;
    bool sweeps = false;       // calls of Sweep follow
    bool is_over = false;      // the table is in the server's scope
    std::mutex rows_may_move;  // taken by Sweep and PublishTables
    // Of a key: what updates it (null: a gradient replaces it), since which version, and the greatest
    // MergeAction::largest of the version in progress.
    std::shared_ptr<KeyUpdater> updater;
    std::uint64_t updates_since = 0, largest = 0;
  };
  struct RowUpdate {  // how rows are updated one by one
    roles::RowOptimizer optimizer;
    std::optional<float> factor;  // multiplies the sum of the gradients
  };
  struct Param {
    protocol::ContractPiece piece;
    bool start = false;
    bool is_key = false, turns = false, whole = false;  // of AddKey
    bool rows = false;                                  // its gradients are sparse
    Compression compression = {};                       // of its gradients, in transit
    int addends = 0;                                    // gradients of an update
    int block = 0;
    int measure_block = -1;
    bool clips = false;
    Dim chunk_rows = 0;
    std::optional<MergePlan> merge;
    std::size_t first_queue = 0;
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::vector<std::string> state;                      // what its updates write and keep
    std::vector<std::string> constants;                  // what they only read, such as a learning rate
    bool by_id = false;                                  // a table sharded by id
    std::optional<RowUpdate> row_update;                 // of such a table, in place of `block`
    std::shared_ptr<const kvstore::KeyTable> key_table;  // of a key that is such a table
  };

  ChunkStore(const Program& program, const roles::PserverFacts& facts, Scope& scope, std::size_t part_bytes,
             TableShards shards, Disk& disk)
      : program_(program),
        facts_(facts),
        scope_(scope),
        part_bytes_(part_bytes),
        shards_(shards),
        disk_(disk) {}
  NamedTensors ScalarsOf(const Param& param) const;
  NamedTensors ScalarsOfCut(const Param& param, int shard, table::RowCopy& rows) const;
  static TableCopy CopyOf(const Param& param, const Chunk& chunk, Chunk::Copying copied);
  static void CopyBefore(Chunk& chunk);
  Status AddParam(const roles::ServedParam& served, std::optional<std::size_t> chunk_limit);
  Status AddTable(const roles::ServedParam& served);
  std::vector<table::RowTable::ColumnSource> ColumnsOf(const roles::ServedParam& served) const;
  std::uint32_t ShardsOf(const Param& param, const std::vector<table::RowTable::ColumnSource>& columns) const;
  Status AddShard(const roles::ServedParam& served, std::vector<table::RowTable::ColumnSource> columns,
                  std::uint32_t shards, Param& param);
  Status ContinueHistory(const Param& param);
  static void FreeSources(const Param& param);
  std::optional<RowUpdate> FindRowUpdate(const roles::ServedParam& served) const;
  RowPolicy PolicyOf(const Param& param, std::uint32_t shards) const;
  Status FetchListed(const Param& param, Chunk& chunk) const;
  void NoteForSave(const std::string& name, bool written, Param& param) const;
  Param& NewParam(const roles::ServedParam& served);
  void TakeOverMerge(const roles::ServedParam& served, Param& param);
  bool IsShared(const std::string& name) const;
  static void AddGradients(const roles::ServedParam& served, const std::optional<MergePlan>& merge,
                           Chunk& chunk);
  // Requires that the chunk's scope is complete.
  Status AddPolicy(const roles::ServedParam& served, Chunk& chunk) const;
  // The variable of the trainer's gradient, if the block itself adds the gradients.
  static Variable& GradientOf(const Chunk& chunk, int trainer) {
    return *chunk.grads[chunk.grads.size() == 1 ? 0 : static_cast<std::size_t>(trainer)];
  }
  static std::size_t RowBytes(const protocol::ContractPiece& piece) {
    return static_cast<std::size_t>(piece.shape.RowWidth()) * SizeOf(piece.dtype);
  }
  // The factor of the program's own `scale` for the mean of so many gradients.
  static float MeanOf(int gradients) { return static_cast<float>(1.0 / gradients); }
  static std::vector<std::string> KeptBy(const Program& program, int block);
  static std::vector<std::string> CountedBy(const Program& program, int block,
                                            const std::vector<std::string>& counters);
  Status CountStep(int trainer);
  Status KeepVersion(const Param& param, Chunk& chunk);
  std::optional<float> FactorOf(const Param& param) const;
  void ScaleRows(const Param& param, const Chunk& chunk) const;
  Status RunOnRows(const Param& param, Chunk& chunk, BlockRunner& runner);
  Status UpdateTable(const Param& param, Chunk& chunk, BlockRunner& runner);
  Status UpdateRows(const Param& param, const Chunk& chunk) const;
  // The trainers determine how many rows there are.
  Status NoMemoryFor(const Param& param, const Chunk& chunk) const;
  // The value of one element that a row update uses.
  Result<std::byte*> ScalarOf(const Param& param, const Chunk& chunk, const std::string& name) const;
  Status SetInitial(const MergeAction& merge);
  Status MergeRows(const MergeAction& merge, SelectedRows& gradient) const;
  Status AddChunk(const roles::ServedParam& served, const Tensor& whole, Dim begin, Dim end, Param& param);
  void TakeOverExchange();
  void AddMeasures(int block, Chunk& chunk);
  Status MergeTensor(const MergeAction& merge, const Param& param, Chunk& chunk);
  Status MergeExpanded(const MergeAction& merge, const Param& param, Chunk& chunk);
  void AddToSum(const MergeAction& merge, const Param& param, Chunk& chunk);
  Status UpdateKey(const Param& param, Chunk& chunk, BlockRunner& runner);
  static void CopyKey(Chunk& chunk);
  Result<int> AddKeyTable(const NewKey& key);
  Status UpdateKeyTable(const Param& param, Chunk& chunk) const;
  static Status ReplaceKey(const Param& param, Chunk& chunk);
  static SelectedRows SumOfRows(const Param& param, const Chunk& chunk);
  Chunk& At(int param, int chunk) const {
    return *params_[static_cast<std::size_t>(param)].chunks[static_cast<std::size_t>(chunk)];
  }

  Program program_;  // its optimize blocks lack what the store does itself
  const roles::PserverFacts facts_;
  Scope& scope_;
  const std::size_t part_bytes_;
  const TableShards shards_;
  Disk& disk_;  // for cold rows
  bool keeps_versions_ = false;
  RowPolicies row_policies_;  // by table
  BufferPool pool_;
  std::set<std::string> made_for_all_;  // variables that the learning rate's and the shared block write
  std::set<std::string> shared_reads_;  // variables that the shared block reads
  LazyBlock rates_, shared_;            // in the server's scope
  GrowingList<Param> params_;
};

}  // namespace penstock::pserver
