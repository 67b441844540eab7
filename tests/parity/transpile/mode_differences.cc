#include "tests/parity/transpile/mode_differences.h"

#include <algorithm>

#include "operators/all_ops.h"
#include "tests/parity/transpile/difference_parts.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/names.h"

namespace penstock::test {

// --- D-sync-mode

namespace {

plan::ServerMode ToldByFluid(const CaseFolder& folder, const RoleSet& roles) {
  plan::TranspileConfig config = folder.job.config;
  config.dialect = plan::Dialect::kFluid18;
  return plan::ResolveServerMode(config, roles.plan.mode);
}

}  // namespace

bool ToldAnotherMode(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return file.pserver && !file.startup && ToldByFluid(folder, roles) != plan::ServerModeOf(roles.plan.mode);
}

void TellTheMode(const CaseFolder&, const RoleSet& roles, const RoleFile&, Program& program) {
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "listen_and_serv") return false;
    op.Set("distributed_mode", static_cast<std::int32_t>(plan::ServerModeOf(roles.plan.mode)));
    return true;
  });
}

bool SaysBothModes(const plan::TranspileConfig& config) {
  const auto& argument = config.sync_mode_argument;
  const auto& field = config.sync_mode_field;
  const bool differ = argument && field && *argument != *field;
  return differ || (config.half_async && argument != false);
}

// --- D-not-async

namespace {

bool NotAsync(const CaseFolder& folder) {
  return folder.job.config.completely_not_async && folder.job.config.sync_mode_argument == false;
}

}  // namespace

// The trainer has no communicator, or no barrier that ends its step.
bool NotAsyncHangs(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const plan::TranspileConfig& config = folder.job.config;
  const bool ends = config.half_async || config.trainers == 1;
  return NotAsync(folder) && !(config.runtime_split_send_recv && ends);
}

void EndSteps(plan::TranspileConfig& config) {
  config.half_async = config.runtime_split_send_recv;
  if (config.runtime_split_send_recv) return;
  config.sync_mode_argument = config.sync_mode_field = true;
  config.completely_not_async = false;
}

// --- D-not-async-steps

bool StepsDiffer(const CaseFolder& folder, const RoleSet& roles, const RoleFile&) {
  const Result<plan::Analysis> analysis = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  const bool counts = analysis.ok() && !analysis->step_counters.empty();
  return roles.plan.mode == plan::Mode::kNotAsync &&
         (counts || roles.plan.trainers == 1 || !roles.plan.tables.empty());
}

// --- D-async-schedule

namespace {

std::vector<plan::StepCounter> CountersOf(const CaseFolder& folder, const RoleSet& roles) {
  const bool merges = roles.plan.mode == plan::Mode::kSync || roles.plan.mode == plan::Mode::kNotAsync;
  const Result<plan::Analysis> analysis = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  return merges || !analysis.ok() ? std::vector<plan::StepCounter>() : analysis->step_counters;
}

}  // namespace

bool BeginsACounter(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return file.pserver && file.startup && !CountersOf(folder, roles).empty();
}

namespace {

float FillValue(const Program& program, const std::string& var) {
  for (const OpEntry& entry : program.main().ops()) {
    if (entry.op->OutputName("Out") == var) return entry.op->GetOr<float>("value", 0.0f);
  }
  return 0.0f;
}

}  // namespace

void BeginAsOneMachine(const CaseFolder& folder, const RoleSet& roles, const RoleFile&, Program& program) {
  for (const plan::StepCounter& counter : CountersOf(folder, roles)) {
    for (int trainer = 0; trainer < roles.plan.trainers; ++trainer) {
      const float first = FillValue(folder.startup, counter.var) + counter.step;
      ChangeOps(program, 0, [&](Op& op) {
        if (op.OutputName("Out") != plan::StepCounterName(counter.var, trainer)) return false;
        op.Set("value", trainer == 0 ? first : 0.0f);
        return true;
      });
    }
  }
}

// --- D-step-notices

namespace {

// The addresses of the pservers that compute rates which count steps.
std::vector<std::string> Counting(const CaseFolder& folder, const RoleSet& roles,
                                  const plan::StepCounter& counter) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < roles.plan.pservers.size(); ++i) {
    const std::vector<OpId> unneeded = UnneededLrOps(folder, roles, static_cast<int>(i));
    if (std::find(unneeded.begin(), unneeded.end(), counter.op) != unneeded.end()) continue;
    addresses.push_back(roles.plan.pservers[i]);
  }
  return addresses;
}

}  // namespace

bool TellsTooMany(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  const std::vector<plan::StepCounter> counters = CountersOf(folder, roles);
  return IsTrainerMain(file) &&
         std::any_of(counters.begin(), counters.end(), [&](const plan::StepCounter& counter) {
           return Counting(folder, roles, counter).size() < roles.plan.pservers.size();
         });
}

void TellWhoCounts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program) {
  for (const plan::StepCounter& counter : CountersOf(folder, roles)) {
    ChangeOps(program, 0, [&](Op& op) {
      if (op.type() != "send" || op.InputName("X") != plan::StepCounterName(counter.var, file.index))
        return false;
      op.Set("epmap", Counting(folder, roles, counter));
      return true;
    });
  }
}

// --- D-shared-startup

bool GettersChangedIt(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return folder.job.config.shared_transpiler && file.startup && !file.pserver;
}

void MakeByAnotherObject(plan::TranspileConfig& config) { config.shared_transpiler = false; }

}  // namespace penstock::test
