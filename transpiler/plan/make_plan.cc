#include "transpiler/plan/make_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "framework/tensor/chunk.h"
#include "transpiler/plan/deal.h"
#include "transpiler/plan/plan_settings.h"
#include "transpiler/plan/policies.h"
#include "transpiler/plan/row_policies.h"
#include "transpiler/plan/send_order.h"
#include "transpiler/plan/slicing.h"
#include "transpiler/plan/taken_names.h"

namespace penstock::plan {
namespace {

// Whether some rows of a slice may be merged and updated before others arrive.
bool CanBeChunked(const TrainedParam& param) {
  return param.chunkable && !param.sparse && !param.whole_gradient && param.measures.empty();
}

// The maximum number of slices: 1 if the update needs the whole tensor (a norm). Fluid slices it
// nevertheless.
int PartsOf(const TrainedParam& param, const TranspileConfig& config) {
  const bool whole = config.dialect == Dialect::kDefault && (!param.elementwise || param.whole_gradient);
  return config.slice_params && !whole ? static_cast<int>(config.pservers.size()) : 1;
}

bool HasNothing(const Shape& shape) {
  return std::any_of(shape.dims().begin(), shape.dims().end(), [](Dim dim) { return dim < 1; });
}

// A split op stores the rows of dense slices in 32 bits, and sizes in bytes must fit 64 bits.
bool FitsAnOp(const Shape& shape, bool sparse) {
  std::int64_t bytes = 16;  // more than the size of any element
  for (const Dim dim : shape.dims()) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  return sparse || shape.rank() == 0 || shape[0] <= std::numeric_limits<std::int32_t>::max();
}

std::vector<std::int64_t> Cut(const Shape& shape, int parts, const TranspileConfig& config) {
  switch (config.slicing) {
    case Slicing::kFluid:
      return CutRows(shape, parts, config.min_block_size);
    case Slicing::kEven:
      return CutEvenly(shape, parts, config.min_block_size);
    case Slicing::kMxnet:
      break;
  }
  return CutAcross(shape, parts, config.big_array_bound);
}

// Returns the parameter's variable; an error if it cannot be distributed.
Result<const Var*> Distributable(const Block& main, const TrainedParam& param) {
  const Var* var = main.FindVar(param.param);
  if (!var->HasShape() || !var->shape().IsKnown() || HasNothing(var->shape())) {
    return InvalidArgument("E-plan-shape", "plan: parameter ", param.param, " must have a known shape, not ",
                           var->HasShape() ? var->shape().ToString() : std::string("none"));
  }
  if (!FitsAnOp(var->shape(), param.sparse)) {
    return InvalidArgument("E-plan-shape", "plan: parameter ", param.param,
                           " is too large to be distributed: ", var->shape());
  }
  return var;
}

Result<TablePlacement> PlaceTable(const Program& main, const TrainedParam& param) {
  PENSTOCK_ASSIGN_OR_RETURN(const Var* var, Distributable(main.main(), param));
  if (var->shape().rank() == 0) {
    return InvalidArgument("E-plan-shape", "plan: table ", param.param, " must have rows, not the shape ",
                           var->shape());
  }
  PENSTOCK_ASSIGN_OR_RETURN(const RowPolicy policy, RowPolicyOf(main, param.param));
  return TablePlacement{.table = param.param,
                        .grad = param.grad,
                        .dtype = var->type->dtype,
                        .shape = var->shape(),
                        .policy = policy};
}

Result<ParamPlacement> Place(const Block& main, const TrainedParam& param, const TranspileConfig& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const Var* var, Distributable(main, param));
  ParamPlacement placement;
  placement.param = param.param;
  placement.grad = param.grad;
  placement.dtype = var->type->dtype;
  placement.shape = var->shape();
  placement.sparse = param.sparse;
  placement.prefetched = param.prefetched;
  const auto row_bytes = placement.shape.RowWidth() * static_cast<std::int64_t>(SizeOf(placement.dtype));
  const std::vector<std::int64_t> bounds = Cut(placement.shape, PartsOf(param, config), config);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    Slice slice{.row_begin = bounds[i], .row_end = bounds[i + 1], .pserver = 0, .chunk_rows = 0};
    slice.chunk_rows =
        CanBeChunked(param) ? ChunkRows(slice.rows(), row_bytes, config.chunk_bytes) : slice.rows();
    placement.slices.push_back(slice);
  }
  return placement;
}

// Places each start value on the pserver with the fewest bytes so far.
void PlaceStartValues(const Block& main, const Analysis& analysis, PlacementPlan& plan) {
  std::vector<std::int64_t> held(plan.pservers.size(), 0);
  for (const ParamPlacement& param : plan.params) {
    for (const Slice& slice : param.slices) {
      held[static_cast<std::size_t>(slice.pserver)] += param.BytesOf(slice);
    }
  }
  for (const StartedVar& started : analysis.start_values) {
    const Var* var = main.FindVar(started.name);
    const auto least = std::min_element(held.begin(), held.end());
    *least += var->shape().Count() * static_cast<std::int64_t>(SizeOf(var->type->dtype));
    plan.start_values.push_back({.name = started.name,
                                 .dtype = var->type->dtype,
                                 .shape = var->shape(),
                                 .pserver = static_cast<int>(least - held.begin()),
                                 .statistic = started.written});
  }
}

}  // namespace

Result<PlacementPlan> MakePlan(const Program& main, const Analysis& analysis, const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(config));
  PlacementPlan plan;
  PENSTOCK_ASSIGN_OR_RETURN(plan.mode, ResolveMode(config));
  plan.server_mode = ResolveServerMode(config, plan.mode);
  CarrySettings(config, plan);
  plan.dialect = config.dialect;
  if (plan.on_uneven != OnUneven::kNone) plan.ranks.addresses = config.trainer_addresses;
  plan.trainers = config.trainers;
  plan.pservers = config.pservers;
  plan.exchanges = config.exchanges;
  for (const TrainedParam& param : analysis.params) {
    if (param.distributed) {
      PENSTOCK_ASSIGN_OR_RETURN(TablePlacement table, PlaceTable(main, param));
      plan.tables.push_back(std::move(table));
      continue;
    }
    PENSTOCK_ASSIGN_OR_RETURN(ParamPlacement placement, Place(main.main(), param, config));
    plan.params.push_back(std::move(placement));
  }
  const int count = static_cast<int>(plan.params.size());
  if (config.slice_params) {
    plan.send_order.resize(plan.params.size());
    std::iota(plan.send_order.begin(), plan.send_order.end(), 0);
  } else {
    plan.send_order = ShuffledSendOrder(count, main.meta().random_seed);
  }
  PENSTOCK_RETURN_IF_ERROR(ChooseCompression(config.compression, plan));
  MarkTakenNames(main, analysis, plan);
  PENSTOCK_RETURN_IF_ERROR(DealSlices(config, plan));
  if (config.dialect == Dialect::kDefault) PlaceStartValues(main.main(), analysis, plan);
  return plan;
}

}  // namespace penstock::plan
