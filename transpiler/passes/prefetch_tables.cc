// Replaces the lookups of a prefetched table by one op that asks pservers for the rows of the batch. It
// stands right after the last op that makes any of the ids, or at the head of the block.
//
//   plan    table: rows [0, 1000) on pserver 1, rows [1000, 2000) on pserver 0; prefetched
//   before  a = lookup_table(W=table, Ids=i) ; b = lookup_table(W=table, Ids=j)
//   after   (Outputs=[a, b]) = distributed_lookup_table(W=table, Ids=[i, j]) {endpoints=[second, first]}
//
// Where ids depend on an earlier lookup of the same table, each level gets its own op. Fluid makes one op for
// all, which then stands behind its first consumer; compat does the same and refuses what Fluid refuses.
#include <algorithm>
#include <limits>

#include "framework/ir/edit.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/passes/passes.h"
#include "transpiler/plan/names.h"

namespace penstock {
namespace {

constexpr char kPass[] = "prefetch_tables";
constexpr int kNever = std::numeric_limits<int>::max();

// Fluid's op takes ids of rank 2 only; ours takes what the lookups took.
Status RequireFluidsRank(const BlockEdit& main, const SparseTable& table) {
  for (const OpId id : table.lookups) {
    const std::string& ids = main.FindOp(id)->InputName("Ids");
    const Var* var = main.FindVar(ids);
    if (var == nullptr || var->shape().rank() == 2) continue;
    return InvalidArgument("E-pass-prefetch-rank", "prefetch_tables: ids ", ids, " of table ", table.param,
                           " must be of rank 2, not ", var->shape().rank());
  }
  return OkStatus();
}

// Lookups that one op can stand for: all ids exist before any result is read.
struct Level {
  std::vector<OpId> lookups;
  OpId last_producer = OpId::kNone;  // of any ids; none: all are fed
  int produced_at = -1;
  int read_at = kNever;
};

const ParamPlacement* FindPlanned(const PlacementPlan& plan, const std::string& param) {
  const auto it = std::find_if(plan.params.begin(), plan.params.end(),
                               [&](const ParamPlacement& placement) { return placement.param == param; });
  return it == plan.params.end() ? nullptr : &*it;
}

// Where `var`'s readers are: the first decides in the default dialect, the last (or none at all) in Fluid's
// check.
int ReadAt(const BlockEdit& main, const std::string& var, Dialect dialect) {
  const std::vector<OpId>& readers = main.def_use().Readers(var);
  if (dialect == Dialect::kFluid18) return readers.empty() ? -1 : main.before().PositionOf(readers.back());
  return readers.empty() ? kNever : main.before().PositionOf(readers.front());
}

Result<std::vector<Level>> Levels(const BlockEdit& main, const SparseTable& table, Dialect dialect) {
  std::vector<Level> levels(1);
  for (const OpId id : table.lookups) {
    const Op* lookup = main.FindOp(id);
    if (lookup == nullptr) return PassError(kPass, "a lookup of ", table.param, " is gone");
    const std::optional<OpId> producer = main.LastWriter(lookup->InputName("Ids"));
    const int produced_at = producer ? main.before().PositionOf(*producer) : -1;
    const int read_at = ReadAt(main, lookup->OutputName("Out"), dialect);
    Level* level = &levels.back();
    const bool fits = std::max(level->produced_at, produced_at) < std::min(level->read_at, read_at);
    if (!fits && dialect == Dialect::kFluid18) {
      return InvalidArgument("E-pass-prefetch-order", "prefetch_tables: the lookups of ", table.param,
                             " cannot be done at once: ids are made after a result is read");
    }
    if (!fits && !level->lookups.empty()) level = &levels.emplace_back();
    level->lookups.push_back(id);
    level->read_at = std::min(level->read_at, read_at);
    if (produced_at > level->produced_at) {
      level->produced_at = produced_at;
      level->last_producer = *producer;
    }
  }
  return levels;
}

Op RemoteLookup(const BlockEdit& main, const Level& level, const ParamPlacement& table,
                const PassContext& context) {
  const Op& first = *main.FindOp(level.lookups.front());
  LookupSpec spec{.table = table.param,
                  .ids = {},
                  .outputs = {},
                  .pieces = {},
                  .addresses = context.plan.AddressesOf(table),
                  .rows = {},
                  .padding_idx = first.GetOr<std::int64_t>("padding_idx", -1),
                  .trainer_id = context.self.index,
                  .lookup_type = first.type()};
  for (const OpId id : level.lookups) {
    spec.ids.push_back(main.FindOp(id)->InputName("Ids"));
    spec.outputs.push_back(main.FindOp(id)->OutputName("Out"));
  }
  for (std::size_t i = 0; i < table.slices.size(); ++i) {
    spec.pieces.push_back(ParamPieceName(table, static_cast<int>(i)));
    spec.rows.push_back(table.slices[i].rows());
  }
  return MakeRemoteLookup(spec).SetMadeBy(kPass).SetLocation(first.location());
}

}  // namespace

Result<Program> PrefetchTables(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  // Fluid puts each new op in front of those it put at the same place before.
  const std::vector<SparseTable>& tables = context.analysis.tables;
  for (auto at = tables.rbegin(); at != tables.rend(); ++at) {
    const SparseTable& table = *at;
    const ParamPlacement* placement = FindPlanned(context.plan, table.param);
    if (placement == nullptr) return PassError(kPass, table.param, " is not planned");
    if (context.plan.dialect == Dialect::kFluid18) PENSTOCK_RETURN_IF_ERROR(RequireFluidsRank(main, table));
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Level> levels, Levels(main, table, context.plan.dialect));
    for (const Level& level : levels) {
      Op lookup = RemoteLookup(main, level, *placement, context);
      if (level.last_producer == OpId::kNone) {
        main.InsertBefore(in.main().ops().front().id, std::move(lookup));
      } else {
        main.InsertAfter(level.last_producer, std::move(lookup));
      }
    }
    for (const OpId id : table.lookups) main.Remove(id);
  }
  return edit.Apply();
}

}  // namespace penstock
