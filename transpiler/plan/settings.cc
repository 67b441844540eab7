#include "transpiler/plan/settings.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "framework/base/strings.h"

namespace penstock::plan {
namespace {

using Config = TranspileConfig;

// The member that a pointer to a member names.
template <typename T>
T MemberOf(T Config::*);
template <auto kMember>
using TypeOfMember = decltype(MemberOf(kMember));

template <typename T>
struct Plain {
  using Type = T;
  static constexpr bool kOptional = false;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
  static constexpr bool kOptional = true;
};

// How values of a member are kept in a SettingValue.
template <typename T>
using Stored = std::conditional_t<
    std::is_same_v<T, bool>, bool,
    std::conditional_t<std::is_integral_v<T>, std::int64_t,
                       std::conditional_t<std::is_floating_point_v<T>, double, std::string>>>;

template <auto kMember>
SettingValue Get(const Config& config) {
  using Member = Plain<TypeOfMember<kMember>>;
  if constexpr (Member::kOptional) {
    const auto& member = config.*kMember;
    return member ? SettingValue(static_cast<Stored<typename Member::Type>>(*member)) : SettingValue();
  } else {
    return static_cast<Stored<typename Member::Type>>(config.*kMember);
  }
}

template <auto kMember>
Status Set(Config& config, const SettingValue& value) {
  using Member = Plain<TypeOfMember<kMember>>;
  if constexpr (Member::kOptional) {
    if (std::holds_alternative<std::monostate>(value)) {
      config.*kMember = std::nullopt;
      return OkStatus();
    }
  }
  config.*kMember = static_cast<typename Member::Type>(std::get<Stored<typename Member::Type>>(value));
  return OkStatus();
}

template <auto kMember, auto kNameOf>
SettingValue GetWord(const Config& config) {
  return std::string(kNameOf(config.*kMember));
}

template <auto kMember, auto kFromName>
Status SetWord(Config& config, const SettingValue& value) {
  const auto known = kFromName(std::get<std::string>(value));
  PENSTOCK_CHECK(known.has_value(), "a word that its setting does not list");
  config.*kMember = *known;
  return OkStatus();
}

template <auto kMember>
Setting Of(Setting row) {
  using Member = Plain<TypeOfMember<kMember>>;
  using Type = typename Member::Type;
  row.type = std::is_same_v<Type, bool>       ? SettingType::kFlag
             : std::is_integral_v<Type>       ? SettingType::kInteger
             : std::is_floating_point_v<Type> ? SettingType::kNumber
                                              : SettingType::kText;
  row.is_optional = Member::kOptional;
  if constexpr (std::is_integral_v<Type>) row.bits = 8 * static_cast<int>(sizeof(Type));
  row.get = &Get<kMember>;
  row.set = &Set<kMember>;
  return row;
}

template <auto kMember, auto kNameOf, auto kFromName>
Setting WordOf(Setting row) {
  row.type = SettingType::kWord;
  row.get = &GetWord<kMember, kNameOf>;
  row.set = &SetWord<kMember, kFromName>;
  return row;
}

Setting CompressionRow(Setting row) {
  row.type = SettingType::kText;
  row.get = [](const Config& config) -> SettingValue { return config.compression.ToString(); };
  row.set = [](Config& config, const SettingValue& value) -> Status {
    PENSTOCK_ASSIGN_OR_RETURN(config.compression, ParseCompression(std::get<std::string>(value)));
    return OkStatus();
  };
  return row;
}

// How parameters are cut and placed.
std::vector<Setting> PlacementRows() {
  return {
      Of<&Config::slice_params>(
          {.name = "slice_params", .key = "slice_var_up", .doc = "cut large parameters into slices"}),
      Of<&Config::min_block_size>({.name = "min_block_size",
                                   .key = "min_block_size",
                                   .least = 1,
                                   .rule = "E-plan-min-block-size",
                                   .doc = "the minimum number of elements of a slice"}),
      Of<&Config::allow_small_blocks>({.name = "allow_small_blocks",
                                       .key = "min_block_size_after_ctor",
                                       .doc = "min_block_size may be below Fluid's minimum"}),
      WordOf<&Config::slicing, SlicingName, SlicingFromName>(
          {.name = "slicing",
           .key = "slicing",
           .flag = "slicing",
           .rule = "E-plan-slicing",
           .words = {"fluid", "even", "mxnet"},
           .doc = "how parameters are sliced: fluid, even or mxnet"}),
      Of<&Config::big_array_bound>({.name = "big_array_bound",
                                    .key = "big_array_bound",
                                    .least = 1,
                                    .rule = "E-plan-big-array-bound",
                                    .doc = "slicing mxnet: elements from which on a parameter is cut"}),
      WordOf<&Config::placement, PlacementName, PlacementFromName>(
          {.name = "placement",
           .key = "split_method",
           .flag = "split_method",
           .rule = "E-plan-dispatcher",
           .words = {"RoundRobin", "HashName", "SizeBalanced"},
           .doc = "assigns slices to pservers: RoundRobin, HashName or SizeBalanced",
           .note = "a dispatcher of your own is code: give it to transpile() in Python or C++"}),
      Of<&Config::chunk_bytes>({.name = "chunk_bytes",
                                .key = "chunk_bytes",
                                .least = 1,
                                .rule = "E-plan-chunk-bytes",
                                .doc = "the maximum size of a chunk, the unit of merge and update"}),
  };
}

// When pservers update.
std::vector<Setting> ModeRows() {
  return {
      Of<&Config::sync_mode_argument>({.name = "sync_mode_argument",
                                       .key = "sync_mode",
                                       .doc = "pservers wait for all trainers' gradients of a step: "
                                              "the argument of transpile()"}),
      Of<&Config::sync_mode_field>({.name = "sync_mode_field",
                                    .key = "config_sync_mode",
                                    .doc = "the same, as a field of the configuration"}),
      Of<&Config::runtime_split_send_recv>(
          {.name = "runtime_split_send_recv",
           .key = "runtime_split_send_recv",
           .doc = "async: a communicator splits, merges and sends gradients"}),
      Of<&Config::half_async>({.name = "half_async",
                               .key = "half_async",
                               .doc = "with runtime_split_send_recv: a trainer waits for its own gradients"}),
      Of<&Config::completely_not_async>(
          {.name = "completely_not_async",
           .key = "completely_not_async",
           .doc = "with runtime_split_send_recv: sync; pservers wait for all trainers"}),
      Of<&Config::dc_asgd>({.name = "dc_asgd",
                            .key = "enable_dc_asgd",
                            .doc = "async: correct gradients for their staleness (DC-ASGD)"}),
      Of<&Config::dc_asgd_lambda>(
          {.name = "dc_asgd_lambda", .key = "dc_asgd_lambda", .doc = "factor of that correction"}),
      Of<&Config::geo_push_every>({.name = "geo_push_every",
                                   .key = "geo_sgd_need_push_nums",
                                   .least = 1,
                                   .rule = "E-plan-geo-push",
                                   .doc = "geo-SGD: steps between two exchanges"}),
  };
}

// What Fluid does not have.
std::vector<Setting> PolicyRows() {
  return {
      WordOf<&Config::clip, ClipName, ClipFromName>(
          {.name = "clip",
           .key = "clip",
           .flag = "clip",
           .rule = "E-plan-clip",
           .words = {"local", "global"},
           .doc = "which gradients are clipped: local (each trainer's) or global (their mean)"}),
      WordOf<&Config::bn_sync, BnSyncName, BnSyncFromName>(
          {.name = "bn_sync",
           .key = "bn_sync",
           .rule = "E-plan-bn-sync",
           .words = {"none", "average"},
           .doc = "running statistics of batch_norm: each trainer's own, or averaged over trainers"}),
      Of<&Config::staleness>(
          {.name = "staleness",
           .key = "staleness",
           .flag = "staleness",
           .doc = "async: steps that a trainer may be ahead of the slowest; -1: unbounded"}),
      Of<&Config::backup_trainers>({.name = "backup_trainers",
                                    .key = "backup_trainers",
                                    .flag = "backup_trainers",
                                    .doc = "sync: number of trainers for which a step does not wait"}),
      WordOf<&Config::on_uneven, OnUnevenName, OnUnevenFromName>(
          {.name = "on_uneven",
           .key = "on_uneven",
           .flag = "on_uneven",
           .rule = "E-plan-on-uneven",
           .words = {"", "join", "pad", "error"},
           .doc = "if trainers' batches differ in size or number: join, pad or error"}),
      CompressionRow(
          {.name = "compression",
           .key = "compression",
           .flag = "compression",
           .doc = "compression of gradients, as \"two_bit 0.5 from 65536, fc.w: none\": none, fp16, bf16, "
                  "two_bit THRESHOLD or top_k RATIO, by minimum number of elements and by parameter"}),
      WordOf<&Config::dense, DenseExchangeName, DenseExchangeFromName>(
          {.name = "dense",
           .key = "dense_exchange",
           .flag = "exchange",
           .rule = "E-plan-exchange",
           .words = {"pserver", "allreduce", "auto"},
           .doc = "sync: how dense gradients are summed: pserver, allreduce (among the trainers, whose "
                  "addresses are in --config) or auto (for each parameter, the faster by the cost model)"}),
      Of<&Config::exchange_gbit>(
          {.name = "exchange_gbit",
           .key = "exchange_gbit",
           .flag = "exchange_gbit",
           .doc = "--exchange auto: bandwidth of a link in each direction, in Gbit/s"}),
      Of<&Config::exchange_message_us>(
          {.name = "exchange_message_us",
           .key = "exchange_message_us",
           .flag = "exchange_message_us",
           .doc = "--exchange auto: cost of a message besides its bytes, in microseconds"}),
  };
}

// Trainers that exchange among themselves.
std::vector<Setting> RankRows() {
  return {
      Of<&Config::rings>({.name = "rings",
                          .key = "nccl_comm_num",
                          .doc = "ranks: the number of rings, which are used in turn"}),
      Of<&Config::node_ranks>({.name = "node_ranks",
                               .key = "hierarchical_inter_nranks",
                               .doc = "nccl2: ranks of one machine, which reduce first"}),
      Of<&Config::collective_mode>(
          {.name = "collective_mode",
           .key = "collective_mode",
           .doc = "collective: grad_allreduce, local_sgd or single_process_multi_thread"}),
      Of<&Config::local_sgd_k_steps>({.name = "local_sgd_k_steps",
                                      .key = "local_sgd_k_steps",
                                      .least = 1,
                                      .rule = "E-plan-local-sgd-steps",
                                      .doc = "local_sgd: steps between two averages"}),
      Of<&Config::local_sgd_adaptive>(
          {.name = "local_sgd_adaptive",
           .key = "local_sgd_adaptive",
           .doc = "local_sgd: the number of steps follows the loss and the learning rate"}),
      Of<&Config::shared_transpiler>({.name = "shared_transpiler",
                                      .key = "shared_transpiler",
                                      .doc = "compat: one transpiler object makes all roles"}),
  };
}

}  // namespace

bool Setting::HasWord(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

std::string_view Setting::TypeText() const {
  switch (type) {
    case SettingType::kFlag:
      return "true or false";
    case SettingType::kInteger:
      return bits == 32 ? "an integer of 32 bits" : "an integer";
    case SettingType::kNumber:
      return "a number";
    default:
      return "a text";
  }
}

std::string Setting::OtherWordText() const {
  std::vector<std::string_view> named = words;
  std::erase(named, "");
  if (named.size() == 2) return StrCat("neither ", named[0], " nor ", named[1]);
  return StrCat("none of ", Join(named, ", "));
}

std::span<const Setting> Settings() {
  static const std::vector<Setting>& all = []() -> const std::vector<Setting>& {
    auto& rows = *new std::vector<Setting>();
    for (std::vector<Setting> (*part)() : {PlacementRows, ModeRows, PolicyRows, RankRows}) {
      for (Setting& row : part()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

const Setting* FindSetting(std::string_view name) {
  const std::span<const Setting> rows = Settings();
  const auto row = std::ranges::find(rows, name, &Setting::name);
  return row == rows.end() ? nullptr : &*row;
}

Status CheckBounds(const TranspileConfig& config, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const Setting* row = FindSetting(name);
    PENSTOCK_CHECK(row != nullptr && row->least, StrCat("a setting without bound: ", name));
    const std::int64_t value = std::get<std::int64_t>(row->get(config));
    if (value >= *row->least) continue;
    return InvalidArgument(std::string(row->rule), "plan: ", row->key, " must be at least ", *row->least,
                           ", not ", value);
  }
  return OkStatus();
}

}  // namespace penstock::plan
