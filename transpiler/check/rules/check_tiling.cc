// Slices cover their variable once, in order, and a slice's gradient goes to the pserver that sends its
// parameter.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class TilingRules {
 public:
  TilingRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      file_ = trainer.file;
      for (const Transfer& send : trainer.sends) {
        if (!send.counts_steps) CheckSend(send);
      }
      CheckSendsAndRecvs(trainer);
      for (const Transfer& recv : trainer.recvs) CheckRecv(recv, recv.param);
      if (trainer.startup == nullptr) continue;
      file_ = trainer.startup;
      for (const Transfer& recv : trainer.startup_recvs) CheckRecv(recv, "");
    }
  }

 private:
  void Error(std::string id, std::string message, const Op* op) {
    findings_.Error(std::move(id), *file_, std::move(message), op);
  }

  std::optional<Shape> ShapeOf(std::string_view name) const {
    const Var* var = file_->program.FindVar(0, name);
    if (var == nullptr || !var->type) return std::nullopt;
    return var->shape();
  }

  static std::vector<std::int64_t> SectionsOf(const Op& op) {
    return std::vector<std::int64_t>(roles::SplitView(op).sections());
  }

  // A piece has the kind and element type of its whole.
  void CheckTypes(const Transfer& transfer) {
    const Var* whole = file_->program.FindVar(0, transfer.whole);
    if (whole == nullptr || !whole->type) return;
    for (const Piece& piece : transfer.pieces) {
      const Var* part = piece.here;
      if (part == nullptr || !part->type || part->type->dtype == whole->type->dtype) continue;
      Error("E-check-message-type",
            StrCat(piece.local, " is ", PrintVarType(*part), ", but ", transfer.whole, " is ",
                   PrintVarType(*whole)),
            transfer.op);
    }
  }

  void CheckSend(const Transfer& send) {
    CheckTypes(send);
    if (send.cut == Cut::kAtRunTime) {
      CheckSections(send, std::vector<std::int64_t>(roles::SendView(*send.op).sections()), send.pieces.size(),
                    *send.op);
    } else if (send.cut == Cut::kByRows) {
      const auto& outputs = send.cut_op->Output("Out");
      CheckSections(send, SectionsOf(*send.cut_op), outputs.size(), *send.cut_op);
      CheckDeclared(send, SectionsOf(*send.cut_op));
      if (outputs != LocalsOf(send)) {
        Error("E-check-sections",
              StrCat("sends ", Join(LocalsOf(send), ", "), ", but ", send.whole, " is split into ",
                     Join(outputs, ", ")),
              send.op);
      }
    } else if (send.cut == Cut::kById && send.cut_op->Output("Out") != LocalsOf(send)) {
      Error("E-check-sections",
            StrCat("sends ", Join(LocalsOf(send), ", "), ", but ", send.whole, " is placed as ",
                   Join(send.cut_op->Output("Out"), ", ")),
            send.op);
    } else if (send.cut == Cut::kNot && send.pieces.size() > 1) {
      Error("E-check-sections",
            StrCat("sends ", send.pieces.size(), " variables that no op cuts from one gradient"), send.op);
    }
  }

  static std::vector<std::string> LocalsOf(const Transfer& transfer) {
    std::vector<std::string> names;
    for (const Piece& piece : transfer.pieces) names.emplace_back(piece.local);
    return names;
  }

  void CheckSections(const Transfer& send, const std::vector<std::int64_t>& sections, std::size_t pieces,
                     const Op& op) {
    if (sections.size() != pieces) {
      Error("E-check-sections",
            StrCat(send.whole, " is split into ", pieces, " pieces by ", sections.size(), " sections"), &op);
      return;
    }
    const auto shape = ShapeOf(send.whole);
    if (!shape || shape->rank() == 0 || (*shape)[0] == kUnknownDim) return;
    Dim rows = 0;
    for (const std::int64_t section : sections) {
      rows += section;
      if (section <= 0) {
        Error("E-check-sections", StrCat("a section of ", send.whole, " has ", section, " rows"), &op);
      }
    }
    if (rows == (*shape)[0]) return;
    Error("E-check-sections",
          StrCat("the sections of ", send.whole, " have ", rows, " rows together; it has ", (*shape)[0]),
          &op);
  }

  void CheckDeclared(const Transfer& send, const std::vector<std::int64_t>& sections) {
    for (std::size_t i = 0; i < std::min(sections.size(), send.pieces.size()); ++i) {
      const Piece& piece = send.pieces[i];
      if (Compatible(piece.rows, sections[i])) continue;
      Error("E-check-sections",
            StrCat(piece.local, " is declared with ", piece.rows, " rows, but its section has ", sections[i]),
            send.cut_op);
    }
  }

  // Slice i of a gradient updates the slice that trainers receive or look up as the parameter's i-th.
  void CheckSendsAndRecvs(const TrainerFacts& trainer) {
    for (const Transfer& send : trainer.sends) {
      if (send.counts_steps || send.param.empty()) continue;
      if (const Transfer* recv = trainer.FindRecv(send.param)) {
        ComparePieces(send, recv->pieces, *recv->op, "received");
      }
      for (const Lookup& lookup : trainer.lookups) {
        if (lookup.cut == Cut::kByRows && lookup.table == send.param) {
          ComparePieces(send, lookup.pieces, *lookup.op, "looked up");
        }
      }
    }
  }

  void ComparePieces(const Transfer& send, const std::vector<Piece>& others, const Op& op,
                     std::string_view verb) {
    if (send.pieces.size() != others.size()) {
      Error("E-check-slices",
            StrCat("sends ", send.pieces.size(), " slices of the gradient of ", send.param, ", but ",
                   others.size(), " of it are ", verb),
            &op);
      return;
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      const Piece& sent = send.pieces[i];
      const UpdateBlock* update = sent.reader;
      if (update == nullptr || update->param.empty()) continue;  // reported as not received, or not updated
      if (update->param != others[i].remote || sent.pserver != others[i].pserver) {
        Error("E-check-slice-order",
              StrCat("slice ", i, " of the gradient of ", send.param, " (", sent.remote, ") updates ",
                     update->param, " at ", sent.pserver, ", but slice ", i, " is ", verb, " as ",
                     others[i].remote, " from ", others[i].pserver),
              &op);
      } else if (!Compatible(sent.rows, others[i].rows)) {
        Error("E-check-slices",
              StrCat("slice ", i, " of the gradient of ", send.param, " has ", sent.rows, " rows, but ",
                     others[i].rows, " are ", verb),
              &op);
      }
    }
  }

  // `param` is empty in startup programs, whose ops name none.
  void CheckRecv(const Transfer& recv, std::string_view param) {
    CheckTypes(recv);
    if (!param.empty() && recv.whole != param && recv.cut_op == nullptr) {
      Error("E-check-join",
            StrCat("receives ", recv.pieces.size(), " slices of ", param, ", but never joins them"), recv.op);
      return;
    }
    if (!param.empty() && recv.whole != param) {
      Error("E-check-join", StrCat("joins what it receives of ", param, " to ", recv.whole), recv.cut_op);
      return;
    }
    if (recv.cut == Cut::kNot) {
      if (recv.pieces.size() > 1) {
        Error("E-check-join", StrCat("receives ", Join(LocalsOf(recv), ", "), ", but never joins them"),
              recv.op);
      }
      return;
    }
    if (recv.cut == Cut::kByRows) CheckJoinOp(recv);
    CheckRows(recv);
  }

  void CheckJoinOp(const Transfer& recv) {
    const auto& inputs = recv.cut_op->Input("X");
    if (inputs != LocalsOf(recv)) {
      Error("E-check-join",
            StrCat(recv.whole, " is joined from ", Join(inputs, ", "), ", but its slices are ",
                   Join(LocalsOf(recv), ", ")),
            recv.cut_op);
    }
    const auto axis = recv.cut_op->GetOr<std::int32_t>("axis", 0);
    if (axis != 0 || !recv.cut_op->Input("AxisTensor").empty()) {
      Error("E-check-join", StrCat(recv.whole, " is joined along axis ", axis, "; slices are rows (axis 0)"),
            recv.cut_op);
    }
  }

  void CheckRows(const Transfer& recv) {
    const auto whole = ShapeOf(recv.whole);
    if (!whole || whole->rank() == 0) return;
    Dim rows = 0;
    for (const Piece& piece : recv.pieces) {
      const auto shape = ShapeOfPiece(recv, piece);
      if (!shape || shape->rank() == 0 || (*shape)[0] == kUnknownDim) return;
      rows += (*shape)[0];
      if (Compatible(shape->From(1), whole->From(1))) continue;
      Error("E-check-join",
            StrCat("rows of ", piece.remote, " are ", shape->From(1), ", rows of ", recv.whole, " are ",
                   whole->From(1)),
            recv.op);
    }
    if (rows == (*whole)[0] || (*whole)[0] == kUnknownDim) return;
    Error("E-check-tiling",
          StrCat("the slices of ", recv.whole, " have ", rows, " rows together; it has ", (*whole)[0]),
          recv.cut_op != nullptr ? recv.cut_op : recv.op);
  }

  // As declared here; pieces joined at run time are declared only by their pserver.
  static std::optional<Shape> ShapeOfPiece(const Transfer& recv, const Piece& piece) {
    const Var* var = recv.cut != Cut::kAtRunTime ? piece.here : piece.there;
    if (var == nullptr || !var->type) return std::nullopt;
    return var->shape();
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const RoleProgram* file_ = nullptr;
};

}  // namespace

void CheckTiling(const RoleFacts& facts, Findings& findings) { TilingRules(facts, findings).Run(); }

}  // namespace penstock::check
