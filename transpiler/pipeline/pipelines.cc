#include "transpiler/pipeline/pipelines.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "transpiler/passes/passes.h"

namespace penstock {
namespace {

// Synchronous training: a barrier ends the trainer's sends, another its receives.
constexpr Pass kSyncTrainer[] = {
    {"keep_clipping", KeepClipping},      // first, so that clipped gradients are ones the trainer makes
    {"prefetch_tables", PrefetchTables},  // while lookups stand where the analysis saw them
    {"send_gradients", SendGradients},    // behind the last writer, which may be a regularizer that leaves
                                          // below
    {"send_table_gradients", SendTableGradients},
    {"add_send_barrier", AddSendBarrier},  // behind all sends
    {"receive_params", ReceiveParams},     // waits for the barrier
    {"add_fetch_barrier", AddFetchBarrier},
    {"join_slices", JoinSlices},          // of what the fetch barrier completed
    {"drop_optimizers", DropOptimizers},  // behind all that stand by one of them
    {"name_gradients", NameGradients},    // last: what is renamed is named above
};
constexpr Pass kSyncTrainerStartup[] = {
    {"drop_server_state", DropServerState},
    {"share_start_values", ShareStartValues},  // before the barrier that completes what is received
    {"receive_initial_params", ReceiveInitialParams},
    {"fake_init_tables", FakeInitTables},  // Fluid's order: behind what is received
};
constexpr Pass kSyncPserver[] = {
    {"declare_slices", DeclareSlices},       // what the others name
    {"place_lr_schedule", PlaceLrSchedule},  // its block is the first
    {"place_clipping", PlaceClipping},       // norms over all gradients come before any update
    {"place_optimizers", PlaceOptimizers},   // their blocks are the last
    {"serve_gradients", ServeGradients},     // knows the blocks by number
    {"merge_gradients", MergeGradients},     // makes it one gradient a trainer
    {"quote_gradients", QuoteGradients},     // as name_gradients has named them
    {"hold_start_values", HoldStartValues},  // beside what it serves
    {"serve_tables", ServeTables},           // behind those who know the optimizers' blocks as the last
    {"merge_table_gradients", MergeTableGradients},
};
constexpr Pass kPserverStartup[] = {
    {"init_pserver_slices", InitPserverSlices},
};

// The same through the trainer's communicator, which cuts gradients and puts parameters together itself.
constexpr Pass kNotAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
    {"name_messages", NameMessages},  // pservers await one from each trainer; variables keep their names
    {"send_table_gradients", SendTableGradients},
    {"add_communicator_barrier", AddCommunicatorBarrier},  // behind all sends, before what they bring back
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kNotAsyncPserver[] = {
    {"declare_slices", DeclareSlices},
    {"place_lr_schedule", PlaceLrSchedule},
    {"place_clipping", PlaceClipping},
    {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients},
    {"merge_gradients", MergeGradients},
    {"hold_start_values", HoldStartValues},
    {"serve_tables", ServeTables},
    {"merge_table_gradients", MergeTableGradients},
};

// Asynchronous training: nobody waits for other trainers. A schedule counts the steps of all of them, which
// they tell at the end of each.
constexpr Pass kAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_gradients", SendGradients},
    {"send_table_gradients", SendTableGradients},
    {"send_step_counters", SendStepCounters},  // behind all gradients: the step is finished
    {"receive_params", ReceiveParams},         // without a barrier, each waits for its own send
    {"join_slices", JoinSlices},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kAsyncTrainerStartup[] = {
    {"drop_server_state", DropServerState},
    {"init_step_counters", InitStepCounters},  // in front of all others
    {"share_start_values", ShareStartValues},
    {"receive_initial_params", ReceiveInitialParams},
    {"fake_init_tables", FakeInitTables},
};
constexpr Pass kAsyncPserver[] = {
    {"declare_slices", DeclareSlices},
    {"place_lr_schedule", PlaceLrSchedule},
    {"count_steps", CountSteps},  // in the block made above
    {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients},  // each gradient starts its block when it arrives
    {"hold_start_values", HoldStartValues},
    {"serve_tables", ServeTables},
};
constexpr Pass kAsyncPserverStartup[] = {
    {"init_pserver_slices", InitPserverSlices},
    {"init_step_counters", InitStepCounters},  // over the start value of the schedule's own counter
};

// The same through the trainer's communicator.
constexpr Pass kRuntimeSplitTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
    {"send_table_gradients", SendTableGradients},
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},  // the communicator knows what it sends by name
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kHalfAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
    {"send_table_gradients", SendTableGradients},
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},
    {"add_communicator_barrier", AddCommunicatorBarrier},  // behind all sends, the notices' too
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};

// Each gradient is corrected for its age before it is applied.
constexpr Pass kDcAsgdPserver[] = {
    {"declare_slices", DeclareSlices},
    {"place_lr_schedule", PlaceLrSchedule},
    {"count_steps", CountSteps},
    {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients},
    {"compensate_gradients", CompensateGradients},  // between regularizers and optimizer
    {"hold_start_values", HoldStartValues},
    {"serve_tables", ServeTables},
};
constexpr Pass kDcAsgdPserverStartup[] = {
    {"init_pserver_slices", InitPserverSlices},
    {"init_step_counters", InitStepCounters},
    {"init_backups", InitBackups},  // behind the parameters that they begin as
};

