#include "transpiler/pipeline/pipelines.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "transpiler/passes/passes.h"

namespace penstock {
namespace {

// Conditions of passes.
bool IsUneven(const plan::PlacementPlan& plan) { return plan.on_uneven != OnUneven::kNone; }
bool IsEven(const plan::PlacementPlan& plan) { return plan.on_uneven == OnUneven::kNone; }
bool ReadersFollowUpdates(const plan::PlacementPlan& plan) {
  return plan.conventions().readers_follow_updates;
}

// Synchronous training: one barrier ends the trainer's sends, another its receives.
constexpr Pass kSyncTrainer[] = {
    {"weigh_loss_gradient", passes::WeighLossGradient, IsUneven},  // before any op reads it
    {"keep_clipping", passes::KeepClipping},      // so that the trainer makes the clipped gradients
    {"prefetch_tables", passes::PrefetchTables},  // while lookups are where the analysis found them
    // After the last writer, which may be a regularizer that is dropped below.
    {"send_gradients", passes::SendGradients},
    {"declare_residuals", passes::DeclareResiduals},
    {"send_table_gradients", passes::SendTableGradients},
    {"add_send_barrier", passes::AddSendBarrier},  // after all sends
    {"receive_params", passes::ReceiveParams},     // waits for the barrier
    {"add_fetch_barrier", passes::AddFetchBarrier},
    {"join_slices", passes::JoinSlices},  // slices that the fetch barrier completed
    // Behind all that receives them.
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},  // after all passes that place ops next to an optimizer
    {"name_gradients", passes::NameGradients},    // last, because the passes above use the old names
};
constexpr Pass kSyncTrainerStartup[] = {
    {"drop_server_state", passes::DropServerState},
    {"share_start_values", passes::ShareStartValues},  // before the barrier that completes the recvs
    {"receive_initial_params", passes::ReceiveInitialParams},
    {"fake_init_tables", passes::FakeInitTables},  // Fluid's order: after the recvs
    {"init_residuals", passes::InitResiduals},
    {"init_rings", passes::InitRings},  // for trainers with unequal batches
    {"start_live", passes::StartLive, IsUneven},
};
// Both exchanges: trainers all-reduce dense gradients and update these parameters; the rest is as above.
constexpr Pass kHybridTrainer[] = {
    {"weigh_loss_gradient", passes::WeighLossGradient, IsUneven},
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"allreduce_means", passes::AllreduceMeans},
    {"await_gradients", passes::AwaitGradients},  // before the updates that stay
    {"send_gradients", passes::SendGradients},
    {"send_table_gradients", passes::SendTableGradients},
    {"add_send_barrier", passes::AddSendBarrier},
    {"receive_params", passes::ReceiveParams},
    {"add_fetch_barrier", passes::AddFetchBarrier},
    {"join_slices", passes::JoinSlices},
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},
    {"name_gradients", passes::NameGradients},
};
constexpr Pass kHybridTrainerStartup[] = {
    {"drop_server_state", passes::DropServerState}, {"receive_initial_params", passes::ReceiveInitialParams},
    {"fake_init_tables", passes::FakeInitTables},   {"init_rings", passes::InitRings},
    {"broadcast_params", passes::BroadcastParams},  {"start_live", passes::StartLive, IsUneven},
};
constexpr Pass kSyncPserver[] = {
    {"declare_slices", passes::DeclareSlices},       // variables that later passes use
    {"place_lr_schedule", passes::PlaceLrSchedule},  // its block is the first
    {"place_clipping", passes::PlaceClipping},       // norms over all gradients come before any update
    {"place_optimizers", passes::PlaceOptimizers},   // their blocks are the last
    {"serve_gradients", passes::ServeGradients},     // refers to blocks by number
    {"merge_gradients", passes::MergeGradients},     // changes it to one gradient per trainer
    {"quote_gradients", passes::QuoteGradients},     // uses the names of name_gradients
    {"hold_start_values", passes::HoldStartValues},  // extends listen_and_serv
    {"serve_tables", passes::ServeTables},  // after passes that expect the optimizers' blocks to be the last
    {"merge_table_gradients", passes::MergeTableGradients},
};
constexpr Pass kPserverStartup[] = {
    {"init_pserver_slices", passes::InitPserverSlices},
};

