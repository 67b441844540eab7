// Geo: trainers update their own parameters and report changes to a communicator; pservers sum the changes.
#include <algorithm>
#include <compare>
#include <optional>
#include <set>
#include <string>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

struct RowsOf {
  std::string ids;
  std::string table;
  auto operator<=>(const RowsOf&) const = default;
};

// The rows that an op reads from a table with sparse gradients: the looked-up ids, or the labels that it
// drew.
std::optional<RowsOf> RowsTakenBy(const Op& op) {
  if (Has(op.role(), OpRole::kBackward) || !op.GetOr<bool>("is_sparse", false)) return std::nullopt;
  const std::string& drawn = op.OutputName("SampleLabels");
  if (!drawn.empty()) return RowsOf{.ids = drawn, .table = op.InputName("Weight")};
  if (op.InputName("Ids").empty() || op.InputName("W").empty()) return std::nullopt;
  return RowsOf{.ids = op.InputName("Ids"), .table = op.InputName("W")};
}

class GeoRules {
 public:
  // `fetched` are the variables that any trainer receives at startup.
  GeoRules(const RoleFacts& facts, const TrainerFacts& trainer, const ViewSet& fetched, Findings& findings)
      : facts_(facts), trainer_(trainer), fetched_(fetched), findings_(findings) {}

  void Run() {
    if (trainer_.tells_ids.size() != 1) {
      findings_.Error("E-check-geo", *trainer_.file,
                      StrCat("tells the communicator ", trainer_.tells_ids.size(),
                             " times a step that it was done; it must be once"));
    }
    for (const Transfer& send : trainer_.tells_ids) CheckTold(*send.op);
    for (const Lookup& lookup : trainer_.lookups) {
      Error(StrCat("asks pservers for rows of ", lookup.table, ", which is trained here"), *lookup.op);
    }
    for (const PserverFacts& pserver : facts_.pservers) {
      for (const UpdateBlock& update : pserver.updates) {
        if (update.delta) CheckDelta(pserver, update);
      }
    }
    if (trainer_.startup == nullptr) return;
    CheckStart();
    CheckFetched();
  }

 private:
  void Error(std::string message, const Op& op) {
    findings_.Error("E-check-geo", *trainer_.file, std::move(message), &op);
  }

