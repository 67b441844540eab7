#include "operators/common/rows.h"

namespace penstock {

Status RequireRowValues(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type) {
  const auto count = static_cast<Dim>(rows.rows.size());
  const auto error = [&](const auto&... parts) {
    return InvalidArgument("E-op-rows", op, ": ", slot, " ", StrCat(parts...));
  };
  if (count == 0) return OkStatus();  // whatever its values are: scripts allocate them before there are rows
  if (!rows.value.initialized()) return error("lists ", count, " rows and has no values");
  if (rows.value.dtype() != type)
    return error("has values of type ", DTypeName(rows.value.dtype()), ", not ", DTypeName(type));
  const Shape& shape = rows.value.shape();
  if (shape.rank() == 0 || shape[0] != count)
    return error("lists ", count, " rows and has values of shape ", shape);
  return OkStatus();
}

Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type) {
  PENSTOCK_RETURN_IF_ERROR(RequireRowValues(op, slot, rows, type));
  if (!rows.value.initialized()) return OkStatus();
  for (const std::int64_t row : rows.rows) {
    if (row >= 0 && row < rows.height) continue;
    return InvalidArgument("E-op-index", op, ": ", slot, " lists row ", row, " of a tensor of ", rows.height,
                           " rows");
  }
  return OkStatus();
}

Status RequireRows(std::string_view op, std::string_view slot, const SelectedRows& rows, DType type,
                   const Shape& tall) {
  const Dim height = tall.rank() == 0 ? 1 : tall[0];
  if (rows.height != height) {
    return InvalidArgument("E-op-rows", op, ": ", slot, " holds rows of a tensor of ", rows.height,
                           " rows, not ", height);
  }
  PENSTOCK_RETURN_IF_ERROR(RequireRows(op, slot, rows, type));
  const Shape& shape = rows.value.shape();
  bool same = rows.rows.empty() || shape.rank() == tall.rank();
  for (int d = 1; d < shape.rank() && same; ++d) same = rows.rows.empty() || shape[d] == tall[d];
  if (same) return OkStatus();
  return InvalidArgument("E-op-rows", op, ": ", slot, " has values of shape ", rows.value.shape(),
                         " for rows of ", tall);
}

const Shape& NoRows() {
  static const Shape none{0};
  return none;
}

}  // namespace penstock