// The same through the trainer's communicator, which splits gradients and joins parameters itself.
constexpr Pass kNotAsyncTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_whole_gradients", passes::SendWholeGradients},
    {"declare_residuals", passes::DeclareResiduals},
    {"name_messages",
     passes::NameMessages},  // pservers await one message per trainer; variables keep their names
    {"send_table_gradients", passes::SendTableGradients},
    {"add_communicator_barrier", passes::AddCommunicatorBarrier},  // after all sends, before the recvs
    {"receive_whole_params", passes::ReceiveWholeParams},
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},
};
constexpr Pass kNotAsyncPserver[] = {
    {"declare_slices", passes::DeclareSlices},
    {"place_lr_schedule", passes::PlaceLrSchedule},
    {"place_clipping", passes::PlaceClipping},
    {"place_optimizers", passes::PlaceOptimizers},
    {"serve_gradients", passes::ServeGradients},
    {"merge_gradients", passes::MergeGradients},
    {"hold_start_values", passes::HoldStartValues},
    {"serve_tables", passes::ServeTables},
    {"merge_table_gradients", passes::MergeTableGradients},
};

// Asynchronous training: no trainer waits for others. A schedule counts the steps of all trainers, which
// report the end of each.
constexpr Pass kAsyncTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_gradients", passes::SendGradients},
    {"declare_residuals", passes::DeclareResiduals},
    {"send_table_gradients", passes::SendTableGradients},
    {"send_step_counters", passes::SendStepCounters},  // after all gradients: the step is finished
    {"receive_params", passes::ReceiveParams},         // without a barrier, each recv waits for its own send
    {"join_slices", passes::JoinSlices},
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},
};
constexpr Pass kAsyncTrainerStartup[] = {
    {"drop_server_state", passes::DropServerState},
    {"init_step_counters", passes::InitStepCounters},  // before all other initializers
    {"share_start_values", passes::ShareStartValues},
    {"receive_initial_params", passes::ReceiveInitialParams},
    {"fake_init_tables", passes::FakeInitTables},
    {"init_residuals", passes::InitResiduals},
};
constexpr Pass kAsyncPserver[] = {
    {"declare_slices", passes::DeclareSlices},
    {"place_lr_schedule", passes::PlaceLrSchedule},
    {"count_steps", passes::CountSteps},  // in the block made above
    {"place_optimizers", passes::PlaceOptimizers},
    {"serve_gradients", passes::ServeGradients},  // each arriving gradient starts its block
    {"hold_start_values", passes::HoldStartValues},
    {"serve_tables", passes::ServeTables},
};
constexpr Pass kAsyncPserverStartup[] = {
    {"init_pserver_slices", passes::InitPserverSlices},
    {"init_step_counters", passes::InitStepCounters},  // replaces the schedule's own initial value
};

// The same through the trainer's communicator.
constexpr Pass kRuntimeSplitTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_whole_gradients", passes::SendWholeGradients},
    {"declare_residuals", passes::DeclareResiduals},
    {"send_table_gradients", passes::SendTableGradients},
    {"send_step_counters", passes::SendStepCounters},
    {"name_step_notices", passes::NameStepNotices},  // the communicator identifies messages by name
    {"receive_whole_params", passes::ReceiveWholeParams},
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},
};
constexpr Pass kHalfAsyncTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_whole_gradients", passes::SendWholeGradients},
    {"declare_residuals", passes::DeclareResiduals},
    {"send_table_gradients", passes::SendTableGradients},
    {"send_step_counters", passes::SendStepCounters},
    {"name_step_notices", passes::NameStepNotices},
    {"add_communicator_barrier", passes::AddCommunicatorBarrier},  // after all sends, including notices
    {"receive_whole_params", passes::ReceiveWholeParams},
    {"read_updated_params", passes::ReadUpdatedParams, ReadersFollowUpdates},
    {"drop_optimizers", passes::DropOptimizers},
};

// DC-ASGD: each gradient is corrected for its age before it is applied.
constexpr Pass kDcAsgdPserver[] = {
    {"declare_slices", passes::DeclareSlices},
    {"place_lr_schedule", passes::PlaceLrSchedule},
    {"count_steps", passes::CountSteps},
    {"place_optimizers", passes::PlaceOptimizers},
    {"serve_gradients", passes::ServeGradients},
    {"compensate_gradients", passes::CompensateGradients},  // between regularizers and optimizer
    {"hold_start_values", passes::HoldStartValues},
    {"serve_tables", passes::ServeTables},
};
constexpr Pass kDcAsgdPserverStartup[] = {
    {"init_pserver_slices", passes::InitPserverSlices},
    {"init_step_counters", passes::InitStepCounters},
    {"init_backups", passes::InitBackups},  // after the parameters, whose values they copy
};

