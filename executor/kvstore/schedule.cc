#include "executor/kvstore/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "framework/base/strings.h"

namespace penstock::kvstore {
namespace {

struct ScheduleType {
  std::string_view name;
  Numbers defaults;              // beside those of every type
  std::vector<std::string> ask;  // arguments without a default
};

const std::vector<ScheduleType>& ScheduleTypes() {
  static const std::vector<ScheduleType> kTypes = {
      {"cosine", {{"final_lr", 0}}, {"max_update"}},
      {"factor", {{"factor", 1}, {"stop_factor_lr", 1e-8}}, {"step"}},
      {"multi_factor", {{"factor", 1}}, {}},
      {"poly", {{"final_lr", 0}, {"pwr", 2}}, {"max_update"}},
  };
  return kTypes;
}
const Numbers& OfEveryType() {
  static const Numbers kNumbers = {{"base_lr", 0.01}, {"warmup_begin_lr", 0}, {"warmup_steps", 0}};
  return kNumbers;
}

template <typename... Parts>
Status ScheduleError(const Schedule& schedule, const Parts&... parts) {
  return InvalidArgument("E-kv-schedule", "schedule ", schedule.type, ": ", StrCat(parts...));
}

Status RequireWhole(const Schedule& schedule, const char* argument, double least) {
  const auto found = schedule.numbers.find(argument);
  if (found == schedule.numbers.end()) return OkStatus();
  const double value = found->second;
  constexpr double kMost = 9007199254740992.0;  // 2^53: beyond, not each integer is a double
  if (value >= least && value <= kMost && value == std::floor(value)) return OkStatus();
  return ScheduleError(schedule, argument, " is ", value, "; it must be an integer from ", least, " on");
}

Status CheckSteps(const Schedule& schedule) {
  const bool listed = schedule.type == "multi_factor";
  if (!listed && !schedule.steps.empty()) return ScheduleError(schedule, "takes no list of steps");
  if (listed && schedule.steps.empty()) return ScheduleError(schedule, "the list of steps is empty");
  std::int64_t before = 0;
  for (const std::int64_t step : schedule.steps) {
    if (step <= before)
      return ScheduleError(schedule, "step ", step, " follows ", before, "; steps must rise, from 1 on");
    before = step;
  }
  return OkStatus();
}

Status CheckSchedule(const Schedule& schedule) {
  for (const auto& [name, value] : schedule.numbers) {
    if (!std::isfinite(value)) return ScheduleError(schedule, name, " is ", value, "; it must be finite");
  }
  PENSTOCK_RETURN_IF_ERROR(RequireWhole(schedule, "step", 1));
  PENSTOCK_RETURN_IF_ERROR(RequireWhole(schedule, "max_update", 1));
  PENSTOCK_RETURN_IF_ERROR(RequireWhole(schedule, "warmup_steps", 0));
  PENSTOCK_RETURN_IF_ERROR(CheckSteps(schedule));
  const auto at = [&](const char* name) { return schedule.numbers.find(name)->second; };
  if (schedule.numbers.contains("factor") && !(at("factor") >= 0 && at("factor") <= 1))
    return ScheduleError(schedule, "factor is ", at("factor"), "; it must be at least 0 and at most 1");
  if (at("warmup_begin_lr") > at("base_lr"))
    return ScheduleError(schedule, "warmup_begin_lr is ", at("warmup_begin_lr"),
                         "; it must be at most base_lr, ", at("base_lr"));
  if (schedule.numbers.contains("max_update") && at("max_update") <= at("warmup_steps"))
    return ScheduleError(schedule, "max_update is ", at("max_update"), "; it must be above warmup_steps, ",
                         at("warmup_steps"));
  return OkStatus();
}

// The rate after `times` falls, by a power: MXNet multiplies once for each fall.
double AfterFalls(double rate, double factor, std::int64_t times, double least) {
  return times == 0 ? rate : std::max(rate * std::pow(factor, static_cast<double>(times)), least);
}

}  // namespace

Result<Schedule> MakeSchedule(std::string_view type, const Numbers& given, std::vector<std::int64_t> steps,
                              bool constant_warmup) {
  Schedule schedule{.type = std::string(type),
                    .numbers = OfEveryType(),
                    .steps = std::move(steps),
                    .constant_warmup = constant_warmup};
  const auto& types = ScheduleTypes();
  const auto found = std::ranges::find(types, type, &ScheduleType::name);
  if (found == types.end())
    return InvalidArgument("E-kv-schedule", "there is no schedule ", type,
                           "; there are cosine, factor, multi_factor and poly");
  schedule.numbers.insert(found->defaults.begin(), found->defaults.end());
  for (const auto& [name, value] : given) {
    if (!schedule.numbers.contains(name) && std::ranges::find(found->ask, name) == found->ask.end())
      return ScheduleError(schedule, "has no argument ", name);
    schedule.numbers.insert_or_assign(name, value);
  }
  for (const std::string& name : found->ask) {
    if (!schedule.numbers.contains(name)) return ScheduleError(schedule, "argument ", name, " is missing");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckSchedule(schedule));
  return schedule;
}

double RateAt(const Schedule& schedule, std::int64_t number) {
  const auto at = [&](const char* name) { return schedule.numbers.find(name)->second; };
  const double base = at("base_lr"), warmup = at("warmup_steps");
  const auto n = static_cast<double>(number);
  if (n < warmup) {
    const double begin = at("warmup_begin_lr");
    return schedule.constant_warmup ? begin : begin + (base - begin) * n / warmup;
  }
  if (schedule.type == "factor") {
    const auto step = static_cast<std::int64_t>(at("step"));
    return AfterFalls(base, at("factor"), std::max<std::int64_t>(number - 1, 0) / step, at("stop_factor_lr"));
  }
  if (schedule.type == "multi_factor") {
    const auto passed = std::ranges::lower_bound(schedule.steps, number) - schedule.steps.begin();
    return AfterFalls(base, at("factor"), passed, 0);
  }
  const double last = at("max_update"), final = at("final_lr");
  const double done = (std::min(n, last) - warmup) / (last - warmup);
  if (schedule.type == "poly") return final + (base - final) * std::pow(1 - done, at("pwr"));
  return final + (base - final) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace penstock::kvstore
