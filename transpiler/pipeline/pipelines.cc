#include "transpiler/pipeline/pipelines.h"

#include "transpiler/passes/passes.h"

namespace penstock {
namespace {

// Synchronous training: a barrier ends the trainer's sends, another its receives.
constexpr Pass kSyncTrainer[] = {
    {"keep_clipping", KeepClipping},       // first, so that clipped gradients are ones the trainer makes
    {"prefetch_tables", PrefetchTables},   // while lookups stand where the analysis saw them
    {"name_gradients", NameGradients},     // before sends name them
    {"send_gradients", SendGradients},     // behind the last writer, which may be a regularizer that leaves
                                           // below
    {"add_send_barrier", AddSendBarrier},  // behind all sends
    {"receive_params", ReceiveParams},     // waits for the barrier
    {"add_fetch_barrier", AddFetchBarrier},
    {"join_slices", JoinSlices},          // of what the fetch barrier completed
    {"drop_optimizers", DropOptimizers},  // last, since ops above stand behind some of them
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
};
constexpr Pass kSyncPserverStartup[] = {
    {"init_pserver_slices", InitPserverSlices},
};

struct Row {
  Mode mode;
  Pipelines pipelines;
};

constexpr Row kRows[] = {
    {Mode::kSync, {kSyncTrainer, kSyncTrainerStartup, kSyncPserver, kSyncPserverStartup}},
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
