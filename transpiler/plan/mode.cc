#include "transpiler/plan/mode.h"

#include <algorithm>
#include <array>

namespace penstock::plan {
namespace {

struct ModeRow {
  Mode mode;
  std::string_view name;
  ServerMode server;  // if there are pservers
  bool merges = false;
};

constexpr std::array kModes = {
    ModeRow{Mode::kSync, "sync", ServerMode::kSync, true},
    ModeRow{Mode::kHybrid, "hybrid", ServerMode::kSync, true},
    ModeRow{Mode::kNotAsync, "completely_not_async", ServerMode::kSync, true},
    ModeRow{Mode::kAsync, "async", ServerMode::kHalfAsync},
    ModeRow{Mode::kAsyncRuntimeSplit, "async_runtime_split", ServerMode::kAsync},
    ModeRow{Mode::kHalfAsync, "half_async", ServerMode::kAsync},
    ModeRow{Mode::kDcAsgd, "dc_asgd", ServerMode::kHalfAsync},
    ModeRow{Mode::kDcAsgdRuntimeSplit, "dc_asgd_runtime_split", ServerMode::kAsync},
    ModeRow{Mode::kDcAsgdHalfAsync, "dc_asgd_half_async", ServerMode::kAsync},
    ModeRow{Mode::kGeo, "geo", ServerMode::kGeo},
    ModeRow{Mode::kNccl2, "nccl2", ServerMode::kSync, true},
    ModeRow{Mode::kGradAllreduce, "grad_allreduce", ServerMode::kSync, true},
    ModeRow{Mode::kLocalSgd, "local_sgd", ServerMode::kSync},
    ModeRow{Mode::kLocalSgdSteps, "local_sgd_steps", ServerMode::kSync},
    ModeRow{Mode::kLocalSgdAdaptive, "local_sgd_adaptive", ServerMode::kSync},
    ModeRow{Mode::kSingleProcessMultiThread, "single_process_multi_thread", ServerMode::kSync, true},
    ModeRow{Mode::kFluidNotAsync, "fluid_not_async", ServerMode::kSync},
    ModeRow{Mode::kFluidNotAsyncDirect, "fluid_not_async_direct", ServerMode::kSync},
    ModeRow{Mode::kFluidNotAsyncAlone, "fluid_not_async_alone", ServerMode::kSync},
};

struct ServerModeRow {
  ServerMode mode;
  std::string_view name;
};

constexpr std::array kServerModes = {
    ServerModeRow{ServerMode::kSync, "sync"},
    ServerModeRow{ServerMode::kAsync, "async"},
    ServerModeRow{ServerMode::kHalfAsync, "half_async"},
    ServerModeRow{ServerMode::kGeo, "geo"},
};

const ModeRow& RowOf(Mode mode) {
  return *std::find_if(kModes.begin(), kModes.end(), [&](const ModeRow& row) { return row.mode == mode; });
}

}  // namespace

std::span<const Mode> AllModes() {
  static const auto kAll = [] {
    std::array<Mode, kModes.size()> all{};
    std::transform(kModes.begin(), kModes.end(), all.begin(), [](const ModeRow& row) { return row.mode; });
    return all;
  }();
  return kAll;
}

std::string_view ModeName(Mode mode) { return RowOf(mode).name; }

std::optional<Mode> ModeFromName(std::string_view name) {
  for (const ModeRow& row : kModes) {
    if (row.name == name) return row.mode;
  }
  return std::nullopt;
}

ServerMode ServerModeOf(Mode mode) { return RowOf(mode).server; }
bool EndsStepsByOps(Mode mode) { return mode == Mode::kSync || mode == Mode::kHybrid; }
bool MergesGradients(Mode mode) { return RowOf(mode).merges; }

std::string_view ServerModeName(ServerMode mode) {
  return std::find_if(kServerModes.begin(), kServerModes.end(),
                      [&](const ServerModeRow& row) { return row.mode == mode; })
      ->name;
}

std::optional<ServerMode> ServerModeFromName(std::string_view name) {
  for (const ServerModeRow& row : kServerModes) {
    if (row.name == name) return row.mode;
  }
  return std::nullopt;
}

}  // namespace penstock::plan
