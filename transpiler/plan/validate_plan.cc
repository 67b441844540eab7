// Checks a plan alone and against its program.
#include <algorithm>
#include <map>
#include <set>

#include "transpiler/plan/names.h"
#include "transpiler/plan/plan.h"
#include "transpiler/plan/policies.h"
#include "transpiler/plan/taken_names.h"

namespace penstock::plan {
namespace {

Status ValidateSentTo(const PlacementPlan& plan, const ParamPlacement& param, const Slice& slice) {
  if (slice.sent_to.empty()) return OkStatus();
  const auto exists = [&](int pserver) {
    return pserver >= 0 && pserver < static_cast<int>(plan.pservers.size());
  };
  if (plan.dialect == Dialect::kFluid18 && slice.sent_to.size() == static_cast<std::size_t>(plan.trainers) &&
      std::all_of(slice.sent_to.begin(), slice.sent_to.end(), exists)) {
    return OkStatus();
  }
  return InvalidArgument("E-plan-sent-to", "plan: sent_to=[", Join(slice.sent_to, ", "), "] of ", param.param,
                         " must be compat's and name one of ", plan.pservers.size(), " pservers for each of ",
                         plan.trainers, " trainers");
}

Status ValidateSlices(const PlacementPlan& plan, const ParamPlacement& param) {
  const std::int64_t rows = param.shape.rank() == 0 ? 1 : param.shape[0];
  std::int64_t next = 0;
  for (const Slice& slice : param.slices) {
    if (slice.row_begin != next || slice.row_end <= slice.row_begin) {
      return InvalidArgument("E-plan-tiling", "plan: slice [", slice.row_begin, ", ", slice.row_end, ") of ",
                             param.param, " must begin at row ", next, " and hold a row");
    }
    if (slice.pserver < 0 || slice.pserver >= static_cast<int>(plan.pservers.size())) {
      return InvalidArgument("E-plan-pserver", "plan: slice [", slice.row_begin, ", ", slice.row_end, ") of ",
                             param.param, " is on pserver ", slice.pserver, "; there are ",
                             plan.pservers.size());
    }
    PENSTOCK_RETURN_IF_ERROR(ValidateSentTo(plan, param, slice));
    if (slice.chunk_rows < 1 || slice.chunk_rows > slice.rows()) {
      return InvalidArgument("E-plan-chunk", "plan: chunks of ", slice.chunk_rows, " rows in a slice of ",
                             slice.rows(), " of ", param.param);
    }
    next = slice.row_end;
  }
  if (next != rows) {
    return InvalidArgument("E-plan-tiling", "plan: the slices of ", param.param, " end at row ", next,
                           "; it has ", rows);
  }
  return OkStatus();
}

Status ValidateStartValues(const PlacementPlan& plan, std::set<std::string>& seen) {
  for (const StartValue& value : plan.start_values) {
    if (!seen.insert(value.name).second) {
      return InvalidArgument("E-plan-name-twice", "plan: ", value.name, " is planned twice");
    }
    if (value.pserver >= 0 && value.pserver < static_cast<int>(plan.pservers.size())) continue;
    return InvalidArgument("E-plan-pserver", "plan: the initial value of ", value.name, " is on pserver ",
                           value.pserver, "; there are ", plan.pservers.size());
  }
  return OkStatus();
}

Status ValidateSendOrder(const PlacementPlan& plan) {
  std::vector<bool> seen(plan.params.size(), false);
  for (const int at : plan.send_order) {
    if (at < 0 || at >= static_cast<int>(seen.size()) || seen[static_cast<std::size_t>(at)]) {
      return InvalidArgument("E-plan-send-order", "plan: send_order must name each of ", seen.size(),
                             " parameters once; ", at, " is wrong");
    }
    seen[static_cast<std::size_t>(at)] = true;
  }
  if (plan.send_order.size() == seen.size()) return OkStatus();
  return InvalidArgument("E-plan-send-order", "plan: send_order names ", plan.send_order.size(), " of ",
                         seen.size(), " parameters");
}

// Every parameter has a choice and is placed accordingly.
Status ValidateExchanges(const PlacementPlan& plan) {
  constexpr char kRule[] = "E-plan-exchange";
  if (plan.exchanges.empty()) return OkStatus();
  std::set<std::string> on_pservers, over_rings, chosen;
  for (const ParamPlacement& param : plan.params) on_pservers.insert(param.param);
  for (const TablePlacement& table : plan.tables) on_pservers.insert(table.table);
  for (const RingUse& use : plan.ranks.broadcasts) over_rings.insert(use.var);
  for (const ExchangeChoice& choice : plan.exchanges) {
    if (!chosen.insert(choice.param).second) {
      return InvalidArgument("E-plan-name-twice", "plan: ", choice.param, " is planned twice");
    }
    const bool rings = choice.way == DenseExchange::kAllreduce;
    if ((rings ? over_rings : on_pservers).contains(choice.param) &&
        !(rings ? on_pservers : over_rings).contains(choice.param)) {
      continue;
    }
    return InvalidArgument(kRule, "plan: ", choice.param, " is to be exchanged by ",
                           DenseExchangeName(choice.way), " and is planned otherwise");
  }
  for (const std::string& name : on_pservers) {
    if (!chosen.contains(name))
      return InvalidArgument(kRule, "plan: nothing says why ", name, " is on pservers");
  }
  return OkStatus();
}

Status ValidatePserverAddresses(const std::vector<std::string>& pservers) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < pservers.size(); ++i) {
    const auto [it, added] = seen.emplace(pservers[i], i);
    if (added) continue;
    return InvalidArgument("E-plan-pserver-dup", "plan: pserver address ", Quote(pservers[i]),
                           " is listed twice (positions ", it->second, " and ", i, ")");
  }
  return OkStatus();
}

}  // namespace

