#include "transpiler/cost/choose_exchange.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace penstock::cost {
namespace {

using plan::DenseExchange;
using plan::ExchangeChoice;

std::int64_t Nanoseconds(double ms) { return std::llround(ms * 1e6); }

// Slices, and bytes in all.
std::map<std::string, Volume> DenseParams(const plan::PlacementPlan& plan) {
  std::map<std::string, Volume> out;
  for (const plan::ParamPlacement& param : plan.params) {
    if (param.sparse || param.prefetched) continue;
    Volume& volume = out[param.param];
    for (const plan::Slice& slice : param.slices) volume += {1, param.BytesOf(slice)};
  }
  return out;
}

ExchangeChoice ChoiceOf(const std::string& name, const Volume* dense, const plan::TranspileConfig& config) {
  ExchangeChoice choice{.param = name};
  if (dense == nullptr) return choice;
  if (config.trainers == 1) {
    choice.reason = ExchangeChoice::Reason::kOneTrainer;
    return choice;
  }
  const Network network{.bits_per_second = config.exchange_gbit * 1e9,
                        .message_us = config.exchange_message_us};
  const ExchangeTimes times =
      TimesOfExchange(*dense, config.trainers, static_cast<int>(config.pservers.size()), network);
  choice.reason = ExchangeChoice::Reason::kTimes;
  choice.allreduce_ns = times.allreduce_ns;
  choice.pserver_ns = times.pserver_ns;
  if (times.allreduce_ns <= times.pserver_ns) choice.way = DenseExchange::kAllreduce;
  return choice;
}

}  // namespace

ExchangeTimes TimesOfExchange(const Volume& param, int trainers, int pservers, const Network& network) {
  const double trainer_ms = LinkMs(param, network);
  const double pserver_ms = LinkMs(param.Times(trainers), network) / pservers;
  return {.allreduce_ns = Nanoseconds(LinkMs(RingVolume({1, param.bytes}, trainers), network)),
          .pserver_ns = Nanoseconds(2 * std::max(trainer_ms, pserver_ms))};
}

Result<plan::TranspileConfig> ChooseExchanges(const plan::PlanRequest& request) {
  PENSTOCK_RETURN_IF_ERROR(plan::ValidateConfig(request.config));
  plan::TranspileConfig chosen = request.config;
  chosen.dense = DenseExchange::kPserver;
  PENSTOCK_ASSIGN_OR_RETURN(
      const plan::Planned planned,
      plan::PlanUpdatesOnPservers(
          {.ops = request.ops, .main = request.main, .startup = request.startup, .config = chosen}));
  const std::map<std::string, Volume> dense = DenseParams(planned.plan);
  for (const plan::TrainedParam& param : planned.analysis.params) {
    const auto found = dense.find(param.param);
    chosen.exchanges.push_back(
        ChoiceOf(param.param, found == dense.end() ? nullptr : &found->second, chosen));
    if (chosen.exchanges.back().way == DenseExchange::kAllreduce) chosen.dense = DenseExchange::kAllreduce;
  }
  return chosen;
}

}  // namespace penstock::cost
