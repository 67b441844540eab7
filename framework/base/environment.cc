#include "framework/base/environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace penstock::env {
namespace {

constexpr double kManyMs = 1e12, kManySeconds = 1e6, kProcesses = 1e6, kMany = 2147483647;

constexpr Setting Plain(const char* name) { return {name, Kind::kText}; }
constexpr Setting OneOf(const char* name, const char* choices) {
  return {name, Kind::kChoice, 0, 0, choices};
}
constexpr Setting YesNo(const char* name) { return {name, Kind::kFlag}; }
constexpr Setting Whole(const char* name, double least, double most) {
  return {name, Kind::kInteger, least, most};
}
constexpr Setting Decimal(const char* name, double least, double most) {
  return {name, Kind::kNumber, least, most};
}

constexpr std::array kSettings = {
    Whole("CPU_NUM", 1, kMany),
    Plain("CUDA_VISIBLE_DEVICES"),
    YesNo("DISABLE_PLOT"),
    Plain("DISTRIBUTED_TRAINER_ENDPOINTS"),
    Plain("DMLC_INTERFACE"),
    Plain("DMLC_NODE_HOST"),
    Whole("DMLC_NUM_SERVER", 0, kProcesses),
    Whole("DMLC_NUM_WORKER", 1, kProcesses),
    Whole("DMLC_PS_ROOT_PORT", 1, 65535),
    Plain("DMLC_PS_ROOT_URI"),
    OneOf("DMLC_ROLE", "worker server scheduler"),
    Whole("DMLC_TASK_ID", 0, kProcesses),
    YesNo("FLAGS_check_nan_inf"),
    YesNo("FLAGS_communicator_independent_recv_thread"),
    YesNo("FLAGS_communicator_is_sgd_optimizer"),
    Whole("FLAGS_communicator_max_merge_var_num", 1, kMany),
    Whole("FLAGS_communicator_min_send_grad_num_before_recv", 0, kMany),
    Whole("FLAGS_communicator_send_queue_size", 1, kMany),
    Whole("FLAGS_communicator_send_wait_times", 0, kMany),
    Whole("FLAGS_communicator_thread_pool_size", 1, kMany),
    Whole("FLAGS_rpc_deadline", 1, kManyMs),
    Whole("FLAGS_rpc_get_thread_num", 1, kMany),
    Whole("FLAGS_rpc_prefetch_thread_num", 1, kMany),
    Whole("FLAGS_rpc_retry_times", 0, kMany),
    Whole("FLAGS_rpc_send_thread_num", 1, kMany),
    Plain("FLAGS_selected_gpus"),
    Plain("FS_NAME"),
    Plain("FS_UGI"),
    Plain("GRPC_VERBOSITY"),
    Plain("HADOOP_HOME"),
    Whole("MXNET_KVSTORE_BIGARRAY_BOUND", 1, kMany),
    Plain("NCCL_SOCKET_IFNAME"),
    Plain("PADDLE_CURRENT_ENDPOINT"),
    YesNo("PADDLE_IS_BARRIER_ALL_ROLE"),
    Whole("PADDLE_NUM_TRAINERS", 1, kProcesses),
    Whole("PADDLE_PORT", 1, 65535),
    Plain("PADDLE_PSERVERS"),
    Plain("PADDLE_PSERVERS_IP_PORT_LIST"),
    Plain("PADDLE_PSERVER_ENDPOINTS"),
    Whole("PADDLE_PSERVER_ID", 0, kProcesses),
    Plain("PADDLE_TRAINERS"),
    Whole("PADDLE_TRAINERS_NUM", 1, kProcesses),
    Plain("PADDLE_TRAINER_ENDPOINTS"),
    Whole("PADDLE_TRAINER_ID", 0, kProcesses),
    Plain("PADDLE_TRAINING_ROLE"),
    Plain("PENSTOCK_CHECKPOINT_DIR"),
    Whole("PENSTOCK_CHECKPOINT_STEPS", 0, kMany),
    Plain("PENSTOCK_COLLECTIVE_BACKEND"),
    YesNo("PENSTOCK_CUDA_FALLBACK"),
    Plain("PENSTOCK_ELASTIC_FD"),
    Plain("PENSTOCK_FLIGHT_FD"),
    OneOf("PENSTOCK_FUSION", "on off"),
    Plain("PENSTOCK_IFNAME"),
    OneOf("PENSTOCK_ISA", "sse4 avx2 avx512"),
    Plain("PENSTOCK_JOB_ID"),
    Plain("PENSTOCK_JOB_TOKEN"),
    Whole("PENSTOCK_KEEP_CHECKPOINTS", 1, kMany),
    OneOf("PENSTOCK_LATE_PARAMETERS", "on off"),
    Plain("PENSTOCK_LAUNCH_FD"),
    OneOf("PENSTOCK_LAYOUTS", "chosen plain"),
    Plain("PENSTOCK_LOG_DIR"),
    OneOf("PENSTOCK_LOOKUPS_AHEAD", "on off"),
    Whole("PENSTOCK_MAX_ROLE_RESTART", 0, kMany),
    Whole("PENSTOCK_METRICS", 0, 65535),
    Whole("PENSTOCK_MOVES", 0, kMany),
    YesNo("PENSTOCK_MOVE_THREADS"),
    OneOf("PENSTOCK_ON_TRAINER_LOSS", "wait shrink abort"),
    Decimal("PENSTOCK_PROGRESS", 0, kManySeconds),
    Decimal("PENSTOCK_RECONNECT_S", 0, kManySeconds),
    Decimal("PENSTOCK_REPORT_AFTER", 1e-3, kManySeconds),
    Whole("PENSTOCK_RESTART_COUNT", 0, kMany),
    Whole("PENSTOCK_RESUME_STEP", 0, kMany),
    Whole("PENSTOCK_RETENTION_MB", 1, kMany),
    Whole("PENSTOCK_ROLE_RESTART_COUNT", 0, kMany),
    Decimal("PENSTOCK_START_S", 1e-3, kManySeconds),
    Whole("PENSTOCK_TABLE_SHARDS", 1, 1024),
    Plain("PENSTOCK_TLS_CA"),
    Plain("PENSTOCK_TLS_CERT"),
    Plain("PENSTOCK_TLS_KEY"),
    YesNo("PENSTOCK_TLS_MUTUAL"),
    Plain("PENSTOCK_TRACE"),
    Plain("PENSTOCK_TRANSPORT"),
    OneOf("PENSTOCK_VERIFY", "roundtrip"),
    Plain("PENSTOCK_WIRE"),
    Plain("PENSTOCK_WORK_ENDPOINT"),
    Plain("POD_IP"),
    Whole("PS_VERBOSE", 0, kMany),
    Plain("SYS_JOB_ID"),
    Whole("TRAINER_PORTS_NUM", 1, kMany),
    Plain("TRAINING_ROLE"),
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Taken(const Setting& setting) {
  switch (setting.kind) {
    case Kind::kText:
      return "any text";
    case Kind::kChoice:
      return Join(Split(setting.choices, ' '), " or ");
    case Kind::kFlag:
      return "1, true, yes or on, or 0, false, no or off";
    case Kind::kInteger:
      return StrCat("an integer from ", static_cast<std::int64_t>(setting.least), " to ",
                    static_cast<std::int64_t>(setting.most));
    case Kind::kNumber:
      return StrCat("a number from ", setting.least, " to ", setting.most);
  }
  return {};
}

// The value in the text; no value if there is none of this kind.
Value FlagIn(std::string_view text) {
  const std::string lower = Lower(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return Value(true);
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (lower == no) return Value(false);
  }
  return Value();
}

template <typename Number>
Value NumberIn(std::string_view text, const Setting& setting) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return Value();
  const bool within =
      number >= static_cast<Number>(setting.least) && number <= static_cast<Number>(setting.most);
  return within ? Value(number) : Value();  // NaN is not within
}

Value ValueIn(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case Kind::kText:
      return std::string(text);
    case Kind::kChoice: {
      const std::vector<std::string> choices = Split(setting.choices, ' ');
      return std::find(choices.begin(), choices.end(), text) == choices.end() ? Value()
                                                                              : Value(std::string(text));
    }
    case Kind::kFlag:
      return FlagIn(text);
    case Kind::kInteger:
      return NumberIn<std::int64_t>(text, setting);
    case Kind::kNumber:
      return NumberIn<double>(text, setting);
  }
  return {};
}

