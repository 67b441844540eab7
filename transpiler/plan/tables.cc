#include "transpiler/plan/tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "framework/ir/block_uses.h"
#include "framework/roles/views.h"
#include "framework/text/describe.h"

namespace penstock::plan {
namespace {

// How an op uses rows of a table.
struct TableUse {
  std::string table;
  bool samples = false;   // the op chooses the ids itself
  bool gradient = false;  // a gradient op: needs the table's shape (lookup) or the same rows again (sampler)
};

std::optional<TableUse> UseOf(const Op& op) {
  static constexpr std::string_view kGrad = "_grad";
  std::string_view type = op.type();
  const bool gradient = type.ends_with(kGrad);
  if (gradient) type.remove_suffix(kGrad.size());
  if (type == "lookup_table" || type == "lookup_table_v2") {
    return TableUse{.table = op.InputName("W"), .samples = false, .gradient = gradient};
  }
  if (type == "nce") return TableUse{.table = op.InputName("Weight"), .samples = true, .gradient = gradient};
  return std::nullopt;
}

// Whether Fluid's trainers start without the values of the op's table.
bool FluidForgets(const Op& op) { return op.type() == "lookup_table" && op.GetOr<bool>("is_sparse", false); }

struct Candidate {
  SparseTable table;
  std::string type;  // op type of its first lookup with remote_prefetch
  bool prefetched = false;
  bool forgotten = false;  // Fluid's trainers start without its values, unless a pserver has them
};

class TableFinder {
 public:
  TableFinder(const Program& main, Dialect dialect) : main_(main), dialect_(dialect) {}

  Status Find() {
    int position = -1;
    for (const OpEntry& entry : main_.main().ops()) {
      ++position;
      const std::optional<TableUse> use = UseOf(*entry.op);
      if (!use) continue;
      Status added = Add(entry, *use);
      if (!added.ok()) return AtOp(std::move(added), main_, 0, position, *entry.op);
    }
    if (dialect_ == Dialect::kDefault) FindInner();
    return OkStatus();
  }

  Candidate* Of(const std::string& param) {
    const auto it = found_.find(param);
    const bool table = it != found_.end() && (it->second.prefetched || it->second.table.distributed);
    return table ? &it->second : nullptr;
  }
  const std::map<std::string, Candidate>& found() const { return found_; }

 private:
  // Fluid looks only at block 0.
  void FindInner() {
    for (const int block : ReachedBlocks(main_)) {
      if (block == 0) continue;
      for (const OpEntry& entry : main_.block(block).ops()) {
        const std::optional<TableUse> use = UseOf(*entry.op);
        if (!use || (use->gradient && !use->samples)) continue;
        Candidate& found = found_[use->table];
        // Requests for shards have a fixed place in a step, which an op in a loop has not.
        found.prefetched = found.prefetched || found.table.distributed || AsksForDistributed(*entry.op) ||
                           roles::PrefetchesRows(*entry.op);
        found.table.distributed = false;
        found.table.inner.push_back({.block = block, .op = entry.id});
      }
    }
  }

  Status Add(const OpEntry& entry, const TableUse& use) {
    if (use.gradient && !use.samples) return OkStatus();
    const Op& op = *entry.op;
    const bool prefetched = roles::PrefetchesRows(op);
    if (dialect_ == Dialect::kFluid18 && use.samples && prefetched) {
      return Unimplemented("E-plan-table-sampler", "plan: Fluid 1.8 cannot prefetch rows of ", use.table,
                           " for ", op.type(), "; use is_sparse=false");
    }
    Candidate& found = found_[use.table];
    found.prefetched = found.prefetched || prefetched;
    if (use.samples) {
      if (found.table.distributed) return Mixed(use.table);
      found.table.samplers.push_back(entry.id);
      return OkStatus();
    }
    if (prefetched && found.type.empty()) found.type = op.type();
    found.forgotten = found.forgotten || FluidForgets(op);
    const bool distributed = AsksForDistributed(op);
    const bool alone = found.table.lookups.empty() && found.table.samplers.empty();
    if (!alone && distributed != found.table.distributed) return Mixed(use.table);
    if (alone && distributed) PENSTOCK_RETURN_IF_ERROR(OnlyOne(use.table));
    found.table.distributed = distributed;
    if (Replaced(op, found, prefetched)) found.table.lookups.push_back(entry.id);
    return OkStatus();
  }

  // Fluid ignores is_distributed on a lookup_table_v2.
  bool AsksForDistributed(const Op& op) const {
    return op.GetOr<bool>("is_distributed", false) &&
           (dialect_ == Dialect::kDefault || op.type() == "lookup_table");
  }

  // Whether the lookup is replaced by requests. Fluid replaces only lookups of the type that comes first.
  bool Replaced(const Op& op, const Candidate& found, bool prefetched) const {
    if (dialect_ == Dialect::kDefault || found.table.distributed) return true;
    return prefetched && op.type() == found.type;
  }

  Status OnlyOne(const std::string& table) const {
    if (dialect_ == Dialect::kDefault) return OkStatus();
    for (const auto& [name, other] : found_) {
      if (!other.table.distributed) continue;
      return InvalidArgument("E-plan-table-many", "plan: Fluid 1.8 has one distributed table; ", name,
                             " and ", table, " are two");
    }
    return OkStatus();
  }

  static Status Mixed(const std::string& table) {
    return InvalidArgument("E-plan-table-mixed", "plan: table ", table,
                           " is used with is_distributed=true and without; all its lookups must agree");
  }

