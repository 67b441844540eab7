#include "transpiler/cost/choose_pservers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "transpiler/plan/make_plan.h"

namespace penstock::cost {
namespace {

using Message = JobMessage::Kind;

constexpr int kAllUpTo = 64;

// The program and analysis of a job that MakePlan needs: its parameters without ops.
struct Skeleton {
  Program main;
  plan::Analysis analysis;
};

Skeleton SkeletonOf(const Job& job) {
  Skeleton out;
  Block& main = out.main.MutableBlock(0);
  std::set<std::string> remote;
  for (const JobTable& table : job.tables) {
    if (table.remote) remote.insert(table.param);
  }
  for (const JobParam& param : ParamsOf(job)) {
    main.SetVar(TensorVar(param.name, param.dtype, param.shape));
    const int position = static_cast<int>(out.analysis.params.size());
    out.analysis.params.push_back({.param = param.name,
                                   .grad = param.name,
                                   .sparse = param.sparse,
                                   .prefetched = remote.contains(param.name),
                                   .elementwise = param.elementwise});
    out.analysis.update_order.push_back(position);
  }
  return out;
}

plan::TranspileConfig ConfigFor(const Job& job, int pservers, const plan::TranspileConfig& like) {
  plan::TranspileConfig config = like;
  config.kind = plan::Kind::kPserver;
  config.dialect = plan::Dialect::kDefault;
  config.allow_small_blocks = true;
  config.trainers = job.trainers;
  config.trainer_ids = {0};
  config.sync_mode_argument = config.sync_mode_field = std::nullopt;
  config.runtime_split_send_recv = config.half_async = config.completely_not_async = config.dc_asgd = false;
  // Messages are compressed as in the job; the plan does not decide it.
  config.staleness = std::nullopt;
  config.backup_trainers = 0;
  config.compression = {};
  config.pservers.clear();
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("pserver", i, ":1"));
  return config;
}

// The messages about each parameter, one of each kind, and for one pserver the messages about no parameter.
struct Pattern {
  std::map<std::string, std::vector<JobMessage>> of;
  std::vector<JobMessage> of_pserver;
};

Pattern PatternOf(const Job& job) {
  Pattern out;
  for (const JobMessage& message : job.present.front().messages) {
    if (message.kind == Message::kCounter || message.kind == Message::kSendBarrier ||
        message.kind == Message::kFetchBarrier) {
      if (message.pserver == 0) out.of_pserver.push_back(message);
      continue;
    }
    std::vector<JobMessage>& known = out.of[message.param];
    const bool there = std::any_of(known.begin(), known.end(),
                                   [&](const JobMessage& one) { return one.kind == message.kind; });
    if (!there) known.push_back(message);
  }
  return out;
}

void AddSlice(const plan::ParamPlacement& param, const plan::Slice& slice, const Pattern& pattern, Job& job) {
  const Shape shape = param.ShapeOf(slice);
  const std::int64_t bytes = shape.Count() * static_cast<std::int64_t>(SizeOf(param.dtype));
  job.pieces.push_back({.name = param.param,
                        .param = param.param,
                        .pserver = slice.pserver,
                        .dtype = param.dtype,
                        .shape = shape,
                        .sparse = param.sparse,
                        .value_bytes = bytes});
  const auto messages = pattern.of.find(param.param);
  if (messages == pattern.of.end()) return;
  for (JobMessage message : messages->second) {
    message.pserver = slice.pserver;
    message.row_begin = slice.row_begin;
    message.row_end = slice.row_end;
    if (message.table < 0) message.bytes = bytes;
    job.present.front().messages.push_back(std::move(message));
  }
}

// Every pserver sends measures of its pieces to all others, with the job's average number of bytes per piece.
void AddTellings(const Job& job, Job& out) {
  std::int64_t told = 0;
  for (const JobTelling& telling : job.tellings) told += telling.bytes;
  const auto pieces = static_cast<std::int64_t>(job.pieces.size());
  std::vector<std::int64_t> held(out.pservers.size(), 0);
  for (const JobPiece& piece : out.pieces) ++held[static_cast<std::size_t>(piece.pserver)];
  for (std::size_t i = 0; told > 0 && i < held.size(); ++i) {
    const auto peers = static_cast<int>(held.size()) - 1;
    if (held[i] == 0 || peers == 0) continue;
    out.tellings.push_back(
        {.pserver = static_cast<int>(i), .peers = peers, .bytes = held[i] * told / pieces});
  }
}

PserverChoice ChoiceOf(int pservers, const CostReport& cost, const Expectation& expected) {
  PserverChoice choice{.pservers = pservers,
                       .parameters = cost.parameters,
                       .step_ms = expected.step_ms,
                       .efficiency = expected.efficiency};
  for (const PserverCost& one : cost.pservers) {
    if (one.traffic.up.bytes > choice.busiest_up.bytes) choice.busiest_up = one.traffic.up;
    if (one.traffic.down.bytes > choice.busiest_down.bytes) choice.busiest_down = one.traffic.down;
  }
  return choice;
}

// Sizes by pserver, in no order within one.
std::multiset<std::pair<int, std::int64_t>> SizesOf(const Job& job) {
  std::multiset<std::pair<int, std::int64_t>> out;
  for (const JobPiece& piece : job.pieces) out.emplace(piece.pserver, piece.value_bytes);
  return out;
}

std::vector<int> Candidates(const Job& job) {
  const int given = static_cast<int>(job.pservers.size());
  const int most = std::max(job.trainers, given);
  std::vector<int> out;
  for (int n = 1; n <= std::min(most, kAllUpTo); ++n) out.push_back(n);
  for (int n = 2 * kAllUpTo; n <= most; n *= 2) out.push_back(n);
  out.push_back(given);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

plan::TranspileConfig ConfigLike(const Job& job) {
  plan::TranspileConfig config;
  const std::vector<JobParam> params = ParamsOf(job);
  const auto cut = [](const JobParam& param) { return param.pieces > 1; };
  const auto could = [&](const JobParam& param) {
    return job.pservers.size() > 1 && param.shape.IsKnown() && param.shape.rank() > 0 && param.shape[0] > 1 &&
           param.elementwise && param.shape.Count() >= 2 * config.min_block_size;
  };
  config.slice_params =
      std::any_of(params.begin(), params.end(), cut) || std::none_of(params.begin(), params.end(), could);
  return config;
}

Result<Job> WithPservers(const Job& job, int pservers, const plan::TranspileConfig& like) {
  const Skeleton skeleton = SkeletonOf(job);
  PENSTOCK_ASSIGN_OR_RETURN(const plan::PlacementPlan plan,
                            plan::MakePlan(skeleton.main, skeleton.analysis, ConfigFor(job, pservers, like)));
  Job out;
  out.exchange = job.exchange;
  out.trainers = job.trainers;
  out.pservers = plan.pservers;
  out.tables = job.tables;
  out.steps_per_exchange = job.steps_per_exchange;
  out.pserver_memory.resize(plan.pservers.size());
  out.present.emplace_back();
  const Pattern pattern = PatternOf(job);
  for (const plan::ParamPlacement& param : plan.params) {
    for (const plan::Slice& slice : param.slices) AddSlice(param, slice, pattern, out);
  }
  AddTellings(job, out);
  for (int i = 0; i < pservers; ++i) {
    for (JobMessage message : pattern.of_pserver) {
      message.pserver = i;
      out.present.front().messages.push_back(std::move(message));
    }
  }
  return out;
}

Result<PserverAdvice> ChoosePservers(const Job& job, const CostOptions& options, const Network& network,
                                     const plan::TranspileConfig& like) {
  PserverAdvice advice;
  if (job.pieces.empty() || job.present.front().messages.empty()) return advice;
  double best = std::numeric_limits<double>::infinity();
  for (const int pservers : Candidates(job)) {
    PENSTOCK_ASSIGN_OR_RETURN(const Job other, WithPservers(job, pservers, like));
    PENSTOCK_ASSIGN_OR_RETURN(const CostReport cost, EstimateCost(other, options));
    PENSTOCK_ASSIGN_OR_RETURN(const Expectation expected, Expect(other, cost, network));
    advice.tried.push_back(ChoiceOf(pservers, cost, expected));
    if (pservers == static_cast<int>(job.pservers.size())) advice.as_given = SizesOf(other) == SizesOf(job);
    if (expected.step_ms >= best) continue;
    best = expected.step_ms;
    advice.best = pservers;
  }
  const auto chosen =
      std::find_if(advice.tried.begin(), advice.tried.end(),
                   [&](const PserverChoice& choice) { return choice.step_ms <= best * kStepTolerance; });
  advice.chosen = chosen->pservers;
  return advice;
}

}  // namespace penstock::cost