Result<Value> Read(const char* name, Kind kind) {
  const Setting* setting = FindSetting(name);
  PENSTOCK_CHECK(setting != nullptr && setting->kind == kind, StrCat(name, " is not a setting of this kind"));
  return Parse(*setting, Raw(name));
}

template <typename T>
Result<std::optional<T>> ReadAs(const char* name, Kind kind) {
  PENSTOCK_ASSIGN_OR_RETURN(const Value value, Read(name, kind));
  const T* found = std::get_if<T>(&value);
  return found == nullptr ? std::optional<T>() : std::optional<T>(*found);
}

}  // namespace

std::string Raw(const char* name) {
  PENSTOCK_CHECK(FindSetting(name) != nullptr, StrCat(name, " is not a setting"));
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::span<const Setting> AllSettings() { return kSettings; }

const Setting* FindSetting(std::string_view name) {
  const auto at = std::lower_bound(kSettings.begin(), kSettings.end(), name,
                                   [](const Setting& setting, std::string_view wanted) {
                                     return std::string_view(setting.name) < wanted;
                                   });
  return at != kSettings.end() && name == at->name ? &*at : nullptr;
}

Result<Value> Parse(const Setting& setting, std::string_view text) {
  const std::string_view given = setting.kind == Kind::kText ? text : StripSpace(text);
  Value value;
  if (!given.empty()) value = ValueIn(setting, given);
  if (given.empty() || !std::holds_alternative<std::monostate>(value)) return value;
  return InvalidArgument("E-environment", "the environment variable ", setting.name, " is ", Quote(text),
                         "; it takes ", Taken(setting));
}

std::string Text(const char* name) {
  const Result<Value> value = Read(name, Kind::kText);
  const std::string* text = value.ok() ? std::get_if<std::string>(&*value) : nullptr;
  return text == nullptr ? std::string() : *text;
}

Result<std::string> Choice(const char* name) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<std::string> chosen, ReadAs<std::string>(name, Kind::kChoice));
  return std::move(chosen).value_or("");
}

Result<bool> Flag(const char* name, bool otherwise) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<bool> flag, ReadAs<bool>(name, Kind::kFlag));
  return flag.value_or(otherwise);
}

Result<std::optional<std::int64_t>> Integer(const char* name) {
  return ReadAs<std::int64_t>(name, Kind::kInteger);
}

Result<std::optional<double>> Number(const char* name) { return ReadAs<double>(name, Kind::kNumber); }

Status CheckAll() {
  for (const Setting& setting : kSettings) {
    if (!StartsWith(setting.name, "PENSTOCK_") && !StartsWith(setting.name, "FLAGS_")) continue;
    PENSTOCK_RETURN_IF_ERROR(Parse(setting, Raw(setting.name)).status());
  }
  return OkStatus();
}

}  // namespace penstock::env
