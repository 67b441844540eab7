#include "transpiler/pipeline/prepare_source.h"

#include <optional>
#include <utility>

#include "framework/op/conform.h"
#include "framework/text/describe.h"
#include "transpiler/cost/choose_exchange.h"
#include "transpiler/plan/conditional_updates.h"
#include "transpiler/plan/mode.h"
#include "transpiler/plan/table_updates.h"
#include "transpiler/plan/unmarked_updates.h"
#include "transpiler/plan/unwritten_parts.h"

namespace penstock {
namespace {

// Every attribute has a value of the kind that its op declares.
Status RequireAttrs(const OpRegistry& ops, const Program& program) {
  for (int b = 0; b < program.block_count(); ++b) {
    const std::vector<OpEntry>& entries = program.block(b).ops();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const OpDef* def = ops.Find(entries[i].op->type());
      if (def == nullptr) continue;
      if (Status status = CheckAttrKinds(*def, *entries[i].op); !status.ok())
        return AtOp(std::move(status), program, b, static_cast<int>(i), *entries[i].op);
    }
  }
  return OkStatus();
}

// In geo mode trainers update parameters, and run blocks.
std::optional<Program> WithPlainUpdates(const OpRegistry& ops, const Program& main,
                                        const plan::TranspileConfig& config) {
  const Result<plan::Mode> mode = plan::ResolveMode(config);
  if (!mode.ok() || plan::ServerModeOf(*mode) == plan::ServerMode::kGeo) return std::nullopt;
  return plan::WithoutConditionalUpdates(ops, main, plan::MergesGradients(*mode));
}

// Replaces `program` by the changed one. Returns whether there is one.
bool Take(std::optional<Program> changed, Program& program) {
  if (changed) program = *std::move(changed);
  return changed.has_value();
}

bool BringIntoOurForm(const OpRegistry& ops, PreparedSource& source) {
  if (Take(plan::WithoutUnwrittenParts(source.main), source.main)) return source.lacks_unwritten_parts = true;
  if (source.config.pservers.empty()) return false;
  return Take(WithPlainUpdates(ops, source.main, source.config), source.main) ||
         Take(plan::WithMarkedUpdates(source.main), source.main);
}

bool BringIntoFluidsForm(const OpRegistry& ops, PreparedSource& source) {
  std::optional<plan::SourcePair> fluids = plan::WithFluidsTableUpdates(ops, source.main, source.startup);
  if (!fluids) return false;
  source.main = std::move(fluids->main);
  source.startup = std::move(fluids->startup);
  return true;
}

// Makes one change. Returns whether there was one to make.
Result<bool> Change(const OpRegistry& ops, PreparedSource& source) {
  for (const Program* program : {&source.main, &source.startup})
    PENSTOCK_RETURN_IF_ERROR(RequireAttrs(ops, *program));
  if (Take(Conformed(ops, source.main), source.main)) return true;
  if (Take(Conformed(ops, source.startup), source.startup)) return true;
  const bool ours = source.config.dialect == plan::Dialect::kDefault;
  return ours ? BringIntoOurForm(ops, source) : BringIntoFluidsForm(ops, source);
}

}  // namespace

Result<PreparedSource> PrepareSource(const OpRegistry& ops, const Program& main, const Program& startup,
                                     const plan::TranspileConfig& config) {
  PreparedSource source{.main = main, .startup = startup, .config = config};
  for (bool changed = true; changed;) {
    PENSTOCK_ASSIGN_OR_RETURN(changed, Change(ops, source));
  }
  PENSTOCK_RETURN_IF_ERROR(plan::ValidateConfig(source.config));
  if (source.config.dense == plan::DenseExchange::kAuto) {
    PENSTOCK_ASSIGN_OR_RETURN(
        source.config,
        cost::ChooseExchanges(
            {.ops = ops, .main = source.main, .startup = source.startup, .config = source.config}));
    PENSTOCK_RETURN_IF_ERROR(plan::ValidateConfig(source.config));
  }
  return source;
}

}  // namespace penstock
