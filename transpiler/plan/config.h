// The user's settings for the transpiler, as a plain value. Nothing is read from the environment or a clock.
//
//   TranspileConfig config;
//   config.pservers = {"10.0.0.1:6174", "10.0.0.2:6174"};
//   config.trainers = 2;
//   config.trainer_ids = {0, 1};       // the trainers whose programs are made
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

// kFluid18 (compat) makes role programs equal to those of Fluid 1.8.5, including its defects. kDefault
// differs from them only as listed in tests/parity/DIFFERENCES.md.
enum class Dialect { kDefault, kFluid18 };

enum class Kind { kPserver, kNccl2, kCollective, kGeo };

// Fluid's constructor rejects a smaller minimum; its users set the field afterwards.
inline constexpr std::int64_t kFluidMinBlockSize = 8192;
// MXNET_KVSTORE_BIGARRAY_BOUND's default.
inline constexpr std::int64_t kMxnetBigArrayBound = 1000000;

// Whether each trainer keeps its own running statistics, or trainers average them. Role programs store the
// choice as a policy (policies["bn_sync"]); the executor applies it.
enum class BnSync { kNone, kAverage };
std::string_view BnSyncName(BnSync sync);  // "none"
std::optional<BnSync> BnSyncFromName(std::string_view name);
inline constexpr char kBnSyncPolicy[] = "bn_sync";

// kLocal: each trainer clips its own gradients before it sends them. kGlobal: the mean of all trainers'
// gradients is clipped, as on one machine with all batches. Ranks without pservers that sum gradients always
// do the latter.
enum class Clip { kLocal, kGlobal };
std::string_view ClipName(Clip clip);  // "local"
std::optional<Clip> ClipFromName(std::string_view name);

struct TranspileConfig {
  Kind kind = Kind::kPserver;
  // For Kind::kCollective: grad_allreduce, local_sgd or single_process_multi_thread.
  std::string collective_mode;
  Dialect dialect = Dialect::kDefault;
  int trainers = 1;
  std::vector<int> trainer_ids = {0};  // the trainers whose programs are made
  std::vector<std::string> pservers;   // addresses, in order

  bool slice_params = true;  // false: each parameter is placed whole on one pserver
  Slicing slicing = Slicing::kFluid;
  std::int64_t min_block_size = kFluidMinBlockSize;    // elements; the minimum size of a slice
  bool allow_small_blocks = false;                     // min_block_size may be under kFluidMinBlockSize
  std::int64_t big_array_bound = kMxnetBigArrayBound;  // elements; for Slicing::kMxnet
  std::int64_t chunk_bytes = kChunkBytes;              // the maximum of a chunk, which has at least one row
  Placement placement = Placement::kRoundRobin;
  DispatcherFactory dispatcher;  // the user's own rule, instead of `placement`

  // The argument of transpile() and the field of its configuration; nullopt if the user gave none.
  std::optional<bool> sync_mode_argument;
  std::optional<bool> sync_mode_field;
  bool runtime_split_send_recv = false;
  bool half_async = false;
  bool completely_not_async = false;
  bool dc_asgd = false;
  float dc_asgd_lambda = 1.0f;  // how strongly a gradient is corrected for its age; Fluid supports only 1

  int geo_push_every = 100;  // geo: a trainer sends its differences after this many steps

  DenseExchange dense = DenseExchange::kPserver;
  // For kAuto: the bandwidth of a link in each direction, and the cost of a message in addition to its bytes.
  double exchange_gbit = 10;
  double exchange_message_us = 20;
  // The choices of kAuto, one per trained parameter; `dense` is then no longer kAuto. Otherwise empty.
  std::vector<ExchangeChoice> exchanges;

  // For jobs with rings of trainers (nccl2, collective, hybrid, sync with on_uneven). `trainers` is then the
  // number of addresses.
  std::vector<std::string> trainer_addresses;  // one per rank, in order
  std::vector<std::string> current_addresses;  // of trainer_ids, if the user gave them (current_endpoint)
  int rings = 1;                               // communicators that are used in turn (nccl_comm_num)
  bool hierarchical = false;                   // nccl2: the ranks of one machine reduce first
  int node_ranks = 0;                          // hierarchical: ranks per machine
  int local_sgd_k_steps = 1;                   // local_sgd: steps between two averages of the parameters
  // local_sgd: the number of steps starts with local_sgd_k_steps and then depends on the loss and the
  // learning rate (passes/ranks/average_adaptively.cc).
  bool local_sgd_adaptive = false;

  BnSync bn_sync = BnSync::kNone;
  Clip clip = Clip::kLocal;

  // Settings that Fluid does not have. Role programs store them as policies; framework/text/policies.h
  // documents what each promises, policies.h in this folder with which modes each is allowed.
  std::optional<int> staleness;  // async: steps that a trainer may be ahead of the slowest; at least 0
  int backup_trainers = 0;       // sync: trainers for which a step does not wait; less than `trainers`
  // Allows batches of different sizes and numbers: nccl2, grad_allreduce, local_sgd, sync, hybrid. Then
  // trainer_addresses must be set, even with pservers.
  OnUneven on_uneven = OnUneven::kNone;
  CompressionRules compression;  // of dense gradients of f32, by the parameter's name and size in elements

  // Variables that other programs of the same job update or start (pipeline/transpile_together.h); ascending.
  // They are no start values of this program.
  std::vector<std::string> others;

  // Compat: imitates one transpiler object that makes the pservers' programs, in order, and then the
  // trainers'. Fluid's getters change the user's startup program, so the trainers' programs differ.
  bool shared_transpiler = false;
};

// The same text for addresses of one process: host names have no case, "localhost" is 127.0.0.1, and ports
// have no leading zeros.
std::string CanonicalAddress(std::string_view address);

// kInvalidArgument: no pserver; a duplicate or malformed address; trainer ids out of range; a size under 1;
// contradicting modes; slicing and placement that contradict; policies that the mode does not allow.
Status ValidateConfig(const TranspileConfig& config);

// Returns the mode that the flags mean. A given argument overrides an unset field. kInvalidArgument
// E-plan-sync-mode: argument and field are both given and differ, or a flag of the asynchronous modes is
// given with sync_mode=true.
Result<Mode> ResolveMode(const TranspileConfig& config);
// Returns the mode that pservers are told. In compat it follows from the configuration alone, as in Fluid.
ServerMode ResolveServerMode(const TranspileConfig& config, Mode mode);

}  // namespace penstock::plan
