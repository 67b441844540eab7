#include "executor/kvstore/optimizer.h"

#include <algorithm>
#include <utility>

#include "executor/kvstore/optimizer_arguments.h"
#include "executor/kvstore/optimizer_program.h"
#include "framework/base/near_names.h"
#include "framework/base/strings.h"

namespace penstock::kvstore {
namespace {

using ParamNames = std::map<std::string, std::string, std::less<>>;

Status UnknownName(std::string_view name) {
  return InvalidArgument("E-kv-optimizer-name", "there is no optimizer ", Quote(std::string(name)),
                         "; there are ", Join(OptimizerNames(), ", "));
}

Status UnknownArgument(std::string_view optimizer, std::string_view argument) {
  std::vector<std::string> names;
  for (const Argument* one : ArgumentsOf(optimizer)) names.emplace_back(one->name);
  Status error = InvalidArgument("E-kv-optimizer-argument", optimizer, " has no argument ", argument,
                                 "; it has ", Join(names, ", "));
  const std::vector<std::string_view> near = NearNames(argument, names);
  return near.empty() ? error : std::move(error).With(StrCat("did you mean ", near.front()));
}

Status Refused(std::string_view optimizer, std::string_view why) {
  return Unimplemented("E-kv-optimizer-refused", optimizer, ": ", why);
}

// What MXNet refuses, or computes by no formula that a user can expect.
Status CheckCombination(const KeyOptimizer& optimizer) {
  if (optimizer.name == "lbsgd")
    return Refused("lbsgd", "it is not offered; use lars, or sgd with a schedule that has warmup_steps");
  if (optimizer.name == "groupadagrad" && optimizer.Number("wd") != 0)
    return Refused("groupadagrad", StrCat("wd is ", optimizer.Number("wd"), "; it has no weight decay"));
  if (optimizer.name == "dcasgd" && optimizer.Number("momentum") != 0)
    return Refused("dcasgd", StrCat("momentum is ", optimizer.Number("momentum"), "; it has no momentum"));
  return OkStatus();
}

// As in MXNet, a factor of the key hides one of its parameter's name.
double FactorOf(const KeyOptimizer& optimizer, const Numbers& factors, std::string_view key) {
  if (factors.empty()) return 1;
  if (const auto own = factors.find(key); own != factors.end()) return own->second;
  const auto name = optimizer.param_names.find(key);
  if (name == optimizer.param_names.end()) return 1;
  const auto named = factors.find(name->second);
  return named == factors.end() ? 1 : named->second;
}

}  // namespace

double KeyOptimizer::Number(std::string_view argument) const {
  const auto found = numbers.find(argument);
  PENSTOCK_CHECK(found != numbers.end(), StrCat(name, " has no number ", argument));
  return found->second;
}

Result<KeyOptimizer> MakeOptimizer(std::string_view name, const Numbers& given, Schedule schedule,
                                   ParamNames param_names) {
  if (!HasOptimizer(name)) return UnknownName(name);
  KeyOptimizer optimizer{.name = std::string(name),
                         .numbers = {},
                         .schedule = std::move(schedule),
                         .lr_multipliers = {},
                         .wd_multipliers = {},
                         .param_names = std::move(param_names)};
  for (const Argument* argument : ArgumentsOf(name)) {
    if (argument->value) optimizer.numbers.emplace(argument->name, *argument->value);
  }
  for (const auto& [argument, value] : given) {
    const Argument* found = FindArgument(name, argument);
    if (found == nullptr) return UnknownArgument(name, argument);
    if (!InRange(*found, value))
      return InvalidArgument("E-kv-optimizer-argument", name, ": ", argument, " is ", value, "; it must be ",
                             RangeOf(*found));
    optimizer.numbers.insert_or_assign(argument, value);
  }
  PENSTOCK_RETURN_IF_ERROR(CheckCombination(optimizer));
  const auto rate = optimizer.numbers.find("learning_rate");
  if (rate == optimizer.numbers.end()) {
    optimizer.numbers.emplace("learning_rate",
                              optimizer.schedule.none() ? 0.01 : optimizer.schedule.numbers["base_lr"]);
  } else if (optimizer.schedule.numbers.contains("factor")) {
    // MXNet's schedules by poly and cosine keep the rate that they were made with.
    optimizer.schedule.numbers["base_lr"] = rate->second;
  }
  SetDecayMultipliers(optimizer, {});
  return optimizer;
}

void SetDecayMultipliers(KeyOptimizer& optimizer, const Numbers& given) {
  optimizer.wd_multipliers.clear();
  for (const auto& [key, name] : optimizer.param_names) {
    if (!EndsWith(name, "_weight") && !EndsWith(name, "_gamma")) optimizer.wd_multipliers[name] = 0;
  }
  for (const auto& [name, factor] : given) optimizer.wd_multipliers.insert_or_assign(name, factor);
}

bool NeedsWhole(const KeyOptimizer& optimizer) {
  if (optimizer.program != nullptr) return optimizer.program->needs_whole;
  return optimizer.name == "lamb" || optimizer.name == "lars" || optimizer.name == "sgld";
}

KeyNumbers NumbersAt(const KeyOptimizer& optimizer, std::string_view key, std::int64_t count,
                     std::int64_t largest) {
  if (optimizer.program != nullptr) return {};
  const auto before = static_cast<std::int64_t>(optimizer.Number("begin_num_update"));
  const double rate = optimizer.schedule.none() ? optimizer.Number("learning_rate")
                                                : RateAt(optimizer.schedule, before + largest);
  return {.rate = rate * FactorOf(optimizer, optimizer.lr_multipliers, key),
          .decay = optimizer.Number("wd") * FactorOf(optimizer, optimizer.wd_multipliers, key),
          // dcasgd asks only whether the key has an earlier update.
          .count = static_cast<double>(optimizer.name == "dcasgd" ? count : before + count),
          .rescale = optimizer.Number("rescale_grad")};
}

}  // namespace penstock::kvstore
