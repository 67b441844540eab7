// The rows of a whole variable that each server holds, for ops that let the trainer's communicator cut it:
// `send` with send_varnames, `recv` with recv_varnames.
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
  Dim begin = 0, end = 0;  // rows of the whole
};

// Returns the pieces in the order of their rows; together they cover the whole without a gap. A send op gives
// the number of rows of each piece; for a recv op, the pieces' declarations give it.
//
// kInvalidArgument  E-contract-epmap: not exactly one whole variable, or not one address per piece;
//                   E-contract-shape: the pieces do not add up to the rows of the whole; E-contract-var
Result<std::vector<RowPiece>> RowPiecesOf(const Program& program, const Op& op);

// The whole variable of such an op.
const std::string& WholeOf(const Op& op);

}  // namespace penstock::roles
