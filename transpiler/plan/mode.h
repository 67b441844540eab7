// The ways in which gradients and parameters travel. The list is closed: each has its own row in
// pipeline/pipelines.cc, and no pass takes a mode.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace penstock::plan {

enum class Mode {
  kSync,                      // every pserver waits for all trainers' gradients and applies their mean
  kHybrid,                    // kSync for sparse parameters; trainers add up dense gradients and update
  kNotAsync,                  // the same, sent by the trainer's communicator: completely_not_async
  kAsync,                     // each gradient is applied as it arrives; a send waits for its reply
  kAsyncRuntimeSplit,         // the trainer's communicator cuts, merges and sends in the background
  kHalfAsync,                 // the same, and the trainers of one process meet once a step
  kDcAsgd,                    // kAsync with gradients corrected for their age
  kDcAsgdRuntimeSplit,        // kAsyncRuntimeSplit with them
  kDcAsgdHalfAsync,           // kHalfAsync with them
  kGeo,                       // trainers optimize and exchange differences of parameters
  kNccl2,                     // no pserver; ParallelExecutor sums gradients
  kGradAllreduce,             // no pserver; the program sums gradients
  kLocalSgd,                  // no pserver; the program averages parameters
  kLocalSgdSteps,             // the same, after every few steps, or of ranks with unequal batches
  kLocalSgdAdaptive,          // the same, after as many steps as loss and learning rate say
  kSingleProcessMultiThread,  // kGradAllreduce among the devices of one process
  // What Fluid 1.8.5 makes of completely_not_async. Compat only.
  kFluidNotAsync,        // a schedule counts the steps of all trainers
  kFluidNotAsyncDirect,  // without runtime_split_send_recv: hangs
  kFluidNotAsyncAlone,   // without half_async: nothing ends a step, and it hangs
};
std::span<const Mode> AllModes();
std::string_view ModeName(Mode mode);  // "sync"
std::optional<Mode> ModeFromName(std::string_view name);

// What a pserver does with what arrives; the numbers are those of listen_and_serv's distributed_mode.
enum class ServerMode {
  kSync = 0,       // steps, with barriers
  kAsync = 1,      // at once; trainers send through communicators
  kHalfAsync = 2,  // at once; trainers send themselves
  kGeo = 3,
};
ServerMode ServerModeOf(Mode mode);
// Whether barriers among the trainer's own ops end a step: kSync, alone or beside rings of trainers.
bool EndsStepsByOps(Mode mode);
// Whether the gradients of all trainers become one before anything is updated with them.
bool MergesGradients(Mode mode);
std::string_view ServerModeName(ServerMode mode);
std::optional<ServerMode> ServerModeFromName(std::string_view name);

}  // namespace penstock::plan
