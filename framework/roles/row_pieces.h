// The rows of a whole variable that each server holds, where an op leaves the cutting to the trainer's
// communicator: `send` with send_varnames, `recv` with recv_varnames.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::vector<RowPiece> pieces, RowPiecesOf(program, op));
//   for (const RowPiece& piece : pieces)
//     ... rows [piece.begin, piece.end) are piece.type.name on piece.pserver
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/roles/piece.h"

namespace penstock::roles {

struct RowPiece {
  PieceType type;
  std::string pserver;     // "host:port"
  Dim begin = 0, end = 0;  // in the whole
};

// In the order of the rows, which they cover without a gap. A send says how many rows each piece has; for a
// recv the declarations of its pieces do. kInvalidArgument: E-contract-epmap (other than one whole variable,
// or other than one address a piece), E-contract-shape (the pieces are not the rows of the whole),
// E-contract-var (PieceOf).
Result<std::vector<RowPiece>> RowPiecesOf(const Program& program, const Op& op);

// Of such an op: the whole variable.
const std::string& WholeOf(const Op& op);

}  // namespace penstock::roles
