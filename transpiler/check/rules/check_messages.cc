// Every message has one sender and one receiver that agree on its name, kind, element type and shape.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class MessageRules {
 public:
  MessageRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      trainer_ = &trainer;
      sent_.clear();
      for (const Transfer& send : trainer.sends) CheckSend(send);
      CheckReceives(trainer.recvs, *trainer.file);
      if (trainer.startup != nullptr) CheckReceives(trainer.startup_recvs, *trainer.startup);
      if (!facts_.geo()) CheckAllPiecesFetched();
      for (const PserverFacts& pserver : facts_.pservers) CheckAllSent(pserver);
    }
  }

 private:
  // The pserver of a message; adds a finding and returns null if no pserver of the set has its address.
  const PserverFacts* ServerOf(const Transfer& transfer, const Piece& piece, const RoleProgram& file,
                               std::string_view verb, std::string_view preposition) {
    if (piece.to != nullptr) return piece.to;
    findings_.Error("E-check-address", file,
                    piece.has_address ? StrCat(verb, " ", piece.remote, preposition, piece.pserver,
                                               ", but no pserver of the set has that address")
                                      : StrCat(verb, " ", piece.remote, " without an address"),
                    transfer.op);
    return nullptr;
  }

  void CompareTypes(const Transfer& transfer, const Piece& piece, const RoleProgram& file,
                    const PserverFacts& pserver) {
    const Var* here = piece.here;
    const Var* there = piece.there;
    if (here == nullptr || there == nullptr || !here->type || !there->type) return;
    Shape shape = here->shape();
    if (transfer.cut == Cut::kAtRunTime && shape.rank() > 0) {
      shape = shape.WithRows(piece.rows);
    }
    // Fluid's clipping declares a gradient that becomes selected rows without a shape.
    const bool untold =
        here->kind == VarKind::kSelectedRows && (shape.rank() == 0 || there->shape().rank() == 0);
    if (here->kind == there->kind && here->type->dtype == there->type->dtype &&
        (untold || Compatible(shape, there->shape())))
      return;
    Var cut = *here;
    cut.type->shape = shape;
    findings_.Error("E-check-message-type", file,
                    StrCat(piece.local, " is ", PrintVarType(cut), " here, but ", piece.remote, " is ",
                           PrintVarType(*there), " in ", pserver.file->file),
                    transfer.op);
  }

  bool Named(const Transfer& transfer, const Piece& piece, const RoleProgram& file, std::string_view verb) {
    if (!piece.local.empty() && !piece.remote.empty()) return true;
    findings_.Error("E-check-epmap", file,
                    StrCat(verb, " ", transfer.whole, " with more addresses or names than variables (",
                           transfer.pieces.size(), " entries)"),
                    transfer.op);
    return false;
  }

  void CheckSend(const Transfer& send) {
    const RoleProgram& file = *trainer_->file;
    for (const Piece& piece : send.pieces) {
      if (!Named(send, piece, file, "sends")) return;
      const PserverFacts* pserver = ServerOf(send, piece, file, "sends", " to ");
      if (pserver == nullptr) continue;
      if (!sent_.insert({piece.pserver, piece.remote}).second) {
        findings_.Error("E-check-sent-twice", file,
                        StrCat("sends ", piece.remote, " to ", piece.pserver, " twice in one step"), send.op);
        continue;
      }
      const bool consumed =
          send.counts_steps ? pserver->counters.contains(piece.remote) : piece.reader != nullptr;
      if (!consumed) {
        findings_.Error("E-check-not-received", file,
                        StrCat("sends ", piece.remote, " to ", piece.pserver,
                               ", which does not receive it: no block there reads it"),
                        send.op);
        continue;
      }
      CompareTypes(send, piece, file, *pserver);
    }
  }

  void CheckReceives(const std::vector<Transfer>& recvs, const RoleProgram& file) {
    ViewSet received;
    for (const Transfer& recv : recvs) {
      for (const std::string& name : recv.op->Output("Out")) {
        if (received.insert(name).second) continue;
        findings_.Error("E-check-received-twice", file, StrCat("receives ", name, " twice in one step"),
                        recv.op);
      }
      for (const Piece& piece : recv.pieces) {
        if (!Named(recv, piece, file, "receives")) break;
        const PserverFacts* pserver = ServerOf(recv, piece, file, "receives", " from ");
        if (pserver == nullptr) continue;
        if (piece.there == nullptr || !piece.there->persistable) {
          findings_.Error(
              "E-check-unknown-piece", file,
              StrCat("receives ", piece.remote, " from ", piece.pserver, ", which holds no such variable"),
              recv.op);
          continue;
        }
        CompareTypes(recv, piece, file, *pserver);
      }
    }
  }

  // Every trainer fetches each updated parameter, except tables, whose rows lookups fetch.
  void CheckAllPiecesFetched() {
    PlaceSet fetched;
    for (const Lookup& lookup : trainer_->lookups) {
      for (const Piece& piece : lookup.pieces) fetched.insert({piece.pserver, piece.remote});
    }
    for (const Transfer& recv : trainer_->recvs) {
      for (const Piece& piece : recv.pieces) fetched.insert({piece.pserver, piece.remote});
    }
    AddRemoteTables(fetched);
    for (const PserverFacts& pserver : facts_.pservers) {
      for (const UpdateBlock& update : pserver.updates) {
        if (update.param.empty() || update.by_id) continue;
        if (fetched.contains({pserver.address, update.param})) continue;
        findings_.Error(
            "E-check-not-fetched", *trainer_->file,
            StrCat("never receives ", update.param, ", which ", pserver.address, " updates each step"),
            update.optimizer);
      }
    }
  }

  // Tables that an op reads from the servers directly: the send of their gradient gives the parameter.
  void AddRemoteTables(PlaceSet& fetched) const {
    for (const Transfer& send : trainer_->sends) {
      if (!trainer_->remote_tables.contains(send.param)) continue;
      for (const Piece& piece : send.pieces) {
        if (piece.reader != nullptr) fetched.insert({piece.pserver, piece.reader->param});
      }
    }
  }

  void CheckIsSent(const PserverFacts& pserver, std::string_view name, const Op* reader) {
    if (sent_.contains({pserver.address, name})) return;
    findings_.Error("E-check-not-sent", *pserver.file,
                    StrCat("waits for ", name, " of trainer ", trainer_->trainer_id, ", which ",
                           trainer_->file->file, " never sends to ", pserver.address),
                    reader);
  }

  // Trainer t sends the variables that a server reads from it, if the set contains its program: the t-th
  // input of a merge, or all inputs without a merge.
  void CheckAllSent(const PserverFacts& pserver) {
    if (pserver.mode == ServeMode::kGeo) return;
    const auto t = static_cast<std::size_t>(trainer_->trainer_id);
    for (const UpdateBlock& update : pserver.updates) {
      if (update.merge != nullptr) {
        if (t < update.merge_inputs.size()) CheckIsSent(pserver, update.merge_inputs[t], update.merge);
        continue;
      }
      for (const std::string_view name : update.consumes) CheckIsSent(pserver, name, update.optimizer);
    }
    if (pserver.counters.empty()) return;
    const bool counted =
        std::any_of(trainer_->sends.begin(), trainer_->sends.end(), [&](const Transfer& send) {
          return send.counts_steps &&
                 std::any_of(send.pieces.begin(), send.pieces.end(),
                             [&](const Piece& piece) { return piece.pserver == pserver.address; });
        });
    if (counted) return;
    findings_.Error("E-check-not-sent", *pserver.file,
                    StrCat("counts steps by ", Join(pserver.counters, ", "), ", but ", trainer_->file->file,
                           " never tells ", pserver.address, " of one"),
                    pserver.serve);
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const TrainerFacts* trainer_ = nullptr;
  PlaceSet sent_;
};

}  // namespace

void CheckMessages(const RoleFacts& facts, Findings& findings) { MessageRules(facts, findings).Run(); }

}  // namespace penstock::check
