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
  Dialect dialect = Dialect::kDefault;
  int trainers = 1;
  std::vector<int> trainer_ids = {0};  // the trainers whose programs are made
  std::vector<std::string> pservers;   // addresses, in order
  // For jobs with rings of trainers (nccl2, collective, hybrid, sync with on_uneven). `trainers` is then the
  // number of addresses.
  std::vector<std::string> trainer_addresses;  // one per rank, in order
  std::vector<std::string> current_addresses;  // of trainer_ids, if the user gave them (current_endpoint)
  DispatcherFactory dispatcher;                // the user's own rule, instead of `placement`

  // The user's settings, which settings.def documents: `std::int64_t min_block_size = 8192;` for each row.
#define PENSTOCK_SETTING(type, member, initial, ...) type member = initial;
#include "transpiler/plan/settings.def"

  // The choices of DenseExchange::kAuto, one per trained parameter; `dense` is then no longer kAuto.
  // Otherwise empty.
  std::vector<ExchangeChoice> exchanges;
  // Variables that other programs of the same job update or start (pipeline/transpile_together.h); ascending.
  // They are no start values of this program.
  std::vector<std::string> others;
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
