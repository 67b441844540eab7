#include "transpiler/pipeline/pipelines.h"

#include "transpiler/passes/passes.h"

namespace penstock {
namespace {

// Synchronous training: a barrier ends the trainer's sends, another its receives.
constexpr Pass kSyncTrainer[] = {
    {"keep_clipping", KeepClipping},       // first, so that clipped gradients are ones the trainer makes
    {"prefetch_tables", PrefetchTables},   // while lookups stand where the analysis saw them
    {"send_gradients", SendGradients},     // behind the last writer, which may be a regularizer that leaves
                                           // below
    {"add_send_barrier", AddSendBarrier},  // behind all sends
    {"receive_params", ReceiveParams},     // waits for the barrier
    {"add_fetch_barrier", AddFetchBarrier},
    {"join_slices", JoinSlices},          // of what the fetch barrier completed
    {"drop_optimizers", DropOptimizers},  // behind all that stand by one of them
    {"name_gradients", NameGradients},    // last: what is renamed is named above
};
constexpr Pass kSyncTrainerStartup[] = {
    {"drop_server_state", DropServerState},
    {"receive_initial_params", ReceiveInitialParams},
    {"fake_init_tables", FakeInitTables},  // Fluid's order: behind what is received
};
constexpr Pass kSyncPserver[] = {
    {"declare_slices", DeclareSlices},       // what the others name
    {"place_lr_schedule", PlaceLrSchedule},  // its block is the first
    {"place_optimizers", PlaceOptimizers},   // their blocks are the last
    {"serve_gradients", ServeGradients},     // knows the blocks by number
    {"merge_gradients", MergeGradients},     // makes it one gradient a trainer
    {"quote_gradients", QuoteGradients},     // as name_gradients has named them
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
    {"add_communicator_barrier", AddCommunicatorBarrier},  // behind all sends, before what they bring back
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kNotAsyncPserver[] = {
    {"declare_slices", DeclareSlices},     {"place_lr_schedule", PlaceLrSchedule},
    {"place_optimizers", PlaceOptimizers}, {"serve_gradients", ServeGradients},
    {"merge_gradients", MergeGradients},
};

// Asynchronous training: nobody waits for other trainers. A schedule counts the steps of all of them, which
// they tell at the end of each.
constexpr Pass kAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_gradients", SendGradients},
    {"send_step_counters", SendStepCounters},  // behind all gradients: the step is finished
    {"receive_params", ReceiveParams},         // without a barrier, each waits for its own send
    {"join_slices", JoinSlices},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kAsyncTrainerStartup[] = {
    {"drop_server_state", DropServerState},
    {"init_step_counters", InitStepCounters},  // in front of all others
    {"receive_initial_params", ReceiveInitialParams},
    {"fake_init_tables", FakeInitTables},
};
constexpr Pass kAsyncPserver[] = {
    {"declare_slices", DeclareSlices},
    {"place_lr_schedule", PlaceLrSchedule},
    {"count_steps", CountSteps},  // in the block made above
    {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients},  // each gradient starts its block when it arrives
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
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},  // the communicator knows what it sends by name
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kHalfAsyncTrainer[] = {
    {"keep_clipping", KeepClipping},
    {"prefetch_tables", PrefetchTables},
    {"send_whole_gradients", SendWholeGradients},
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
    {"send_step_counters", SendStepCounters},
    {"name_step_notices", NameStepNotices},
    {"receive_whole_params", ReceiveWholeParams},
    {"drop_optimizers", DropOptimizers},
};
constexpr Pass kFluidNotAsyncPserver[] = {
    {"declare_slices", DeclareSlices},   {"place_lr_schedule", PlaceLrSchedule},
    {"count_steps", CountSteps},         {"place_optimizers", PlaceOptimizers},
    {"serve_gradients", ServeGradients}, {"merge_gradients", MergeGradients},
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
};

}  // namespace

Result<Pipelines> PipelinesOf(Mode mode) {
  for (const Row& row : kRows) {
    if (row.mode == mode) return row.pipelines;
  }
  return Unimplemented("E-transpile-mode", "transpile: mode ", ModeName(mode),
                       " is not built; use sync_mode=true");
}

}  // namespace penstock
