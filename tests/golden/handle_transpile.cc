// plan/, passes/, pipelines/: the plan, the result of one pass, and the final role programs.
#include <algorithm>
#include <charconv>

#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "framework/verify/show_options.h"
#include "operators/all_ops.h"
#include "tests/golden/handlers.h"
#include "tools/case/case_file.h"
#include "transpiler/cost/choose_exchange.h"
#include "transpiler/pipeline/pipelines.h"
#include "transpiler/pipeline/transpile.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/analyse_updates.h"
#include "transpiler/plan/planner.h"

namespace penstock::test {
namespace {

std::string Show(const Program& program) {
  Program plain = program;
  plain.mutable_meta().plan.clear();  // the case shows it once
  return PrintProgram(plain, ShowOptions(AllOps()));
}

Result<Program> ProgramIn(const GoldenCase& one, std::string_view name) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, name));
  return ParseText(text, std::string(name));
}

// An empty program if the case has no such section.
Result<Program> OptionalProgram(const GoldenCase& one, std::string_view name) {
  return one.Find(name) == nullptr ? Result<Program>(Program()) : ProgramIn(one, name);
}

Result<plan::TranspileConfig> ConfigOf(const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "config"));
  PENSTOCK_ASSIGN_OR_RETURN(CaseFile job, ParseCase(text));
  const GoldenSection* section = one.Find("config");
  job.config.dialect = section->argument == "fluid-1.8" ? plan::Dialect::kFluid18 : plan::Dialect::kDefault;
  return job.config;
}

// "trainer 1"
Result<passes::Self> SelfOf(const GoldenSection& section) {
  const std::vector<std::string> words = Split(section.argument, ' ');
  passes::Self self;
  const bool known = words.size() == 2 && (words[0] == "trainer" || words[0] == "pserver");
  const auto end = known ? words[1].data() + words[1].size() : nullptr;
  if (!known || std::from_chars(words[1].data(), end, self.index).ptr != end) {
    return InvalidArgument("E-golden", "say who runs it: -- ", section.name, " (trainer 0)");
  }
  self.role = words[0] == "trainer" ? passes::Self::Role::kTrainer : passes::Self::Role::kPserver;
  return self;
}

Result<Pass> FindPass(const std::string& name) {
  for (const plan::Mode mode : plan::AllModes()) {
    const Pipelines& pipelines = PipelinesOf(mode);
    for (const auto& list :
         {pipelines.trainer, pipelines.trainer_startup, pipelines.pserver, pipelines.pserver_startup}) {
      const auto it =
          std::find_if(list.begin(), list.end(), [&](const Pass& pass) { return pass.name == name; });
      if (it != list.end()) return *it;
    }
  }
  return InvalidArgument("E-golden", "there is no pass ", name);
}

}  // namespace

Result<GoldenOutputs> RunPlan(const GoldenFile&, const GoldenCase& one) {
  plan::PlacementPlan plan;
  if (one.Find("plan") != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "plan"));
    PENSTOCK_ASSIGN_OR_RETURN(plan, plan::ParsePlan(text));
    PENSTOCK_RETURN_IF_ERROR(plan::ValidatePlan(plan));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(plan::TranspileConfig config, ConfigOf(one));
    PENSTOCK_ASSIGN_OR_RETURN(const Program main, ProgramIn(one, "in"));
    PENSTOCK_ASSIGN_OR_RETURN(const Program startup, OptionalProgram(one, "startup"));
    PENSTOCK_RETURN_IF_ERROR(plan::ValidateConfig(config));
    if (config.dense == plan::DenseExchange::kAuto) {
      PENSTOCK_ASSIGN_OR_RETURN(
          config,
          cost::ChooseExchanges({.ops = AllOps(), .main = main, .startup = startup, .config = config}));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const plan::Mode mode, plan::ResolveMode(config));
    PENSTOCK_ASSIGN_OR_RETURN(
        plan::Planned planned,
        PipelinesOf(mode).plan({.ops = AllOps(), .main = main, .startup = startup, .config = config}));
    plan = std::move(planned.plan);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const plan::PlacementPlan again, plan::ParsePlan(plan::PrintPlan(plan)));
  if (again != plan)
    return InternalError("E-golden-round-trip", "the plan reads back as\n", plan::PrintPlan(again));
  return GoldenOutputs{{"out", "", plan::PrintPlan(plan)}};
}