  // Reported rows of a table are those that an op reads, and an update changes them.
  void CheckTold(const Op& op) {
    const roles::Names ids = roles::SendView(op).variables();
    const roles::Names tables = roles::SendView(op).messages();
    if (ids.size() != tables.size()) {
      Error(StrCat("names ", tables.size(), " tables for ", ids.size(), " variables of ids"), op);
      return;
    }
    std::set<RowsOf> taken;
    for (const OpEntry& entry : trainer_.file->program.main().ops()) {
      if (std::optional<RowsOf> rows = RowsTakenBy(*entry.op)) taken.insert(*std::move(rows));
    }
    std::set<RowsOf> told;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const RowsOf& rows = *told.insert({.ids = ids[i], .table = tables[i]}).first;
      if (taken.contains(rows)) continue;
      Error(StrCat("says that rows ", rows.ids, " of ", rows.table, " changed, but no op takes them"), op);
    }
    for (const RowsOf& rows : taken) {
      if (!told.contains(rows) && trainer_.updated_here.contains(rows.table) && ChangesByRows(rows.table))
        Error(StrCat("does not say that rows ", rows.ids, " of ", rows.table, " changed"), op);
    }
    CheckAttrs(*trainer_.file, op);
  }

  // Whether its gradient is selected rows, and the pservers take its difference by rows. If another op has
  // made the gradient dense, or no op names the rows that it reads, the communicator compares the whole
  // table.
  bool ChangesByRows(const std::string& table) const {
    if (TakenWhole(table)) return false;
    const Block& main = trainer_.file->program.main();
    for (const OpEntry& entry : main.ops()) {
      if (!Has(entry.op->role(), OpRole::kOptimize)) continue;
      for (const auto& [param, grad] : entry.op->RolePairs()) {
        const Var* var = param == table ? main.FindVar(grad) : nullptr;
        if (var != nullptr) return var->kind == VarKind::kSelectedRows;
      }
    }
    return false;
  }

  // Whether a pserver adds a dense difference to a slice that the trainer received of the table.
  bool TakenWhole(std::string_view table) const {
    for (const Transfer& recv : trainer_.startup_recvs) {
      if (recv.whole != table || recv.pieces.empty()) continue;
      const PserverFacts* pserver = facts_.FindPserver(recv.pieces.front().pserver);
      if (pserver == nullptr) return false;
      for (const UpdateBlock& update : pserver->updates) {
        if (update.param == recv.pieces.front().remote && update.grad_var != nullptr)
          return update.grad_var->kind == VarKind::kTensor;
      }
    }
    return false;
  }

  void CheckAttrs(const RoleProgram& file, const Op& op) {
    const roles::SendView send(op);
    if (!send.adds() && !send.counts_step() && op.GetOr<std::int32_t>("num", 0) == 0 &&
        send.sections().empty() && !send.done().empty())
      return;
    findings_.Error("E-check-geo", file, "is not a send that only tells the communicator", &op);
  }

  // Startup ends with the notice to the communicator, after all variables are received.
  void CheckStart() {
    const auto& ops = trainer_.startup->program.main().ops();
    int told = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = *ops[i].op;
      if (roles::CommOf(op) != roles::Comm::kSend) continue;
      if (!std::ranges::equal(roles::SendView(op).variables(), roles::SendView(op).messages())) continue;
      ++told;
      CheckAttrs(*trainer_.startup, op);
      for (const Transfer& recv : trainer_.startup_recvs) {
        if (recv.position < static_cast<int>(i) && recv.cut_position < static_cast<int>(i)) continue;
        findings_.Error("E-check-geo", *trainer_.startup,
                        StrCat("tells the communicator that the start is complete before ", recv.whole,
                               " has come: changes would be measured from another value"),
                        &op);
        break;
      }
    }
    if (told != 1) {
      findings_.Error(
          "E-check-geo", *trainer_.startup,
          StrCat("tells the communicator ", told, " times that the start is complete; it must be once"));
    }
  }

  // Trainers start alike, with the values of the pservers.
  void CheckFetched() {
    PlaceSet received;
    ViewSet wholes;
    for (const Transfer& recv : trainer_.startup_recvs) {
      wholes.insert(recv.whole);
      for (const Piece& piece : recv.pieces) received.insert({piece.pserver, piece.remote});
    }
    bool reported = false;
    for (const PserverFacts& pserver : facts_.pservers) {
      for (const UpdateBlock& update : pserver.updates) {
        const Var* change = update.grad_var;
        const bool table = change != nullptr && change->kind == VarKind::kSelectedRows;
        if (!update.delta || received.contains({pserver.address, update.param})) continue;
        if (table) {  // Fluid fetches none
          findings_.Warning("W-check-geo-table", *trainer_.startup,
                            StrCat("does not receive the table ", update.param, " from ", pserver.address,
                                   ": rows that no trainer changes keep each trainer's own initial values"),
                            update.optimizer);
          continue;
        }
        findings_.Error("E-check-start-recv", *trainer_.startup,
                        StrCat("does not receive ", update.param, " from ", pserver.address,
                               "; the first step would not start from the pserver's value"),
                        update.optimizer);
        reported = true;
      }
    }
    if (reported) return;
    for (const std::string_view name : fetched_) {
      if (wholes.contains(name)) continue;
      findings_.Error("E-check-start-recv", *trainer_.startup,
                      StrCat("does not receive ", name, ", which other trainers start from"));
    }
  }

  // The variables that the communicator sends are declared here as on the pserver.
  void CheckDelta(const PserverFacts& pserver, const UpdateBlock& update) {
    const Var* there = update.grad_var;
    const Var* here = trainer_.file->program.main().FindVar(update.grad);
    if (there == nullptr) return;  // another rule reports it
    if (here == nullptr) {
      findings_.Error("E-check-geo", *trainer_.file,
                      StrCat("does not declare ", update.grad, ", the change that ", pserver.file->file,
                             " adds to ", update.param));
    } else if (PrintVarType(*here) != PrintVarType(*there)) {
      findings_.Error("E-check-message-type", *trainer_.file,
                      StrCat(update.grad, " is ", PrintVarType(*here), " here, but ", PrintVarType(*there),
                             " in ", pserver.file->file),
                      update.anchor(pserver.serve));
    }
  }

  const RoleFacts& facts_;
  const TrainerFacts& trainer_;
  const ViewSet& fetched_;
  Findings& findings_;
};

}  // namespace

void CheckGeo(const RoleFacts& facts, Findings& findings) {
  if (!facts.geo()) return;
  ViewSet fetched;
  for (const TrainerFacts& trainer : facts.trainers) {
    for (const Transfer& recv : trainer.startup_recvs) fetched.insert(recv.whole);
  }
  for (const TrainerFacts& trainer : facts.trainers) GeoRules(facts, trainer, fetched, findings).Run();
}

}  // namespace penstock::check