Status ValidatePlan(const PlacementPlan& plan) {
  if (plan.trainers < 1) {
    return InvalidArgument("E-plan-trainers", "plan: there must be at least 1 trainer, not ", plan.trainers);
  }
  PENSTOCK_RETURN_IF_ERROR(ValidatePolicies(plan));
  const bool pservers = EndsStepsByOps(plan.mode);
  const bool uneven = plan.mode == Mode::kSync && plan.on_uneven != OnUneven::kNone;
  if (plan.mode == Mode::kHybrid || uneven || !plan.ranks.addresses.empty()) {
    const Status ranks = ValidateRanks(plan);
    if (!ranks.ok() || !pservers) return ranks;
  }
  PENSTOCK_RETURN_IF_ERROR(ValidatePserverAddresses(plan.pservers));
  std::set<std::string> seen;
  for (const ParamPlacement& param : plan.params) {
    for (const std::string& name : {param.param, param.grad}) {
      if (seen.insert(name).second) continue;
      return InvalidArgument("E-plan-name-twice", "plan: ", name, " is planned twice");
    }
    PENSTOCK_RETURN_IF_ERROR(ValidateSlices(plan, param));
  }
  PENSTOCK_RETURN_IF_ERROR(ValidateStartValues(plan, seen));
  for (const TablePlacement& table : plan.tables) {
    for (const std::string& name : {table.table, table.grad}) {
      if (seen.insert(name).second) continue;
      return InvalidArgument("E-plan-name-twice", "plan: ", name, " is planned twice");
    }
    if (table.shape.rank() > 0) continue;
    return InvalidArgument("E-plan-type", "plan: table ", table.table, " has no rows");
  }
  PENSTOCK_RETURN_IF_ERROR(ValidateExchanges(plan));
  return ValidateSendOrder(plan);
}

namespace {

Result<const Var*> Declared(const Block& block, const std::string& name) {
  if (const Var* var = block.FindVar(name)) return var;
  return InvalidArgument("E-plan-undeclared", "plan: ", name,
                         " is planned and the program does not declare it");
}

Status ValidateDeclared(const Block& block, const std::string& name) {
  return Declared(block, name).status();
}

Status ValidateDeclaredAs(const Block& block, const std::string& name, DType dtype, const Shape& shape) {
  PENSTOCK_ASSIGN_OR_RETURN(const Var* var, Declared(block, name));
  if (var->HasShape() && var->shape() == shape && var->type->dtype == dtype) return OkStatus();
  return InvalidArgument("E-plan-type", "plan: ", name, " is planned as ", DTypeName(dtype), shape,
                         " and declared otherwise");
}

Status ValidateUnused(const std::vector<std::string>& made, std::string_view what, const Block& block) {
  for (const std::string& name : made) {
    if (block.FindVar(name) == nullptr) continue;
    return InvalidArgument("E-plan-name-clash", "plan: ", what, " needs the name ", name,
                           ", which a variable of the program has")
        .With("note: rename that variable");
  }
  return OkStatus();
}

Status ValidateTable(const PlacementPlan& plan, const TablePlacement& table, const Block& block) {
  PENSTOCK_RETURN_IF_ERROR(ValidateDeclaredAs(block, table.table, table.dtype, table.shape));
  PENSTOCK_RETURN_IF_ERROR(ValidateDeclared(block, table.grad));
  std::vector<std::string> made;
  for (int p = 0; p < static_cast<int>(plan.pservers.size()); ++p) {
    for (int t = 0; t < plan.trainers; ++t) made.push_back(SentShardGradName(plan, table, p, t));
  }
  return ValidateUnused(made, StrCat("table ", table.table), block);
}

}  // namespace

Status ValidatePlan(const PlacementPlan& plan, const Program& main) {
  PENSTOCK_RETURN_IF_ERROR(ValidatePlan(plan));
  const Block& block = main.main();
  for (const StartValue& value : plan.start_values) {
    PENSTOCK_RETURN_IF_ERROR(ValidateDeclaredAs(block, value.name, value.dtype, value.shape));
  }
  const TakenNames taken(main);
  for (const ParamPlacement& param : plan.params) {
    PENSTOCK_RETURN_IF_ERROR(ValidateDeclaredAs(block, param.param, param.dtype, param.shape));
    PENSTOCK_RETURN_IF_ERROR(ValidateDeclared(block, param.grad));
    if (param.compression.HasResidual())
      PENSTOCK_RETURN_IF_ERROR(ValidateUnused({ResidualName(param.param)}, param.param, block));
    const std::optional<std::string> name = taken.Find(plan, param, {});
    if (!name) continue;
    return InvalidArgument("E-plan-name-clash", "plan: ", param.param, " needs the name ", *name,
                           ", which a variable of the program has")
        .With("note: rename that variable");
  }
  for (const TablePlacement& table : plan.tables) {
    PENSTOCK_RETURN_IF_ERROR(ValidateTable(plan, table, block));
  }
  return OkStatus();
}

}  // namespace penstock::plan