// Compat: in Fluid, different settings decide whether trainers are asynchronous and whether pservers merge.
constexpr Pass kFluidNotAsyncTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_whole_gradients", passes::SendWholeGradients},
    {"name_messages", passes::NameMessages},
    {"send_table_gradients", passes::SendTableGradients},
    {"send_step_counters", passes::SendStepCounters},
    {"name_step_notices", passes::NameStepNotices},
    {"add_communicator_barrier", passes::AddCommunicatorBarrier},
    {"receive_whole_params", passes::ReceiveWholeParams},
    {"drop_optimizers", passes::DropOptimizers},
};
constexpr Pass kFluidNotAsyncAloneTrainer[] = {
    {"keep_clipping", passes::KeepClipping},
    {"prefetch_tables", passes::PrefetchTables},
    {"send_whole_gradients", passes::SendWholeGradients},
    {"name_messages", passes::NameMessages},
    {"send_table_gradients", passes::SendTableGradients},
    {"send_step_counters", passes::SendStepCounters},
    {"name_step_notices", passes::NameStepNotices},
    {"receive_whole_params", passes::ReceiveWholeParams},
    {"drop_optimizers", passes::DropOptimizers},
};
constexpr Pass kFluidNotAsyncPserver[] = {
    {"declare_slices", passes::DeclareSlices},   {"place_lr_schedule", passes::PlaceLrSchedule},
    {"count_steps", passes::CountSteps},         {"place_optimizers", passes::PlaceOptimizers},
    {"serve_gradients", passes::ServeGradients}, {"merge_gradients", passes::MergeGradients},
    {"serve_tables", passes::ServeTables},
};

// Geo-SGD: trainers update, and their communicators exchange the changes.
constexpr Pass kGeoTrainer[] = {
    {"keep_clipping", passes::KeepClipping},  // like Fluid, which finds parameters as for pservers
    {"keep_tables_local", passes::KeepTablesLocal},
    {"declare_deltas", passes::DeclareDeltas},
    {"declare_delta_slices", passes::DeclareDeltaSlices},
    {"send_touched_rows", passes::SendTouchedRows},  // at the end, because it ends the step
};
constexpr Pass kGeoTrainerStartup[] = {
    {"share_start_values", passes::ShareStartValues},
    {"receive_initial_params", passes::ReceiveInitialParams},
    {"declare_deltas", passes::DeclareDeltas},
    {"announce_initial_params", passes::AnnounceInitialParams},  // after they are received
};
constexpr Pass kGeoPserver[] = {
    {"hold_params", passes::HoldParams},
    {"add_deltas", passes::AddDeltas},      // to the held slices
    {"serve_deltas", passes::ServeDeltas},  // refers to blocks by number
    {"hold_start_values", passes::HoldStartValues},
};

// Ranks that ParallelExecutor joins: the main program does not change.
constexpr Pass kNccl2TrainerStartup[] = {
    {"generate_nccl_id", passes::GenerateNcclId},
};

// Ranks that all-reduce gradients.
constexpr Pass kGradAllreduceTrainer[] = {
    {"scale_loss_gradient", passes::ScaleLossGradient, IsEven},    // before any op reads it
    {"share_loss_gradient", passes::ShareLossGradient, IsUneven},  // instead, if batches are unequal
    {"allreduce_gradients", passes::AllreduceGradients},
    {"await_gradients", passes::AwaitGradients},  // all of them
};
constexpr Pass kRankStartup[] = {
    {"init_rings", passes::InitRings},
    {"broadcast_params", passes::BroadcastParams},  // over them
    {"start_live", passes::StartLive, IsUneven},
};
constexpr Pass kDeviceStartup[] = {
    {"init_device_rings", passes::InitDeviceRings},
};