// Fluid tells asynchronous trainers and merging pservers apart by different settings.
constexpr Pass kFluidNotAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
    {"name_messages", NameMessages},
    {"send_table_gradients", SendTableGradients},
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},
    {"add_communicator_barrier", AddCommunicatorBarrier},
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kFluidNotAsyncAloneTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
    {"name_messages", NameMessages},
    {"send_table_gradients", SendTableGradients},
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kFluidNotAsyncPserver[] = {
    {"declare_slices", DeclareSlices},   {"place_lr_schedule", PlaceLrSchedule},
    {"count_steps", CountSteps},         {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients}, {"merge_gradients", MergeGradients},
    {"serve_tables", ServeTables},
};

// Geo-SGD: trainers optimize, and hand what has changed to their communicator.
constexpr Pass kGeoTrainer[] = {
    {"keep_clipping", KeepClipping},  // as Fluid, which finds parameters as for pservers
    {"keep_tables_local", KeepTablesLocal},
    {"declare_deltas", DeclareDeltas},
    {"declare_delta_slices", DeclareDeltaSlices},
    {"send_touched_rows", SendTouchedRows},  // at the end: a step is over
};
constexpr Pass kGeoTrainerStartup[] = {
    {"share_start_values", ShareStartValues},
    {"receive_initial_params", ReceiveInitialParams},
    {"declare_deltas", DeclareDeltas},
    {"announce_initial_params", AnnounceInitialParams},  // when they are there
};
constexpr Pass kGeoPserver[] = {
    {"hold_params", HoldParams},
    {"add_deltas", AddDeltas},      // to what is held
    {"serve_deltas", ServeDeltas},  // knows the blocks by number
    {"hold_start_values", HoldStartValues},
};

// Ranks that ParallelExecutor joins: the main program stays.
constexpr Pass kNccl2TrainerStartup[] = {
    {"generate_nccl_id", GenerateNcclId},
};

// Ranks that add up gradients.
constexpr Pass kGradAllreduceTrainer[] = {
    {"scale_loss_gradient", ScaleLossGradient},  // before anything is made of it
    {"allreduce_gradients", AllreduceGradients},
    {"await_gradients", AwaitGradients},  // all of them
};
constexpr Pass kRankStartup[] = {
    {"init_rings", InitRings}, {"broadcast_params", BroadcastParams},  // over them
};
constexpr Pass kDeviceStartup[] = {
    {"init_device_rings", InitDeviceRings},
};

// Ranks that add up what they have learned since the last snapshot, after each step or after several.
constexpr Pass kLocalSgdTrainer[] = {
    {"allreduce_updates", AllreduceUpdates},
    {"apply_mean_update", ApplyMeanUpdate},  // when all updates are there
};
constexpr Pass kLocalSgdStartup[] = {
    {"init_rings", InitRings},
    {"broadcast_params", BroadcastParams},
    {"snapshot_params", SnapshotParams},  // of what all ranks have
};
constexpr Pass kLocalSgdStepsTrainer[] = {
    {"average_every", AverageEvery},
};
constexpr Pass kLocalSgdStepsStartup[] = {
    {"init_rings", InitRings},
    {"broadcast_params", BroadcastParams},
    {"snapshot_params", SnapshotParams},
    {"count_local_steps", CountLocalSteps},
};

struct Row {
  Mode mode;
  Pipelines pipelines;
};

constexpr Row kRows[] = {
    {Mode::kSync, {kSyncTrainer, kSyncTrainerStartup, kSyncPserver, kPserverStartup}},
    {Mode::kNotAsync, {kNotAsyncTrainer, kSyncTrainerStartup, kNotAsyncPserver, kPserverStartup}},
    {Mode::kAsync, {kAsyncTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {Mode::kAsyncRuntimeSplit,
     {kRuntimeSplitTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {Mode::kHalfAsync, {kHalfAsyncTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {Mode::kDcAsgd, {kAsyncTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {Mode::kDcAsgdRuntimeSplit,
     {kRuntimeSplitTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {Mode::kDcAsgdHalfAsync,
     {kHalfAsyncTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {Mode::kFluidNotAsync,
     {kFluidNotAsyncTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {Mode::kFluidNotAsyncAlone,
     {kFluidNotAsyncAloneTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {Mode::kFluidNotAsyncDirect,
     {kAsyncTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {Mode::kGeo, {kGeoTrainer, kGeoTrainerStartup, kGeoPserver, kPserverStartup, PlanDifferences}},
    {Mode::kNccl2, {{}, kNccl2TrainerStartup, {}, {}, PlanRanks}},
    {Mode::kGradAllreduce, {kGradAllreduceTrainer, kRankStartup, {}, {}, PlanGradientSums}},
    {Mode::kSingleProcessMultiThread, {kGradAllreduceTrainer, kDeviceStartup, {}, {}, PlanDeviceSums}},
    {Mode::kLocalSgd, {kLocalSgdTrainer, kLocalSgdStartup, {}, {}, PlanUpdateSums}},
    {Mode::kLocalSgdSteps, {kLocalSgdStepsTrainer, kLocalSgdStepsStartup, {}, {}, PlanUpdateSums}},
};

}  // namespace

const Pipelines& PipelinesOf(Mode mode) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return one.mode == mode; });
  PENSTOCK_CHECK(row != std::end(kRows), std::string(ModeName(mode)));
  return row->pipelines;
}

}  // namespace penstock