  const Program& main_;
  Dialect dialect_;
  std::map<std::string, Candidate> found_;
};

// A table with is_distributed must have a sparse gradient and an elementwise update.
Status CheckDistributed(const TrainedParam& param) {
  if (!param.sparse) {
    return InvalidArgument("E-plan-table-dense", "plan: table ", param.param,
                           " has is_distributed=true and a dense gradient, ", param.grad)
        .With("note: use is_sparse=true");
  }
  if (param.also_updated != OpId::kNone) {
    return Unimplemented(
        "E-plan-table-update", "plan: an op other than an optimizer updates table ", param.param,
        ", and with is_distributed=true its rows are on all pservers and exist only once they ",
        "are used; use is_sparse=true and is_distributed=false");
  }
  if (!param.elementwise) {
    return Unimplemented("E-plan-table-norm", "plan: the optimizer of table ", param.param,
                         " needs all its rows at once, and is_distributed=true spreads them; use ",
                         "is_distributed=false");
  }
  return OkStatus();
}

// Fluid makes the update of a distributed table from the table's optimizer, so it must recognise one.
Status CheckFound(const TrainedParam& param) {
  if (param.optimizer != OpId::kNone) return OkStatus();
  return InvalidArgument("E-plan-optimizer", "plan: table ", param.param,
                         " has is_distributed=true, and Fluid 1.8 sees no optimizer of it: one that has no ",
                         "LearningRate is none to it");
}

Status AtFirstLookup(Status status, const Program& main, const SparseTable& table) {
  const OpId lookup = table.lookups.front();
  return AtOp(std::move(status), main, 0, main.main().PositionOf(lookup), *main.main().FindOp(lookup));
}

Status CheckTrained(const Program& main, const TableFinder& finder, const Analysis& analysis) {
  std::set<std::string_view> trained;
  for (const TrainedParam& param : analysis.params) trained.insert(param.param);
  for (const auto& [name, found] : finder.found()) {
    if (!found.table.distributed || trained.contains(name)) continue;
    return AtFirstLookup(
        InvalidArgument("E-plan-table-frozen", "plan: table ", name,
                        " has is_distributed=true and no optimizer updates it; use is_distributed=false"),
        main, found.table);
  }
  return OkStatus();
}

// Whether the name is an input only because the op's blocks use the variable: their ops are what reads it.
bool ReadsForBlocks(const Program& main, const Op& op, const std::string& name) {
  for (const int block : StartedBlocks(op)) {
    const Result<std::vector<std::string>> used = OuterNames(main, block);
    if (used.ok() && std::find(used->begin(), used->end(), name) != used->end()) return true;
  }
  return false;
}

// Rejects ops of the trainer that need a whole table. Lookups are replaced, and samplers request rows
// themselves.
Status CheckReaders(const Program& main, const Analysis& analysis) {
  std::set<std::string> tables;
  for (const SparseTable& table : analysis.tables) tables.insert(table.param);
  if (tables.empty()) return OkStatus();
  std::set<OpId> leaving(analysis.server_ops.begin(), analysis.server_ops.end());
  leaving.insert(analysis.lr_ops.begin(), analysis.lr_ops.end());
  for (const int b : ReachedBlocks(main)) {
    int position = -1;
    for (const OpEntry& entry : main.block(b).ops()) {
      ++position;
      if ((b == 0 && leaving.contains(entry.id)) || UseOf(*entry.op)) continue;
      for (const std::string& name : entry.op->InputNames()) {
        if (!tables.contains(name) || ReadsForBlocks(main, *entry.op, name)) continue;
        return AtOp(InvalidArgument("E-plan-table-reader", "plan: ", entry.op->type(),
                                    b == 0 ? "" : " in a block", " needs table ", name,
                                    ", and trainers only ask for rows of it"),
                    main, b, position, *entry.op)
            .With("note: use is_sparse=false and is_distributed=false for this table");
      }
    }
  }
  return OkStatus();
}

}  // namespace

Status FindTables(const Program& main, Dialect dialect, Analysis& analysis) {
  TableFinder finder(main, dialect);
  PENSTOCK_RETURN_IF_ERROR(finder.Find());
  PENSTOCK_RETURN_IF_ERROR(CheckTrained(main, finder, analysis));
  for (TrainedParam& param : analysis.params) {
    Candidate* found = finder.Of(param.param);
    if (found == nullptr || (!param.sparse && !found->table.distributed)) continue;
    if (found->table.distributed) {
      PENSTOCK_RETURN_IF_ERROR(AtFirstLookup(CheckDistributed(param), main, found->table));
      PENSTOCK_RETURN_IF_ERROR(AtFirstLookup(CheckFound(param), main, found->table));
    }
    param.distributed = found->table.distributed;
    param.prefetched = !param.distributed;
    analysis.tables.push_back(std::move(found->table));
    analysis.tables.back().param = param.param;
  }
  return dialect == Dialect::kDefault ? CheckReaders(main, analysis) : OkStatus();
}

void FindForgottenTables(const Program& main, Analysis& analysis) {
  TableFinder finder(main, Dialect::kFluid18);
  if (!finder.Find().ok()) return;
  std::set<std::string_view> served;
  for (const SparseTable& table : analysis.tables) served.insert(table.param);
  for (const auto& [name, found] : finder.found()) {
    if (found.forgotten && !served.contains(name)) analysis.forgotten_tables.push_back(name);
  }
}

}  // namespace penstock::plan