Result<GoldenOutputs> RunPass(const GoldenFile& file, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const Pass pass, FindPass(file.stem));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string plan_text, RequireSection(one, "plan"));
  PENSTOCK_ASSIGN_OR_RETURN(const plan::PlacementPlan plan, plan::ParsePlan(plan_text));
  PENSTOCK_RETURN_IF_ERROR(plan::ValidatePlan(plan));
  PENSTOCK_ASSIGN_OR_RETURN(const Program in, ProgramIn(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const passes::Self self, SelfOf(*one.Find("in")));
  PENSTOCK_ASSIGN_OR_RETURN(const Program startup, OptionalProgram(one, "startup"));
  // The analysis needs the user's program; a case whose pass runs on that program need not repeat it.
  PENSTOCK_ASSIGN_OR_RETURN(const Program main, one.Find("main") != nullptr ? ProgramIn(one, "main") : in);
  const bool on_trainers = plan.mode == plan::Mode::kGeo || !plan.ranks.addresses.empty();
  Result<plan::Analysis> analysis = on_trainers ? plan::AnalyseUpdates(main, plan.dialect)
                                                : plan::Analyse(AllOps(), main, plan.dialect, plan.clip);
  if (!analysis.ok()) analysis = plan::Analysis();  // a fragment without an optimizer
  const passes::Shares shares(plan, *analysis, startup);
  const passes::PassContext context{.ops = AllOps(),
                                    .main = main,
                                    .startup = startup,
                                    .analysis = *analysis,
                                    .plan = plan,
                                    .shares = shares,
                                    .self = self};
  PENSTOCK_ASSIGN_OR_RETURN(const Program out, pass.Run(in, context));
  return GoldenOutputs{{"out", "", Show(out)}};
}

Result<GoldenOutputs> RunSteps(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::TranspileConfig config, ConfigOf(one));
  PENSTOCK_ASSIGN_OR_RETURN(const Program main, ProgramIn(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program startup, OptionalProgram(one, "startup"));
  GoldenOutputs outputs;
  PassOptions options;
  options.observe = [&](const PassEvent& event) {
    std::string text = Show(event.after);
    if (text == Show(event.before)) text = "unchanged\n";
    outputs.push_back({"out", StrCat(event.RoleName(), ": ", event.pass), std::move(text)});
  };
  PENSTOCK_RETURN_IF_ERROR(Transpile(AllOps(), main, startup, config, options).status());
  return outputs;
}

Result<GoldenOutputs> RunPipelines(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::TranspileConfig config, ConfigOf(one));
  PENSTOCK_ASSIGN_OR_RETURN(const Program main, ProgramIn(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(const Program startup, OptionalProgram(one, "startup"));
  PENSTOCK_ASSIGN_OR_RETURN(const RoleSet roles, Transpile(AllOps(), main, startup, config));
  GoldenOutputs outputs = {{"out", "plan", plan::PrintPlan(roles.plan)}};
  for (const TrainerPrograms& role : roles.trainers) {
    outputs.push_back({"out", StrCat("trainer ", role.trainer_id), Show(role.main)});
    outputs.push_back({"out", StrCat("trainer ", role.trainer_id, " startup"), Show(role.startup)});
  }
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    outputs.push_back({"out", StrCat("pserver ", i), Show(roles.pservers[i].main)});
    outputs.push_back({"out", StrCat("pserver ", i, " startup"), Show(roles.pservers[i].startup)});
  }
  return outputs;
}

}  // namespace penstock::test
