// The attributes of a trainer's communication ops match what the ops do, and control variables match their
// order.
#include <algorithm>
#include <span>

#include "framework/roles/attr_names.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class CommOpRules {
 public:
  CommOpRules(const RoleFacts& facts, const TrainerFacts& trainer, Findings& findings)
      : facts_(facts), trainer_(trainer), findings_(findings) {}

  void Run() {
    file_ = trainer_.file;
    for (const Transfer& send : trainer_.sends) CheckSend(send);
    for (const Transfer& recv : trainer_.recvs) CheckRecv(recv);
    for (const Lookup& lookup : trainer_.lookups) CheckLookup(lookup);
    for (const Barrier& barrier : trainer_.send_barriers) CheckTrainerId(*barrier.op);
    for (const Barrier& barrier : trainer_.fetch_barriers) CheckTrainerId(*barrier.op);
    if (facts_.sync() && !facts_.async_called_sync()) {
      CheckSyncControl();
    } else {
      CheckAsyncControl();
    }
    CheckControl(*trainer_.file);
    if (trainer_.startup == nullptr) return;
    file_ = trainer_.startup;
    CheckControl(*trainer_.startup);
    for (const Transfer& recv : trainer_.startup_recvs) CheckRecv(recv);
    for (const Barrier& barrier : trainer_.startup_barriers) {
      CheckTrainerId(*barrier.op);
      if (!barrier.op->OutputName("Out").empty()) continue;
      Error("E-check-control", "fetch_barrier has no control variable that says that the start is complete",
            *barrier.op);
    }
  }

 private:
  void Error(std::string id, std::string message, const Op& op) {
    findings_.Error(std::move(id), *file_, std::move(message), &op);
  }

  void CheckTrainerId(const Op& op) {
    const int id = roles::TrainerOf(op).value_or(0);
    if (id == trainer_.trainer_id) return;
    Error("E-check-trainer-id",
          StrCat(op.type(), " says trainer ", id, ", but the program is trainer ", trainer_.trainer_id, "'s"),
          op);
  }

  template <typename T>
  void Require(const Op& op, std::string_view attr, T expected, std::string_view why) {
    const Attr* given = op.FindAttr(attr);
    if (given == nullptr || *given == Attr(expected)) return;
    Error("E-check-attr",
          StrCat(op.type(), " has ", attr, "=", AttrToString(*given), ", not ", AttrToString(Attr(expected)),
                 ": ", why),
          op);
  }

  void CheckPair(const Op& op, const Transfer& transfer) {
    const auto pairs = op.RolePairs();
    if (pairs.size() != 1) {
      Error("E-check-pair",
            StrCat(op.type(), " of ", transfer.whole, " says of ", pairs.size(),
                   " (param, grad) pairs that it is for them; it is for one"),
            op);
      return;
    }
    const Transfer* send = trainer_.FindSend(transfer.param);
    const std::string& grad = pairs.front().second;
    if (send == nullptr || grad == send->whole || IsMadeOf(send->whole, grad)) return;
    Error("E-check-pair",
          StrCat(op.type(), " says that ", grad, " is the gradient of ", transfer.param, "; what is sent is ",
                 send->whole),
          op);
  }

  // Rows may be sent with duplicates merged.
  bool IsMadeOf(std::string_view sent, std::string_view grad) const {
    const auto& ops = trainer_.file->program.main().ops();
    return std::any_of(ops.begin(), ops.end(), [&](const OpEntry& entry) {
      return entry.op->type() == "merge_selected_rows" && entry.op->OutputName("Out") == sent &&
             entry.op->InputName("X") == grad;
    });
  }

  static bool SaysThatItIsDone(const Op& op, bool startup) {
    return op.type() == "send" || op.type() == "send_barrier" || (op.type() == "fetch_barrier" && startup);
  }

  // A control variable that reports the end of a communication has one writer and holds no value. A step's
  // fetch_barrier has the received variables as outputs instead.
  void CheckControl(const RoleProgram& file) {
    const bool startup = &file == trainer_.startup;
    ViewMap<int> writers;
    for (const OpEntry& entry : file.program.main().ops()) {
      if (!SaysThatItIsDone(*entry.op, startup)) continue;
      for (const std::string& name : entry.op->Output("Out")) writers.emplace(name, 0);
    }
    if (writers.empty()) return;
    for (const OpEntry& entry : file.program.main().ops()) {
      if (entry.op->type() == "fetch_barrier" && !startup) continue;
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          if (const auto known = writers.find(name); known != writers.end()) ++known->second;
        }
      }
    }
    for (const OpEntry& entry : file.program.main().ops()) {
      const Op& op = *entry.op;
      if (!SaysThatItIsDone(op, startup)) continue;
      for (const std::string& name : op.Output("Out")) {
        const Var* var = file.program.main().FindVar(name);
        const bool control =
            var == nullptr || (!var->persistable && (!var->type || var->shape().rank() == 0));
        if (control && writers[name] == 1) continue;
        Error("E-check-control",
              StrCat(op.type(), " says by ", name, " that it is done, ",
                     control ? "as does another op" : "which holds a value"),
              op);
      }
    }
  }

  void CheckSend(const Transfer& send) {
    const Op& op = *send.op;
    const roles::SendView view(op);
    // In Fluid's sends it is always 0.
    if (roles::TrainerOf(op).value_or(0) != 0) CheckTrainerId(op);
    CheckPair(op, send);
    // Fluid's sends of tables sharded by id have no control variable if no op waits for them.
    if (op.OutputName("Out").empty() && send.cut != Cut::kById) {
      Error("E-check-control",
            StrCat("send of ", send.whole, " has no control variable that says it is done"), op);
    }
    Require(op, "num", std::int32_t{0}, "its pieces are counted by its variables");
    if (view.adds() != send.counts_steps) {
      Error("E-check-attr",
            StrCat("send has merge_add=", send.counts_steps ? "false, not true" : "true, not false",
                   ": gradients are averaged, steps are added"),
            op);
    }
    if (!view.by_communicator() && !view.sections().empty()) {
      Error("E-check-attr", "send has sections, but no send_varnames for what they cut", op);
    }
    if (send.cut == Cut::kAtRunTime && op.Input("X").size() != 1) {
      Error("E-check-attr",
            StrCat("send_varnames name the pieces of one variable, not of ", op.Input("X").size()), op);
    }
    if (send.cut_op != nullptr && send.cut_op->InputNames().size() != 1) {
      Error("E-check-sections", StrCat(send.cut_op->type(), " cuts more than one variable"), *send.cut_op);
    }
    if (send.cut_op != nullptr)
      Require(*send.cut_op, "num", std::int32_t{0}, "its sections say where to cut");
    if (send.counts_steps) {
      CheckNotice(send);
      const bool all =
          std::all_of(facts_.pservers.begin(), facts_.pservers.end(), [&](const PserverFacts& p) {
            return p.counters.empty() ||
                   std::any_of(send.pieces.begin(), send.pieces.end(),
                               [&](const Piece& piece) { return piece.pserver == p.address; });
          });
      if (!all) Error("E-check-not-sent", StrCat("does not tell every pserver of a step"), op);
      return;
    }
    const auto made = trainer_.gradients.find(send.param);
    if (made == trainer_.gradients.end()) {
      Error("E-check-pair", StrCat("sends a gradient of ", send.param, ", which no backward op computes"),
            op);
    }
  }

  // A send that reports a step has one whole variable under one name, which is no gradient.
  void CheckNotice(const Transfer& send) {
    const Op& op = *send.op;
    const std::size_t names = roles::SendView(op).messages().size();
    const std::size_t sections = roles::SendView(op).sections().size();
    if (names != (trainer_.by_communicator ? 1 : 0) || sections != 0) {
      Error("E-check-attr",
            StrCat("tells of a step under ", names, " send_varnames and in ", sections,
                   " sections; it must be ", trainer_.by_communicator ? "one name" : "its own name",
                   " and none"),
            op);
    }
    for (const auto& [param, grad] : op.RolePairs()) {
      if (param == send.whole && grad == send.whole) continue;
      Error("E-check-pair", StrCat("tells of a step, but says that it is for ", param, " and ", grad), op);
    }
  }

  void CheckRecv(const Transfer& recv) {
    const Op& op = *recv.op;
    CheckTrainerId(op);
    if (file_ == trainer_.file) CheckPair(op, recv);
    Require(op, roles::attr::kWithBarrier, true, "what it receives is of one step");
    if (!trainer_.by_communicator || file_ == trainer_.startup) {
      Require(op, roles::attr::kDoNotRun, std::int32_t{0}, "nobody else receives it");
    }
    if (trainer_.by_communicator && file_ == trainer_.file && recv.cut != Cut::kAtRunTime) {
      Error("E-check-attr", "recv has no recv_varnames, by which the communicator knows what to ask for", op);
    }
    const auto outputs = recv.cut == Cut::kAtRunTime ? 0 : op.Output("Out").size();
    const auto renamed = roles::RecvView(op).renamed().size();
    if (renamed != 0 && renamed != outputs) {
      Error("E-check-attr", StrCat("recv has ", renamed, " varnames for ", outputs, " variables"), op);
    }
  }

  void CheckLookup(const Lookup& lookup) {
    const Op& op = *lookup.op;
    // In Fluid's prefetches it is always 0.
    if (lookup.cut == Cut::kByRows || roles::TrainerOf(op).value_or(0) != 0) CheckTrainerId(op);
    if (lookup.cut != Cut::kByRows) return;
    if (op.Input("W").size() != 1) Error("E-check-lookup", "looks up in more than one table", op);
    const Var* table = trainer_.file->program.FindVar(0, lookup.table);
    if (table != nullptr && table->type) {
      Require(op, "dtype", static_cast<std::int32_t>(table->type->dtype),
              "the table's rows are of this type");
    }
    // The gradient op of the lookup gives the lookup's type.
    const std::string version(roles::LookupView(op).version());
    const auto& ids = op.Input("Ids");
    std::set<std::string> gradients;
    for (const OpEntry& entry : trainer_.file->program.main().ops()) {
      if (!Has(entry.op->role(), OpRole::kBackward) || entry.op->InputName("W") != lookup.table) continue;
      if (std::find(ids.begin(), ids.end(), entry.op->InputName("Ids")) != ids.end())
        gradients.insert(entry.op->type());
    }
    if (gradients.empty() || gradients.contains(version + "_grad")) return;
    Error("E-check-lookup",
          StrCat("looks up as ", Quote(version), ", but the gradient is ", Join(gradients, ", ")), op);
  }

  static bool Names(std::span<const std::string> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  void RequireAfter(const Op& op, const Op& before, std::string_view why) {
    const std::string& control = before.OutputName("Out");
    if (!control.empty() && Names(op.Input("X"), control)) return;
    Error("E-check-control",
          StrCat(op.type(), " does not wait for ", control.empty() ? before.type() : control, ": ", why), op);
  }

  // sends -> send_barrier -> recvs -> fetch_barrier
  void CheckSyncControl() {
    for (const Barrier& barrier : trainer_.send_barriers) {
      const ViewSet waits(barrier.op->Input("X").begin(), barrier.op->Input("X").end());
      for (const Transfer& send : trainer_.sends) {
        const std::string& done = send.op->OutputName("Out");
        if (!Reaches(barrier, send) || (!done.empty() && waits.contains(done))) continue;
        Error("E-check-control",
              StrCat("send_barrier does not wait for the send of ", send.whole,
                     ": the step could end without it"),
              *barrier.op);
      }
      for (const Transfer& recv : trainer_.recvs) {
        if (Reaches(barrier, recv))
          RequireAfter(*recv.op, *barrier.op, "it asks for the step that this ends");
      }
      for (const Barrier& fetch : trainer_.fetch_barriers) {
        if (fetch.position > barrier.position)
          RequireAfter(*fetch.op, *barrier.op, "it completes the step that this ends");
      }
    }
    for (const Barrier& fetch : trainer_.fetch_barriers) {
      const ViewSet completes(fetch.op->Output("Out").begin(), fetch.op->Output("Out").end());
      for (const Transfer& recv : trainer_.recvs) {
        if (!Reaches(fetch, recv)) continue;
        for (const std::string& name : recv.op->Output("Out")) {
          if (completes.contains(name)) continue;
          Error("E-check-control",
                StrCat("fetch_barrier does not complete ", name, ": what reads it need not wait for it"),
                *fetch.op);
        }
      }
    }
  }

  static bool Reaches(const Barrier& barrier, const Transfer& transfer) {
    return std::any_of(transfer.pieces.begin(), transfer.pieces.end(),
                       [&](const Piece& piece) { return Names(barrier.pservers, piece.pserver); });
  }

  // Each recv waits for the send of its own parameter's gradient.
  void CheckAsyncControl() {
    for (const Transfer& recv : trainer_.recvs) {
      const Transfer* send = trainer_.FindSend(recv.param);
      if (send != nullptr) RequireAfter(*recv.op, *send->op, "it asks for what this send has changed");
    }
    for (const Barrier& barrier : trainer_.send_barriers) {
      const ViewSet waits(barrier.op->Input("X").begin(), barrier.op->Input("X").end());
      for (const Transfer& send : trainer_.sends) {
        const std::string& done = send.op->OutputName("Out");
        if (done.empty() || waits.contains(done)) continue;
        Error("E-check-control",
              StrCat("send_barrier does not wait for the send of ", send.whole,
                     ": the round could end without it"),
              *barrier.op);
      }
    }
  }

  const RoleFacts& facts_;
  const TrainerFacts& trainer_;
  Findings& findings_;
  const RoleProgram* file_ = nullptr;
};

}  // namespace

void CheckCommOps(const RoleFacts& facts, Findings& findings) {
  for (const TrainerFacts& trainer : facts.trainers) CommOpRules(facts, trainer, findings).Run();
}

}  // namespace penstock::check