// Local SGD: ranks sum their updates since the last snapshot, after each step or after several.
constexpr Pass kLocalSgdTrainer[] = {
    {"allreduce_updates", passes::AllreduceUpdates},
    {"apply_mean_update", passes::ApplyMeanUpdate},  // after all updates are summed
};
constexpr Pass kLocalSgdStartup[] = {
    {"init_rings", passes::InitRings},
    {"broadcast_params", passes::BroadcastParams},
    {"snapshot_params", passes::SnapshotParams},  // of the values common to all ranks
};
constexpr Pass kLocalSgdStepsTrainer[] = {
    {"update_while_live", passes::UpdateWhileLive, IsUneven},  // local updates, before the averages
    {"average_every", passes::AverageEvery},
};
constexpr Pass kLocalSgdAdaptiveTrainer[] = {
    {"update_while_live", passes::UpdateWhileLive, IsUneven},
    {"average_adaptively", passes::AverageAdaptively},
};
constexpr Pass kLocalSgdStepsStartup[] = {
    {"init_rings", passes::InitRings},           {"broadcast_params", passes::BroadcastParams},
    {"snapshot_params", passes::SnapshotParams}, {"count_local_steps", passes::CountLocalSteps},
    {"start_live", passes::StartLive, IsUneven},
};
constexpr Pass kLocalSgdAdaptiveStartup[] = {
    {"init_rings", passes::InitRings},
    {"broadcast_params", passes::BroadcastParams},
    {"snapshot_params", passes::SnapshotParams},
    {"count_local_steps", passes::CountLocalSteps},
    {"start_adaptive_steps", passes::StartAdaptiveSteps},
    {"start_live", passes::StartLive, IsUneven},
};

struct Row {
  plan::Mode mode;
  Pipelines pipelines;
};

constexpr Row kRows[] = {
    {plan::Mode::kSync, {kSyncTrainer, kSyncTrainerStartup, kSyncPserver, kPserverStartup}},
    {plan::Mode::kHybrid,
     {kHybridTrainer, kHybridTrainerStartup, kSyncPserver, kPserverStartup, plan::PlanBothExchanges}},
    {plan::Mode::kNotAsync, {kNotAsyncTrainer, kSyncTrainerStartup, kNotAsyncPserver, kPserverStartup}},
    {plan::Mode::kAsync, {kAsyncTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kAsyncRuntimeSplit,
     {kRuntimeSplitTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kHalfAsync, {kHalfAsyncTrainer, kAsyncTrainerStartup, kAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kDcAsgd, {kAsyncTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {plan::Mode::kDcAsgdRuntimeSplit,
     {kRuntimeSplitTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {plan::Mode::kDcAsgdHalfAsync,
     {kHalfAsyncTrainer, kAsyncTrainerStartup, kDcAsgdPserver, kDcAsgdPserverStartup}},
    {plan::Mode::kFluidNotAsync,
     {kFluidNotAsyncTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kFluidNotAsyncAlone,
     {kFluidNotAsyncAloneTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kFluidNotAsyncDirect,
     {kAsyncTrainer, kAsyncTrainerStartup, kFluidNotAsyncPserver, kAsyncPserverStartup}},
    {plan::Mode::kGeo,
     {kGeoTrainer, kGeoTrainerStartup, kGeoPserver, kPserverStartup, plan::PlanDifferences}},
    {plan::Mode::kNccl2, {{}, kNccl2TrainerStartup, {}, {}, plan::PlanRanks}},
    {plan::Mode::kGradAllreduce, {kGradAllreduceTrainer, kRankStartup, {}, {}, plan::PlanGradientSums}},
    {plan::Mode::kSingleProcessMultiThread,
     {kGradAllreduceTrainer, kDeviceStartup, {}, {}, plan::PlanDeviceSums}},
    {plan::Mode::kLocalSgd, {kLocalSgdTrainer, kLocalSgdStartup, {}, {}, plan::PlanUpdateSums}},
    {plan::Mode::kLocalSgdSteps,
     {kLocalSgdStepsTrainer, kLocalSgdStepsStartup, {}, {}, plan::PlanUpdateSums}},
    {plan::Mode::kLocalSgdAdaptive,
     {kLocalSgdAdaptiveTrainer, kLocalSgdAdaptiveStartup, {}, {}, plan::PlanUpdateSums}},
};

}  // namespace

const Pipelines& PipelinesOf(plan::Mode mode) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return one.mode == mode; });
  PENSTOCK_CHECK(row != std::end(kRows), std::string(plan::ModeName(mode)));
  return row->pipelines;
}

}  // namespace penstock
