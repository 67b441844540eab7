// Checks that a value matches its declaration in the contract. Errors are kInvalidArgument unless stated
// otherwise.
#pragma once

#include "executor/protocol/contract.h"
#include "framework/tensor/variable.h"

namespace penstock::client {

// Whether the contract has a table sharded by id, in which any int64 is a valid row. Row numbers of
// gradients are then not checked here: only the server knows which gradient belongs to such a table.
bool MayHaveAnyRow(const protocol::Contract& contract);

// E-send-shape: the value is not a tensor of that type and shape.
Status RequireTensor(const protocol::ContractPiece& piece, const Tensor& value);
// E-send-residual: the residual is missing, or has another type or shape than the gradient.
// E-compression-finite (kFailedPrecondition; protocol/compressed.h).
Status RequireResidual(const protocol::ContractPiece& piece, const Tensor& value, const Tensor& residual);
// E-send-shape: the value is not selected rows of such a tensor. E-op-index: a row is out of range.
Status RequireRows(const protocol::ContractPiece& piece, const SelectedRows& value, bool any_row);
// E-load-shape: the value has another type or shape.
Status RequireInitial(const protocol::ContractPiece& piece, const Tensor& value);

}  // namespace penstock::client
