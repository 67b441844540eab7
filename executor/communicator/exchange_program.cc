#include "executor/communicator/exchange_program.h"

#include <set>
#include <utility>

#include "executor/communicator/deltas.h"
#include "framework/roles/attr_names.h"
#include "framework/roles/row_pieces.h"

namespace penstock::communicator {
namespace {

std::string DeltaName(const std::string& name) { return name + ".delta"; }

Status CheckSettings(const GeoSettings& settings) {
  const auto error = [](const auto&... parts) {
    return InvalidArgument("E-communicator-geo", "a communicator of geo-SGD ", StrCat(parts...));
  };
  if (settings.trainers < 1 || settings.push_every < 1) {
    return error("is told of ", settings.trainers, " trainers that send every ", settings.push_every,
                 " steps; each must be at least 1");
  }
  if (settings.variables.empty()) return error("is told of no parameter to exchange");
  std::set<std::string> names;
  for (const GeoVariable& variable : settings.variables) {
    if (!names.insert(variable.name).second) return error("is told twice of ", variable.name);
    if (variable.pieces.empty()) return error("is told of no piece of ", variable.name);
  }
  return OkStatus();
}

Status AddVariable(const Program& trainer, const GeoVariable& variable, Block& block) {
  PENSTOCK_ASSIGN_OR_RETURN(const roles::PieceType whole,
                            roles::PieceOf(trainer, 0, variable.name, variable.name));
  if (!CanExchange(whole.dtype)) {
    return Unimplemented("E-communicator-type", "geo-SGD exchanges parameters of f32 and f64; ", whole,
                         " is neither");
  }
  std::vector<std::string> pieces, deltas, addresses;
  std::vector<std::int64_t> sections;
  for (const GeoVariable::Piece& piece : variable.pieces) {
    pieces.push_back(piece.name);
    deltas.push_back(DeltaName(piece.name));
    addresses.push_back(piece.pserver);
    sections.push_back(piece.rows);
    if (variable.pieces.size() > 1 && whole.shape.rank() > 0)
      block.SetVar(TensorVar(piece.name, whole.dtype, whole.shape.WithRows(piece.rows)));
  }
  Var delta = TensorVar(DeltaName(variable.name), whole.dtype, whole.shape);
  if (variable.rows) delta.kind = VarKind::kSelectedRows;
  block.SetVar(std::move(delta));
  block.SetVar(TensorVar(variable.name, whole.dtype, whole.shape));
  block.Append(Op("send")
                   .AddInput("X", {DeltaName(variable.name)})
                   .Set(roles::attr::kSendVarnames, deltas)
                   .Set(roles::attr::kSections, sections)
                   .Set(roles::attr::kEpmap, addresses));
  block.Append(Op("recv")
                   .AddOutput("Out", {variable.name})
                   .Set(roles::attr::kRecvVarnames, pieces)
                   .Set(roles::attr::kEpmap, addresses));
  return OkStatus();
}

Result<WholeVariable> CutOf(const Program& program, const Op& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<roles::RowPiece> pieces, roles::RowPiecesOf(program, op));
  WholeVariable whole{.name = roles::WholeOf(op), .pieces = {}};
  for (const roles::RowPiece& piece : pieces) {
    whole.pieces.push_back({.remote = {.pserver = piece.pserver,
                                       .name = piece.type.name,
                                       .dtype = piece.type.dtype,
                                       .shape = piece.type.shape},
                            .begin = piece.begin,
                            .end = piece.end});
  }
  return whole;
}

}  // namespace

Result<Program> ExchangeProgram(const Program& trainer, const GeoSettings& settings) {
  PENSTOCK_RETURN_IF_ERROR(CheckSettings(settings));
  Program exchange;
  exchange.mutable_meta() = trainer.meta();
  Block& block = exchange.MutableBlock(0);
  std::set<std::string> addresses;
  for (const GeoVariable& variable : settings.variables) {
    PENSTOCK_RETURN_IF_ERROR(AddVariable(trainer, variable, block));
    for (const GeoVariable::Piece& piece : variable.pieces) addresses.insert(piece.pserver);
  }
  block.Append(
      Op("fetch_barrier")
          .Set(roles::attr::kEndpoints, std::vector<std::string>(addresses.begin(), addresses.end())));
  PENSTOCK_RETURN_IF_ERROR(ReadExchange(exchange).status());
  return exchange;
}

Result<std::vector<Exchanged>> ReadExchange(const Program& exchange) {
  std::vector<Exchanged> all;
  const std::vector<OpEntry>& ops = exchange.main().ops();
  for (std::size_t i = 0; i + 1 < ops.size(); i += 2) {
    Exchanged& one = all.emplace_back();
    PENSTOCK_ASSIGN_OR_RETURN(one.delta, CutOf(exchange, *ops[i].op));
    PENSTOCK_ASSIGN_OR_RETURN(one.param, CutOf(exchange, *ops[i + 1].op));
  }
  return all;
}

}  // namespace penstock::communicator
