// A trainer reads only written variables, sends final values, and keeps what it receives. In startup programs
// no variable has a value before an op writes it.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// The first and last positions in block 0 that write each variable, and the slot of the last.
struct Written {
  int first = 0;
  int last = 0;
  const Slot* slot = nullptr;
};
using Writers = ViewMap<Written>;

Writers WritersOf(const Program& program) {
  Writers writers;
  writers.reserve(program.main().vars().size());
  const auto& entries = program.main().ops();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const Slot& slot : entries[i].op->outputs()) {
      for (const std::string& name : slot.args) {
        if (name == kEmptyVarName) continue;
        const int position = static_cast<int>(i);
        Written& written = writers.try_emplace(name, Written{.first = position}).first->second;
        written.last = position;
        written.slot = &slot;
      }
    }
  }
  return writers;
}

class OrderRules {
 public:
  OrderRules(const RoleProgram& file, Findings& findings)
      : file_(file), writers_(WritersOf(file.program)), findings_(findings) {}

  // A temporary is written before it is read. One that no op writes is fed.
  void CheckReads() {
    const auto& entries = file_.program.main().ops();
    std::vector<Read> early;
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      for (const Slot& slot : entries[i].op->inputs()) {
        for (const std::string& name : slot.args) {
          const auto it = writers_.find(name);
          const int at = static_cast<int>(i);
          if (it == writers_.end() || it->second.first <= at) continue;
          early.push_back({at, it->second.first});
          names.push_back(name);
        }
      }
    }
    std::vector<const Var*> vars(names.size());
    file_.program.FindVars(0, names, vars);
    for (std::size_t i = 0; i < vars.size(); ++i) {
      if (vars[i] != nullptr && !vars[i]->persistable) ReportEarly(*vars[i], early[i]);
    }
  }

  // No variable has a value before a startup program. A send to a communicator passes a name, not a value.
  void CheckStartReads() {
    ViewSet given;
    const auto& entries = file_.program.main().ops();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Op& op = *entries[i].op;
      for (const Slot& slot : op.inputs()) {
        for (const std::string& name : slot.args) {
          if (!given.contains(name) && op.type() != "send") CheckGiven(name, static_cast<int>(i));
        }
      }
      for (const Slot& slot : op.outputs()) given.insert(slot.args.begin(), slot.args.end());
    }
  }

  // The whole gradient, and then each piece, is final when it is cut and sent.
  void CheckSend(const Transfer& send) {
    if (send.counts_steps) return;
    const int at = send.cut_op != nullptr ? send.cut_position : send.position;
    CheckFinal(send, send.whole, at);
    for (const Piece& piece : send.pieces) {
      if (send.cut_op != nullptr) CheckFinal(send, piece.local, send.position);
    }
  }

  // The next step, or the first one, reads received values unchanged.
  void CheckRecv(const Transfer& recv) {
    const int at = recv.cut_op != nullptr ? recv.cut_position : recv.position;
    CheckStays(recv, recv.whole, at);
    for (const Piece& piece : recv.pieces) {
      if (recv.cut_op != nullptr) CheckStays(recv, piece.local, recv.position);
    }
  }

 private:
  struct Read {
    int position, written;  // of the ops
  };

  const Op& OpAt(int position) const {
    return *file_.program.main().ops()[static_cast<std::size_t>(position)].op;
  }

  // Queues, ids and control variables have no value.
  void CheckGiven(const std::string& name, int position) {
    const Var* var = file_.program.main().FindVar(name);
    if (var == nullptr || !var->type) return;
    const auto it = writers_.find(name);
    const bool later = it != writers_.end() && it->second.last > position;
    findings_.Error(
        later ? "E-check-order" : "E-check-no-start", file_,
        StrCat(OpAt(position).type(), " reads ", name,
               later ? ", which gets its initial value only later" : ", which gets no initial value"),
        &OpAt(position));
  }

  void ReportEarly(const Var& var, const Read& read) {
    findings_.Error("E-check-order", file_,
                    StrCat(OpAt(read.position).type(), " reads ", var.name,
                           ", which is written only later, by ", OpAt(read.written).type()),
                    &OpAt(read.position));
  }

  void CheckFinal(const Transfer& send, std::string_view name, int at) {
    const auto it = writers_.find(name);
    if (it == writers_.end()) {
      findings_.Error("E-check-not-computed", file_,
                      StrCat("sends ", name, ", which no op of this program computes"), send.op);
    } else if (it->second.last > at) {
      findings_.Error("E-check-order", file_,
                      StrCat("sends ", name, " before ", OpAt(it->second.last).type(), " has written it"),
                      send.op);
      findings_.Detail(StrCat("written by ", PrintOp(OpAt(it->second.last))));
    }
  }

  void CheckStays(const Transfer& recv, std::string_view name, int at) {
    const auto it = writers_.find(name);
    if (it == writers_.end() || it->second.last <= at) return;
    const Op& writer = OpAt(it->second.last);
    // The outputs of a fetch_barrier are the variables that it completes.
    if (writer.type() == "fetch_barrier" && it->second.slot->name == "Out") return;
    findings_.Error("E-check-order", file_,
                    StrCat("receives ", name, ", but ", writer.type(), " overwrites it afterwards"), recv.op);
    findings_.Detail(StrCat("overwritten by ", PrintOp(writer)));
  }

  const RoleProgram& file_;
  Writers writers_;
  Findings& findings_;
};

}  // namespace

void CheckOrder(const RoleFacts& facts, Findings& findings) {
  for (const TrainerFacts& trainer : facts.trainers) {
    OrderRules main(*trainer.file, findings);
    main.CheckReads();
    for (const Transfer& send : trainer.sends) main.CheckSend(send);
    for (const Transfer& recv : trainer.recvs) main.CheckRecv(recv);
    if (trainer.startup == nullptr) continue;
    OrderRules startup(*trainer.startup, findings);
    startup.CheckStartReads();
    for (const Transfer& recv : trainer.startup_recvs) startup.CheckRecv(recv);
  }
  for (const PserverFacts& pserver : facts.pservers) {
    if (pserver.startup != nullptr) OrderRules(*pserver.startup, findings).CheckStartReads();
  }
}

}  // namespace penstock::check
