// The modes of distributed training. The list is closed: each mode has a row in pipeline/pipelines.cc, and no
// pass takes a mode as argument.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace penstock::plan {

enum class Mode {
  kSync,                      // every pserver waits for all trainers' gradients and applies their mean
  kHybrid,                    // kSync for sparse parameters; trainers all-reduce dense gradients and update
  kNotAsync,                  // kSync, sent by the trainer's communicator: completely_not_async
  kAsync,                     // each gradient is applied as it arrives; a send waits for its reply
  kAsyncRuntimeSplit,         // the trainer's communicator cuts, merges and sends in the background
  kHalfAsync,                 // kAsyncRuntimeSplit, and the threads of one trainer meet once per step
  kDcAsgd,                    // kAsync with gradients corrected for their age
  kDcAsgdRuntimeSplit,        // kAsyncRuntimeSplit with corrected gradients
  kDcAsgdHalfAsync,           // kHalfAsync with corrected gradients
  kGeo,                       // trainers optimize and exchange differences of parameters
  kNccl2,                     // no pserver; ParallelExecutor sums gradients
  kGradAllreduce,             // no pserver; the program sums gradients
  kLocalSgd,                  // no pserver; the program averages parameters
  kLocalSgdSteps,             // kLocalSgd every few steps, or with uneven batches
  kLocalSgdAdaptive,          // kLocalSgd after a number of steps that depends on loss and learning rate
  kSingleProcessMultiThread,  // kGradAllreduce among the devices of one process
  // Fluid 1.8.5's programs for completely_not_async. Compat only.
  kFluidNotAsync,        // a schedule counts the steps of all trainers
  kFluidNotAsyncDirect,  // without runtime_split_send_recv: hangs
  kFluidNotAsyncAlone,   // without half_async: nothing ends a step, and it hangs
};
std::span<const Mode> AllModes();
std::string_view ModeName(Mode mode);  // "sync"
std::optional<Mode> ModeFromName(std::string_view name);

// How a pserver applies arriving gradients; the numbers are those of listen_and_serv's distributed_mode.
enum class ServerMode {
  kSync = 0,       // in steps, with barriers
  kAsync = 1,      // at once; trainers send through communicators
  kHalfAsync = 2,  // at once; ops of the trainers' programs send
  kGeo = 3,
};
ServerMode ServerModeOf(Mode mode);
// Whether barrier ops in the trainer's program end a step: kSync, with or without rings of trainers.
bool EndsStepsByOps(Mode mode);
// Whether pservers merge the gradients of all trainers before an update.
bool MergesGradients(Mode mode);
std::string_view ServerModeName(ServerMode mode);
std::optional<ServerMode> ServerModeFromName(std::string_view name);

}  // namespace penstock::plan
