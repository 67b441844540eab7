// Whether a value is what the contract declares it to be. Errors are kInvalidArgument where nothing else is
// said.
#pragma once

#include "executor/protocol/contract.h"
#include "framework/tensor/variable.h"

namespace penstock::client {

// Of a table sharded by id, any number is a row's. Whether the piece is of such a one only its
// server knows, where there is one.
bool MayHaveAnyRow(const protocol::Contract& contract);

// E-send-shape: it is not a tensor of that type and shape.
Status RequireTensor(const protocol::ContractPiece& piece, const Tensor& value);
// E-send-residual: what compression leaves of this gradient has no place, or not one of its type and shape.
// E-compression-finite (kFailedPrecondition; protocol/compressed.h).
Status RequireResidual(const protocol::ContractPiece& piece, const Tensor& value, const Tensor& residual);
// E-send-shape: it is not rows of such a tensor. E-op-index: one of its rows is outside.
Status RequireRows(const protocol::ContractPiece& piece, const SelectedRows& value, bool any_row);
// E-load-shape.
Status RequireInitial(const protocol::ContractPiece& piece, const Tensor& value);

}  // namespace penstock::client
