// What a user asks of the transpiler. A plain value: nothing is read from the environment or from a clock.
//
//   TranspileConfig config;
//   config.pservers = {"10.0.0.1:6174", "10.0.0.2:6174"};
//   config.trainers = 2;
//   config.trainer_ids = {0, 1};       // whose programs are wanted
//   PENSTOCK_ASSIGN_OR_RETURN(RoleSet roles, Transpile(ops, main, startup, config));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/uneven_steps.h"
#include "framework/tensor/chunk.h"
#include "framework/text/compression.h"
#include "transpiler/plan/dispatcher.h"
#include "transpiler/plan/exchange.h"
#include "transpiler/plan/mode.h"
#include "transpiler/plan/placement.h"

namespace penstock::plan {

// kFluid18 makes role programs equal to those of Fluid 1.8.5, its defects included. kDefault differs from
// them by the list in tests/parity/DIFFERENCES.md and by nothing else.
enum class Dialect { kDefault, kFluid18 };

enum class Kind { kPserver, kNccl2, kCollective, kGeo };

// Fluid's constructor refuses smaller slices; its users set the field afterwards to get them.
inline constexpr std::int64_t kFluidMinBlockSize = 8192;
// MXNET_KVSTORE_BIGARRAY_BOUND's default.
inline constexpr std::int64_t kMxnetBigArrayBound = 1000000;

// What becomes of the running statistics that each trainer writes: its own, or averaged over trainers. A
// policy: role programs carry it (policies["bn_sync"]), the executor keeps to it.
enum class BnSync { kNone, kAverage };
std::string_view BnSyncName(BnSync sync);  // "none"
std::optional<BnSync> BnSyncFromName(std::string_view name);
inline constexpr char kBnSyncPolicy[] = "bn_sync";

// Whose gradients are clipped: each trainer's own, before they are sent, or the mean of all trainers', as one
// machine with all their batches would. Ranks without pservers that add up gradients always do the latter.
enum class Clip { kLocal, kGlobal };
std::string_view ClipName(Clip clip);  // "local"
std::optional<Clip> ClipFromName(std::string_view name);

struct TranspileConfig {
  Kind kind = Kind::kPserver;
  // Of Kind::kCollective: grad_allreduce, local_sgd or single_process_multi_thread.
  std::string collective_mode;
  Dialect dialect = Dialect::kDefault;
  int trainers = 1;
  std::vector<int> trainer_ids = {0};  // the trainers whose programs are made
  std::vector<std::string> pservers;   // addresses, in order

  bool slice_params = true;  // if not, each parameter lies whole on one pserver
  Slicing slicing = Slicing::kFluid;
  std::int64_t min_block_size = kFluidMinBlockSize;    // elements; a slice is not made smaller than this
  bool allow_small_blocks = false;                     // min_block_size may be under kFluidMinBlockSize
  std::int64_t big_array_bound = kMxnetBigArrayBound;  // elements; for Slicing::kMxnet
  std::int64_t chunk_bytes = kChunkBytes;              // the most in a chunk of a slice, but at least one row
  Placement placement = Placement::kRoundRobin;
  DispatcherFactory dispatcher;  // the user's own placement, instead

  // The argument of transpile() and the field of its configuration; empty where the user gave none.
  std::optional<bool> sync_mode_argument;
  std::optional<bool> sync_mode_field;
  bool runtime_split_send_recv = false;
  bool half_async = false;
  bool completely_not_async = false;
  bool dc_asgd = false;
  float dc_asgd_lambda = 1.0f;  // how much of a gradient's age is corrected; Fluid knows 1 only

  int geo_push_every = 100;  // geo: a trainer sends its differences after this many steps

  DenseExchange dense = DenseExchange::kPserver;
  // kAuto: what a link carries each way, and what a message costs beside its bytes.
  double exchange_gbit = 10;
  double exchange_message_us = 20;
  // What kAuto came to, by which `dense` is no longer kAuto; else empty. One for each trained parameter.
  std::vector<ExchangeChoice> exchanges;

  // Jobs with rings of trainers (nccl2, collective, hybrid, sync with on_uneven). trainers is then the number
  // of addresses.
  std::vector<std::string> trainer_addresses;  // one a rank, in order
  std::vector<std::string> current_addresses;  // of trainer_ids, where the user said them (current_endpoint)
  int rings = 1;                               // communicators that are used in turn (nccl_comm_num)
  bool hierarchical = false;                   // nccl2: ranks of one machine add up among themselves first
  int node_ranks = 0;                          // how many these are
  int local_sgd_k_steps = 1;                   // local_sgd: parameters are averaged after so many steps
  // local_sgd: how many steps that are follows the loss and the learning rate, and begins with
  // local_sgd_k_steps (passes/ranks/average_adaptively.cc).
  bool local_sgd_adaptive = false;

  BnSync bn_sync = BnSync::kNone;
  Clip clip = Clip::kLocal;

  // What Fluid does not have; role programs carry them as policies (framework/text/policies.h), which say
  // what each promises. policies.h says with which modes each goes.
  std::optional<int> staleness;  // async: steps that a trainer may be ahead of the slowest; at least 0
  int backup_trainers = 0;       // sync: trainers that a step does not wait for; fewer than there are
  // Trainers' batches may differ in size and number: nccl2, grad_allreduce, local_sgd, sync, hybrid. Trainers
  // need their addresses then, beside pservers too.
  OnUneven on_uneven = OnUneven::kNone;
  CompressionRules compression;  // of dense gradients of f32, by the parameter's name and size in elements

  // Compat: one transpiler object makes the pservers' programs, in order, and then the trainers'. Fluid's
  // getters change the user's startup program, so that the trainers' become different ones.
  bool shared_transpiler = false;
};

// kInvalidArgument: no pserver, an address twice or that is none, trainer ids out of range, a size under 1,
// contradicting modes, slicing and placement, policies that do not go with the mode.
Status ValidateConfig(const TranspileConfig& config);

// The one mode that the flags mean. An argument given wins over an untouched field; both given and different,
// or a flag of the asynchronous modes with sync_mode=true, is E-plan-sync-mode.
Result<Mode> ResolveMode(const TranspileConfig& config);
// What pservers are told: the number of the mode. Compat asks the configuration alone, as Fluid does.
ServerMode ResolveServerMode(const TranspileConfig& config, Mode mode);

}  // namespace penstock::plan
