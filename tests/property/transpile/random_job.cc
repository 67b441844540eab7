#include "tests/property/transpile/random_job.h"

#include <algorithm>

#include "framework/base/hash.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/support/program_files.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock::test {
namespace {

template <typename... Parts>
Status Broken(const Parts&... parts) {
  return InternalError("E-property", parts...);
}

Status ReadsBack(const std::string& role, const Program& program) {
  const std::string bytes = SerializeProgram(program);
  const Result<Program> parsed = ParseProgram(bytes);
  if (!parsed.ok()) return Broken(role, " does not read back: ", parsed.status().ToString());
  if (SerializeProgram(*parsed) != bytes) return Broken(role, " has other bytes once it is read back");
  const std::string text = PrintProgram(program, PrintOptions::Everything());
  const Result<Program> read = ParseText(text, role);
  if (!read.ok()) return Broken(role, " does not read back from its text: ", read.status().ToString());
  const std::string difference = Difference(program, *read);
  return difference.empty() ? OkStatus()
                            : Broken(role, " is another one when its text is read: ", difference);
}

Status PlanHolds(const RoleSet& roles, const Program& main) {
  PENSTOCK_RETURN_IF_ERROR(plan::ValidatePlan(roles.plan, main));
  const Result<plan::PlacementPlan> read = plan::ParsePlan(plan::PrintPlan(roles.plan));
  if (!read.ok()) return Broken("the plan does not read back: ", read.status().ToString());
  return *read == roles.plan ? OkStatus() : Broken("the plan is another one when its text is read");
}

// If the plan chooses the exchange, each parameter has the faster one.
Status ChoicesHold(const plan::PlacementPlan& plan) {
  for (const plan::ExchangeChoice& choice : plan.exchanges) {
    using Reason = plan::ExchangeChoice::Reason;
    const bool rings = choice.way == plan::DenseExchange::kAllreduce;
    const bool faster = choice.reason == Reason::kTimes && choice.allreduce_ns <= choice.pserver_ns;
    if (rings != faster) return Broken(choice.param, " is exchanged by the slower way");
    if ((plan.trainers == 1) != (choice.reason == Reason::kOneTrainer) && choice.reason != Reason::kSparse)
      return Broken(choice.param, " is exchanged for a reason that there is not");
  }
  return OkStatus();
}

// Checks the programs alone, and against their source.
Status CheckHolds(const check::RoleFiles& files, const RandomJob& job) {
  const check::SourcePrograms source{job.network.main, job.network.startup};
  for (const check::SourcePrograms* given : {static_cast<const check::SourcePrograms*>(nullptr), &source}) {
    const check::CheckReport report = check::CheckRoles(files, AllOps(), {.source = given});
    // Fluid's own sets have defects, which check reports.
    if (job.config.dialect == plan::Dialect::kFluid18 || report.errors() == 0) continue;
    return Broken("check refuses what was made", given == nullptr ? ":\n" : ", given the source:\n",
                  report.ToString());
  }
  return OkStatus();
}

int PserverCount(Draw& draw) {
  if (draw.OneIn(20)) return 64;
  return draw.OneIn(4) ? draw.Between(5, 63) : draw.Between(1, 4);
}

// Slicings and placements that Fluid does not have.
void Spread(Draw& draw, plan::TranspileConfig& config) {
  static constexpr plan::Slicing kSlicings[] = {plan::Slicing::kFluid, plan::Slicing::kFluid,
                                                plan::Slicing::kEven, plan::Slicing::kMxnet};
  static constexpr plan::Placement kPlacements[] = {plan::Placement::kRoundRobin,
                                                    plan::Placement::kRoundRobin, plan::Placement::kHashName,
                                                    plan::Placement::kSizeBalanced};
  if (config.slice_params) config.slicing = draw.Of(kSlicings);
  if (config.slicing != plan::Slicing::kMxnet) config.placement = draw.Of(kPlacements);  // kMxnet has its own
  if (draw.OneIn(2)) config.big_array_bound = draw.Between(1, 100000);
}

// The flags of the asynchronous modes, as the manual and fleet set them.
void MakeAsynchronous(Draw& draw, plan::TranspileConfig& config) {
  struct Flags {
    bool runtime_split, half_async, completely_not_async, dc_asgd;
  };
  static constexpr Flags kModes[] = {
      {false, false, false, false}, {true, false, false, false}, {true, true, false, false},
      {true, true, true, false},    {false, false, false, true}, {true, false, false, true},
      {true, true, false, true},
  };
  const Flags& flags = draw.Of(kModes);
  config.sync_mode_field = config.sync_mode_argument = false;
  config.runtime_split_send_recv = flags.runtime_split;
  config.half_async = flags.half_async;
  config.completely_not_async = flags.completely_not_async;
  config.dc_asgd = flags.dc_asgd;
}

// Jobs without pservers.
void MakeCollective(Draw& draw, plan::TranspileConfig& config) {
  static constexpr const char* kModes[] = {"grad_allreduce", "local_sgd", "single_process_multi_thread"};
  config.kind = draw.OneIn(4) ? plan::Kind::kNccl2 : plan::Kind::kCollective;
  if (config.kind == plan::Kind::kCollective) config.collective_mode = draw.Of(kModes);
  config.trainers = std::max(config.trainers, 2);
  config.pservers.clear();
  for (int i = 0; i < config.trainers; ++i) config.trainer_addresses.push_back(StrCat("10.1.", i, ".1:7164"));
  config.rings = draw.Between(1, 3);
  const bool steps = config.collective_mode == "local_sgd" && config.dialect == plan::Dialect::kDefault;
  if (steps) config.local_sgd_k_steps = draw.Between(1, 4);
}

// Rings and pservers, on a network for which parameters differ in their faster exchange.
void MakeBoth(Draw& draw, plan::TranspileConfig& config) {
  if (config.dialect == plan::Dialect::kFluid18) return;
  config.dense = plan::DenseExchange::kAuto;
  for (int i = 0; i < config.trainers; ++i) config.trainer_addresses.push_back(StrCat("10.1.", i, ".1:7164"));
  config.rings = draw.Between(1, 3);
  config.exchange_gbit = draw.Between(1, 100);
  config.exchange_message_us = draw.Below(50);
}

void ChooseMode(Draw& draw, plan::TranspileConfig& config) {
  switch (draw.Below(7)) {
    case 0:
    case 1:
      return MakeAsynchronous(draw, config);
    case 2:
      return MakeCollective(draw, config);
    case 3:
      config.kind = plan::Kind::kGeo;
      return;
    case 4:
      return MakeBoth(draw, config);
    default:
      return;  // synchronous
  }
}

// Settings that Fluid does not have, if the mode allows them.
void AddPolicies(Draw& draw, plan::TranspileConfig& config) {
  using Kind = Compression::Kind;
  static constexpr Compression kCompressions[] = {{.kind = Kind::kFp16},
                                                  {.kind = Kind::kBf16},
                                                  {.kind = Kind::kTwoBit},
                                                  {.kind = Kind::kTopK, .ratio = 0.1f}};
  if (config.dialect == plan::Dialect::kFluid18 || config.dense != plan::DenseExchange::kPserver) return;
  const plan::Mode mode = *plan::ResolveMode(config);
  if (mode == plan::Mode::kAsync && !draw.OneIn(3)) config.staleness = draw.Between(0, 5);
  const bool backups = mode == plan::Mode::kSync && config.clip == plan::Clip::kLocal && config.trainers > 1;
  if (backups && !draw.OneIn(3)) config.backup_trainers = draw.Between(1, config.trainers - 1);
  if (config.kind != plan::Kind::kPserver || draw.OneIn(2)) return;
  config.compression.all = draw.Of(kCompressions);
  if (draw.OneIn(2)) config.compression.min_size = draw.Between(1, 100000);
}

// Fluid recognises some optimizers by name; for others it distributes nothing, or raises. It supports one
// distributed table, and no lookups with ids of some shapes. Neither system shards a table that is not
// trained or whose update needs all rows, or applies delay compensation to it.
bool IsRefused(const RandomJob& job, const Status& status) {
  for (const char* id : {"E-plan-table-norm", "E-plan-table-frozen", "E-plan-clip-table", "E-plan-dc-asgd"}) {
    if (status.id() == id) return true;
  }
  static constexpr const char* kByFluid[] = {"E-plan-optimizer",     "E-plan-no-params",
                                             "E-plan-table-many",    "E-plan-table-mixed",
                                             "E-pass-prefetch-rank", "E-pass-prefetch-order"};
  return job.config.dialect == plan::Dialect::kFluid18 &&
         std::find(std::begin(kByFluid), std::end(kByFluid), status.id()) != std::end(kByFluid);
}

}  // namespace

