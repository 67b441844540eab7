#include "transpiler/pipeline/pass_manager.h"

#include "framework/text/printer.h"
#include "framework/text/round_trip.h"
#include "framework/verify/verifier.h"
#include "transpiler/pipeline/verify_touched.h"

namespace penstock {
namespace {

// A text from which a golden case can be made: the plan, the role, the remaining passes and the program on
// which they start.
std::string Reproducer(const passes::PassContext& context, std::span<const Pass> remaining, const Program& in,
                       const Status& status) {
  std::string text = StrCat("# ", status.ToString());
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  std::vector<std::string> names;
  for (const Pass& pass : remaining) names.emplace_back(pass.name);
  const bool trainer = context.self.role == passes::Self::Role::kTrainer;
  return StrCat(text, "\n-- plan\n", plan::PrintPlan(context.plan), "-- passes (",
                trainer ? "trainer " : "pserver ", context.self.index, ")\n", Join(names, "\n"), "\n-- in\n",
                PrintProgram(in, PrintOptions::Everything()));
}

}  // namespace

std::string PassEvent::RoleName() const { return StrCat(pipeline, "_", index); }

Result<Program> PassManager::RunOne(std::string_view pipeline, const Pass& pass, const Program& in,
                                    const passes::PassContext& context) {
  const Nanoseconds begin = options_.clock != nullptr ? options_.clock->Now() : Nanoseconds(0);
  PENSTOCK_ASSIGN_OR_RETURN(Program out, pass.Run(in, context));
  if (options_.clock != nullptr) {
    timings_.push_back({std::string(pipeline), std::string(pass.name), options_.clock->Now() - begin});
  }
  // Compat reproduces Fluid's broken programs too; check/ judges them.
  if (context.plan.dialect == plan::Dialect::kDefault) {
    Status sound = VerifyTouched(in, out, context.ops);
    if (!sound.ok()) return std::move(sound).In(pass.name);
  }
  if (options_.observe) options_.observe({pipeline, pass.name, context.self.index, in, out});
  return Verified(std::move(out));
}

Result<Program> PassManager::Run(std::string_view pipeline, std::span<const Pass> passes, Program program,
                                 const passes::PassContext& context) {
  const Program given = program;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (options_.disabled.contains(std::string(passes[i].name))) continue;
    Result<Program> out = RunOne(pipeline, passes[i], program, context);
    if (!out.ok()) {
      if (options_.reproducer)
        options_.reproducer(Reproducer(context, passes.subspan(i), program, out.status()));
      return std::move(out).status();
    }
    program = std::move(out).value();
  }
  if (context.plan.dialect == plan::Dialect::kDefault) {
    Status sound = VerifyProgram(program, {.ops = &context.ops, .before = &given});
    if (!sound.ok()) return std::move(sound).In(pipeline);
  }
  return program;
}

}  // namespace penstock
