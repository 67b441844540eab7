#include "transpiler/passes/spell/initial_values.h"

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

namespace penstock::passes {
namespace {

constexpr char kShape[] = "shape";

// If the attribute lists all elements of the whole, keeps those of the slice's rows.
template <typename T>
bool CutList(Op& op, const NamedAttr& attr, const InitialSlice& slice) {
  const auto* values = std::get_if<std::vector<T>>(&attr.value);
  if (values == nullptr || attr.name == kShape ||
      static_cast<std::int64_t>(values->size()) != slice.whole_shape.Count()) {
    return false;
  }
  const std::int64_t width = slice.whole_shape.RowWidth();
  op.Set(attr.name,
         std::vector<T>(values->begin() + slice.row_begin * width, values->begin() + slice.row_end * width));
  return true;
}

bool CutLists(Op& op, const InitialSlice& slice) {
  bool cut = false;
  const std::vector<NamedAttr> attrs = op.attrs();
  for (const NamedAttr& attr : attrs) {
    cut = CutList<float>(op, attr, slice) || CutList<std::int32_t>(op, attr, slice) ||
          CutList<std::int64_t>(op, attr, slice) || cut;
  }
  return cut;
}

}  // namespace

void FitShape(Op& op, const Shape& shape) {
  if (op.Get<std::vector<std::int32_t>>(kShape) != nullptr) {
    op.Set(kShape, std::vector<std::int32_t>(shape.dims().begin(), shape.dims().end()));
  } else {
    op.Set(kShape, shape.dims());
  }
}

bool ShapeDecides(const Op& op) {
  static const std::set<std::string, std::less<>> kTypes = {"fill_constant", "gaussian_random",
                                                            "truncated_gaussian_random", "uniform_random"};
  return kTypes.contains(op.type());
}

bool HasNoSeed(const Op& op, const OpRegistry& ops) {
  const OpDef* def = ops.Find(op.type());
  return def != nullptr && def->FindAttr("seed") != nullptr && op.GetOr<std::int32_t>("seed", 0) == 0;
}

Status FitInitializer(Op& op, const Var& var, const OpRegistry& ops) {
  const Box<InitialSlice>& slice = var.facts.slice;
  if (ShapeDecides(op)) {
    FitShape(op, var.shape());
    return OkStatus();
  }
  const OpDef* def = ops.Find(op.type());
  if (def != nullptr && def->elementwise()) return OkStatus();
  if (var.kind == VarKind::kSelectedRows) {
    return Unimplemented("E-pass-initial-value", "init_pserver_slices: ", op.type(),
                         " makes the initial values of ", var.name,
                         ", whose rows are sharded by id, all at once; use is_distributed=false");
  }
  if (!slice) return OkStatus();
  if (CutLists(op, *slice)) {
    FitShape(op, var.shape());
    return OkStatus();
  }
  return Unimplemented("E-pass-initial-value", "init_pserver_slices: ", op.type(),
                       " makes the initial values of ", slice->whole, " ", slice->whole_shape,
                       ", and cannot make rows [", slice->row_begin, ", ", slice->row_end,
                       ") alone; use slice_var_up=false");
}

void FitInitializerAsFluid(Op& op, Var& var) {
  const auto* dims = op.Get<std::vector<std::int32_t>>(kShape);
  if (ShapeDecides(op)) {
    FitShape(op, var.shape());
  } else if (op.type() == "assign_value" && dims != nullptr && var.type) {
    var.type->shape = Shape(std::vector<Dim>(dims->begin(), dims->end()));
  }
}

}  // namespace penstock::passes
