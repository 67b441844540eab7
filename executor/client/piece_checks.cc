#include "executor/client/piece_checks.h"

#include <algorithm>

#include "executor/protocol/compressed.h"

namespace penstock::client {
namespace {

bool IsTensorOf(const protocol::ContractPiece& piece, const Tensor& value) {
  return value.initialized() && value.dtype() == piece.dtype && value.shape() == piece.shape;
}

std::string TypeOf(const Tensor& value) {
  return value.initialized() ? StrCat(DTypeName(value.dtype()), value.shape()) : std::string("missing");
}

}  // namespace

bool MayHaveAnyRow(const protocol::Contract& contract) {
  return std::any_of(contract.tables.begin(), contract.tables.end(),
                     [](const protocol::ContractPiece& table) { return !table.shape.IsKnown(); });
}

Status RequireTensor(const protocol::ContractPiece& piece, const Tensor& value) {
  if (!piece.rows && IsTensorOf(piece, value)) return OkStatus();
  return InvalidArgument("E-send-shape", "send: ", piece, " is declared, the value is ", TypeOf(value));
}

Status RequireResidual(const protocol::ContractPiece& piece, const Tensor& value, const Tensor& residual) {
  if (!piece.compression.HasResidual()) return OkStatus();
  if (!IsTensorOf(piece, residual)) {
    return InvalidArgument("E-send-residual", "send: the residual of ", piece,
                           " must have its type and shape, but is ", TypeOf(residual));
  }
  return protocol::CheckCompressible(piece.compression, value.Span<float>(), residual.Span<float>())
      .In(StrCat("send: ", piece.name));
}

Status RequireInitial(const protocol::ContractPiece& piece, const Tensor& value) {
  if (IsTensorOf(piece, value)) return OkStatus();
  return InvalidArgument("E-load-shape", piece, " is declared, the initial value is ", TypeOf(value));
}

Status RequireRows(const protocol::ContractPiece& piece, const SelectedRows& value, bool any_row) {
  const auto count = static_cast<Dim>(value.rows.size());
  const auto error = [&](const auto&... parts) {
    return InvalidArgument("E-send-shape", "send: ", piece, " is declared, the value is ", StrCat(parts...));
  };
  if (!piece.rows) return error("selected rows");
  if (value.height != piece.shape[0]) return error("rows of a tensor of ", value.height, " rows");
  if (count == 0) return OkStatus();
  if (!value.value.initialized()) return error(count, " rows without values");
  if (value.value.dtype() != piece.dtype || value.value.shape() != piece.shape.WithRows(count))
    return error(count, " rows with values ", DTypeName(value.value.dtype()), value.value.shape());
  if (any_row) return OkStatus();
  for (const std::int64_t row : value.rows) {
    if (row >= 0 && row < piece.shape[0]) continue;
    return InvalidArgument("E-op-index", "send: row ", row, " is outside ", piece.name, ", which has ",
                           piece.shape[0], " rows");
  }
  return OkStatus();
}

}  // namespace penstock::client
