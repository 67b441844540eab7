#include "framework/roles/row_pieces.h"

#include "framework/roles/views.h"

namespace penstock::roles {
namespace {

bool Sends(const Op& op) { return CommOf(op) == Comm::kSend; }

Names WholesOf(const Op& op) { return Sends(op) ? SendView(op).variables() : RecvView(op).variables(); }
Names MessagesOf(const Op& op) { return Sends(op) ? SendView(op).messages() : RecvView(op).messages(); }
Names AddressesOf(const Op& op) { return Sends(op) ? SendView(op).addresses() : RecvView(op).addresses(); }

// The number of rows of a piece; kUnknownDim if neither the op nor a declaration gives it.
Dim RowsOf(const Program& program, const Op& op, std::size_t piece) {
  if (Sends(op)) {
    const Numbers sections = SendView(op).sections();
    return piece < sections.size() ? sections[piece] : kUnknownDim;
  }
  const Var* var = program.FindVar(0, MessagesOf(op)[piece]);
  return var == nullptr || !var->HasShape() || var->shape().rank() == 0 ? kUnknownDim : var->shape()[0];
}

}  // namespace

const std::string& WholeOf(const Op& op) { return WholesOf(op).front(); }

Result<std::vector<RowPiece>> RowPiecesOf(const Program& program, const Op& op) {
  const Names messages = MessagesOf(op), addresses = AddressesOf(op);
  if (WholesOf(op).size() != 1 || messages.size() != addresses.size()) {
    return InvalidArgument("E-contract-epmap", op.type(), " has ", WholesOf(op).size(), " variables, ",
                           messages.size(), " names of pieces and ", addresses.size(), " addresses in epmap");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const PieceType whole, PieceOf(program, 0, WholeOf(op), WholeOf(op)));
  const Dim height = whole.shape.rank() == 0 ? 1 : whole.shape[0];
  std::vector<RowPiece> pieces;
  Dim at = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Dim rows = messages.size() == 1 ? height : RowsOf(program, op, i);
    if (rows <= 0 || rows > height - at) {
      return InvalidArgument("E-contract-shape", op.type(), ": piece ", messages[i], " has ", rows,
                             " of the ", height - at, " rows of ", whole.name, " from row ", at, " on");
    }
    PieceType type = whole;
    type.name = messages[i];
    if (messages.size() > 1) type.shape = whole.shape.WithRows(rows);
    pieces.push_back({std::move(type), addresses[i], at, at + rows});
    at += rows;
  }
  if (at == height) return pieces;
  return InvalidArgument("E-contract-shape", op.type(), ": its pieces are ", at, " rows of ", whole.name,
                         ", which has ", height);
}

}  // namespace penstock::roles
