#include "transpiler/plan/make_plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "transpiler/plan/send_order.h"
#include "transpiler/plan/slicing.h"

namespace penstock {
namespace {

// An update that needs the whole tensor (a norm) must see it whole. Fluid cuts it all the same.
int PartsOf(const TrainedParam& param, const TranspileConfig& config) {
  const bool whole = config.dialect == Dialect::kDefault && !param.elementwise;
  return config.slice_params && !whole ? static_cast<int>(config.pservers.size()) : 1;
}

bool HasNothing(const Shape& shape) {
  return std::any_of(shape.dims().begin(), shape.dims().end(), [](Dim dim) { return dim < 1; });
}

// A split op holds the rows of dense slices in 32 bits, and sizes in bytes must fit 64.
bool FitsAnOp(const Shape& shape) {
  std::int64_t bytes = 16;  // more than any element has
  for (const Dim dim : shape.dims()) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  return shape.rank() == 0 || shape[0] <= std::numeric_limits<std::int32_t>::max();
}

Result<ParamPlacement> Place(const Block& main, const TrainedParam& param, const TranspileConfig& config) {
  const Var* var = main.FindVar(param.param);
  if (!var->HasShape() || !var->shape().IsKnown() || HasNothing(var->shape())) {
    return InvalidArgument("E-plan-shape", "plan: parameter ", param.param, " must have a known shape, not ",
                           var->HasShape() ? var->shape().ToString() : std::string("none"));
  }
  if (!FitsAnOp(var->shape())) {
    return InvalidArgument("E-plan-shape", "plan: parameter ", param.param,
                           " is too large to be distributed: ", var->shape());
  }
  ParamPlacement placement;
  placement.param = param.param;
  placement.grad = param.grad;
  placement.dtype = var->type->dtype;
  placement.shape = var->shape();
  placement.sparse = param.sparse;
  placement.prefetched = param.prefetched;
  const auto row_bytes = placement.shape.RowWidth() * static_cast<std::int64_t>(SizeOf(placement.dtype));
  const std::vector<std::int64_t> bounds =
      CutRows(placement.shape, PartsOf(param, config), config.min_block_size);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    Slice slice{.row_begin = bounds[i], .row_end = bounds[i + 1], .pserver = 0, .chunk_rows = 0};
    slice.chunk_rows = param.elementwise && !param.sparse ? ChunkRows(slice.rows(), row_bytes) : slice.rows();
    placement.slices.push_back(slice);
  }
  return placement;
}

// One after the other, over all slices in the order in which they are sent.
void DealRoundRobin(PlacementPlan& plan) {
  const int pservers = static_cast<int>(plan.pservers.size());
  int next = 0;
  for (const int param : plan.send_order) {
    for (Slice& slice : plan.params[static_cast<std::size_t>(param)].slices)
      slice.pserver = next++ % pservers;
  }
}

}  // namespace

Result<PlacementPlan> MakePlan(const Program& main, const Analysis& analysis, const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ValidateConfig(config));
  if (config.placement != Placement::kRoundRobin) {
    return Unimplemented("E-plan-placement", "plan: split_method HashName is not built; use RoundRobin");
  }
  PlacementPlan plan;
  PENSTOCK_ASSIGN_OR_RETURN(plan.mode, ResolveMode(config));
  plan.server_mode = ResolveServerMode(config, plan.mode);
  plan.dc_asgd_lambda = config.dc_asgd_lambda;
  plan.dialect = config.dialect;
  plan.trainers = config.trainers;
  plan.pservers = config.pservers;
  for (const TrainedParam& param : analysis.params) {
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
  DealRoundRobin(plan);
  return plan;
}

}  // namespace penstock