RandomJob MakeRandomJob(std::uint64_t seed) {
  RandomJob job{.network = MakeRandomNetwork(AllOps(), seed, {.tables = true}), .config = {}};
  Draw draw(~seed);
  plan::TranspileConfig& config = job.config;
  config.dialect = draw.OneIn(4) ? plan::Dialect::kFluid18 : plan::Dialect::kDefault;
  config.trainers = draw.OneIn(10) ? 64 : draw.Between(1, 4);
  config.trainer_ids = {draw.Below(config.trainers)};
  const int pservers = PserverCount(draw);
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("10.0.", i, ".1:6174"));
  config.slice_params = !draw.OneIn(5);
  ChooseMode(draw, config);
  if (config.dialect == plan::Dialect::kDefault) Spread(draw, config);
  config.allow_small_blocks = draw.OneIn(2);
  if (config.allow_small_blocks) config.min_block_size = draw.Between(1, 8192);
  const bool merges = config.dialect == plan::Dialect::kDefault &&
                      config.dense == plan::DenseExchange::kPserver &&
                      plan::MergesGradients(*plan::ResolveMode(config));
  if (merges && !draw.OneIn(3)) config.clip = plan::Clip::kGlobal;
  AddPolicies(draw, config);
  return job;
}

Proof Prove(const RandomJob& job) {
  Proof proof;
  proof.holds = VerifyProgram(job.network.main, {.ops = &AllOps()});
  if (!proof.holds.ok()) return proof;
  const Result<RoleSet> roles = Transpile(AllOps(), job.network.main, job.network.startup, job.config);
  if (!roles.ok()) {
    if (!IsRefused(job, roles.status())) proof.holds = roles.status();
    return proof;
  }
  proof.digest = Fnv1a64(plan::PrintPlan(roles->plan));
  for (const plan::ParamPlacement& param : roles->plan.params)
    proof.slices = std::max(proof.slices, static_cast<int>(param.slices.size()));
  proof.holds = PlanHolds(*roles, job.network.main);
  if (proof.holds.ok()) proof.holds = ChoicesHold(roles->plan);
  const check::RoleFiles files = FilesOf(*roles);
  if (proof.holds.ok()) proof.holds = CheckHolds(files, job);
  for (const check::RoleProgram* role : files.All()) {
    proof.digest = Fnv1a64(SerializeProgram(role->program), proof.digest);
    if (proof.holds.ok()) proof.holds = ReadsBack(role->file, role->program);
  }
  return proof;
}

}  // namespace penstock::test
