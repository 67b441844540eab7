// Names of exchanges; the settings that exchanges over rings allow.
#include "transpiler/plan/exchange.h"

#include <cmath>

#include "transpiler/plan/exchange_config.h"
#include "transpiler/plan/mode.h"

namespace penstock::plan {
namespace {

constexpr char kRule[] = "E-plan-exchange";

struct OtherModeSetting {
  bool given = false;
  std::string text;    // as the user wrote it
  std::string remedy;  // empty: omit the setting
};

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNccl2:
      return "nccl2";
    case Kind::kCollective:
      return "collective";
    case Kind::kGeo:
      return "geo";
    case Kind::kPserver:
      break;
  }
  return "pserver";
}

// Settings that need another mode. In mode hybrid all trainers end a step together, and no process has the
// means of all gradients.
std::vector<OtherModeSetting> SettingsOfOtherModes(const TranspileConfig& config) {
  const bool asynchronous = !config.sync_mode_argument.value_or(config.sync_mode_field.value_or(true));
  return {
      {config.kind != Kind::kPserver, StrCat("mode ", KindName(config.kind)), "choose mode pserver"},
      {asynchronous, "sync_mode=false", "set sync_mode=true"},
      {config.runtime_split_send_recv, "runtime_split_send_recv=true", ""},
      {config.half_async, "half_async=true", ""},
      {config.completely_not_async, "completely_not_async=true", ""},
      {config.dc_asgd, "enable_dc_asgd=true", ""},
      {config.staleness.has_value(), StrCat("staleness=", config.staleness.value_or(0)), ""},
      {config.backup_trainers != 0, StrCat("backup_trainers=", config.backup_trainers), ""},
      {!config.compression.empty(), "compression", ""},
      {config.clip != Clip::kLocal, StrCat("clip=", ClipName(config.clip)), "clip locally"},
      {config.bn_sync != BnSync::kNone, StrCat("bn_sync=", BnSyncName(config.bn_sync)), ""},
      {config.hierarchical, "use_hierarchical_allreduce=true", ""},
      {!config.collective_mode.empty(), StrCat("collective_mode=", config.collective_mode), ""},
      {config.local_sgd_k_steps != 1, StrCat("local_sgd_k_steps=", config.local_sgd_k_steps), ""},
  };
}

Status ValidateNetwork(const TranspileConfig& config) {
  if (!std::isfinite(config.exchange_gbit) || config.exchange_gbit <= 0) {
    return InvalidArgument(kRule,
                           "plan: exchange_gbit, what a link carries each way, must be above 0 Gbit/s, not ",
                           config.exchange_gbit);
  }
  if (!std::isfinite(config.exchange_message_us) || config.exchange_message_us < 0) {
    return InvalidArgument(kRule, "plan: exchange_message_us must be at least 0 us, not ",
                           config.exchange_message_us);
  }
  return OkStatus();
}

}  // namespace

std::string_view DenseExchangeName(DenseExchange exchange) {
  switch (exchange) {
    case DenseExchange::kAllreduce:
      return "allreduce";
    case DenseExchange::kAuto:
      return "auto";
    case DenseExchange::kPserver:
      break;
  }
  return "pserver";
}

std::optional<DenseExchange> DenseExchangeFromName(std::string_view name) {
  for (const DenseExchange one : {DenseExchange::kPserver, DenseExchange::kAllreduce, DenseExchange::kAuto}) {
    if (DenseExchangeName(one) == name) return one;
  }
  return std::nullopt;
}

Status ValidateExchange(const TranspileConfig& config) {
  if (config.dense == DenseExchange::kPserver) return OkStatus();
  const std::string asked = StrCat("exchange dense=", DenseExchangeName(config.dense));
  if (config.dialect == Dialect::kFluid18) {
    return InvalidArgument(kRule, "plan: Fluid 1.8 has no ", asked,
                           "; leave it out, or transpile without compat");
  }
  for (const OtherModeSetting& setting : SettingsOfOtherModes(config)) {
    if (!setting.given) continue;
    return InvalidArgument(kRule, "plan: ", asked, " does not go with ", setting.text, "; ",
                           setting.remedy.empty() ? StrCat("leave out ", setting.text) : setting.remedy,
                           ", or let pservers update all parameters (dense=pserver)");
  }
  return ValidateNetwork(config);
}

}  // namespace penstock::plan
