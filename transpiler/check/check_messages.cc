// Every message has one sender and one receiver that agree on its name, kind, element type and shape.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts.h"

namespace penstock {
namespace {

class MessageRules {
 public:
  MessageRules(const RoleFacts& facts, std::vector<Finding>& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      CheckSends(trainer);
      CheckReceives(trainer.recvs, *trainer.file);
      if (trainer.startup_file != nullptr) CheckReceives(trainer.startup_recvs, *trainer.startup_file);
      CheckAllPiecesFetched(trainer);
    }
    for (const PserverFacts& pserver : facts_.pservers) CheckAllSent(pserver);
  }

 private:
  void Error(std::string id, const RoleProgram& file, std::string message, const Op* op) {
    findings_.push_back(MakeFinding(Severity::kError, std::move(id), file, std::move(message), op));
  }

  // The pserver a message names; a finding and null if the set has none of that address.
  const PserverFacts* ServerOf(const Message& message, const RoleProgram& file, std::string_view verb) {
    const PserverFacts* pserver = facts_.FindPserver(message.pserver);
    if (pserver == nullptr) {
      Error("E-check-address", file,
            StrCat(verb, " ", message.remote, message.pserver.empty() ? " without an address" : " at ",
                   message.pserver, ", but no pserver of the set has that address"),
            message.op);
    }
    return pserver;
  }

  void CompareTypes(const Message& message, const RoleProgram& file, const PserverFacts& pserver) {
    const Var* here = file.program.FindVar(0, message.local);
    const Var* there = pserver.file->program.FindVar(0, message.remote);
    if (here == nullptr || there == nullptr || !here->type || !there->type) return;
    const bool same_shape = Compatible(here->shape(), there->shape());
    if (here->kind == there->kind && here->type->dtype == there->type->dtype && same_shape) return;
    Error("E-check-message-type", file,
          StrCat(message.local, " is ", PrintVarType(*here), " here, but ", message.remote, " is ",
                 PrintVarType(*there), " in ", pserver.file->file),
          message.op);
  }

  void CheckSends(const TrainerFacts& trainer) {
    std::set<std::pair<std::string, std::string>> sent;
    for (const Message& message : trainer.sends) {
      const PserverFacts* pserver = ServerOf(message, *trainer.file, "sends");
      if (pserver == nullptr) continue;
      if (!sent.emplace(message.pserver, message.remote).second) {
        Error("E-check-sent-twice", *trainer.file,
              StrCat("sends ", message.remote, " to ", message.pserver, " twice in one step"), message.op);
        continue;
      }
      const auto& received = pserver->received;
      if (std::find(received.begin(), received.end(), message.remote) == received.end()) {
        Error("E-check-not-received", *trainer.file,
              StrCat("sends ", message.remote, " to ", message.pserver, ", which does not receive it"),
              message.op);
        continue;
      }
      CompareTypes(message, *trainer.file, *pserver);
    }
  }

  void CheckReceives(const std::vector<Message>& recvs, const RoleProgram& file) {
    for (const Message& message : recvs) {
      const PserverFacts* pserver = ServerOf(message, file, "receives");
      if (pserver == nullptr) continue;
      const Var* var = pserver->file->program.FindVar(0, message.remote);
      if (var == nullptr || !var->persistable) {
        Error(
            "E-check-unknown-piece", file,
            StrCat("receives ", message.remote, " from ", message.pserver, ", which holds no such variable"),
            message.op);
        continue;
      }
      CompareTypes(message, file, *pserver);
    }
  }

  // What a server updates, every trainer fetches; but rows of a sparse table are fetched by lookups.
  void CheckAllPiecesFetched(const TrainerFacts& trainer) {
    std::set<std::pair<std::string, std::string>> fetched(trainer.prefetched);
    for (const Message& message : trainer.recvs) fetched.emplace(message.pserver, message.remote);
    for (const PserverFacts& pserver : facts_.pservers) {
      for (const UpdateBlock& update : pserver.updates) {
        if (update.param.empty() || fetched.contains({pserver.address, update.param})) continue;
        if (IsRemoteTable(trainer, pserver, update)) continue;
        Error("E-check-not-fetched", *trainer.file,
              StrCat("never receives ", update.param, ", which ", pserver.address, " updates each step"),
              update.optimizer);
      }
    }
  }

  // A table that an op reads from the servers by itself: its gradient's sender says which parameter it is.
  static bool IsRemoteTable(const TrainerFacts& trainer, const PserverFacts& pserver,
                            const UpdateBlock& update) {
    for (const Message& message : trainer.sends) {
      if (message.pserver != pserver.address || !trainer.remote_tables.contains(message.param)) continue;
      const auto& inputs = update.merge_inputs;
      if (std::find(inputs.begin(), inputs.end(), message.remote) != inputs.end() ||
          message.remote == update.grad) {
        return true;
      }
    }
    return false;
  }

  bool IsSent(const TrainerFacts& trainer, const PserverFacts& pserver, const std::string& name) const {
    return std::any_of(trainer.sends.begin(), trainer.sends.end(), [&](const Message& message) {
      return message.pserver == pserver.address && message.remote == name;
    });
  }

  // What a server merges from trainer t must be sent by trainer t, where its program is at hand.
  void CheckAllSent(const PserverFacts& pserver) {
    for (const UpdateBlock& update : pserver.updates) {
      for (std::size_t t = 0; t < update.merge_inputs.size(); ++t) {
        for (const TrainerFacts& trainer : facts_.trainers) {
          if (trainer.trainer_id != static_cast<int>(t)) continue;
          if (IsSent(trainer, pserver, update.merge_inputs[t])) continue;
          Error("E-check-not-sent", *pserver.file,
                StrCat("waits for ", update.merge_inputs[t], " of trainer ", t, ", which ",
                       trainer.file->file, " never sends to ", pserver.address),
                update.merge);
        }
      }
    }
  }

  const RoleFacts& facts_;
  std::vector<Finding>& findings_;
};

}  // namespace

void CheckMessages(const RoleFacts& facts, std::vector<Finding>& findings) {
  MessageRules(facts, findings).Run();
}

}  // namespace penstock
