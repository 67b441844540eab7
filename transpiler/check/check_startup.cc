// What a role reads before it writes has a start value of the right shape.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts.h"

namespace penstock {
namespace {

constexpr int kGeo = 3;

class StartupRules {
 public:
  StartupRules(const RoleFacts& facts, std::vector<Finding>& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const PserverFacts& pserver : facts_.pservers) {
      if (pserver.startup == nullptr) continue;
      const std::set<std::string> arriving(pserver.received.begin(), pserver.received.end());
      CheckStarted(*pserver.file, *pserver.startup_file, arriving);
    }
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (trainer.startup == nullptr) continue;
      CheckStarted(*trainer.file, *trainer.startup_file, {});
      CheckFetchedAtStart(trainer);
    }
  }

 private:
  void Error(std::string id, const RoleProgram& file, std::string message, const Op* op) {
    findings_.push_back(MakeFinding(Severity::kError, std::move(id), file, std::move(message), op));
  }

  // Persistable variables of block 0 whose first mention, blocks in order, is a read; with the op that reads.
  static std::map<std::string, const Op*> ReadBeforeWritten(const Program& program,
                                                            const std::set<std::string>& arriving) {
    std::map<std::string, const Op*> read;
    std::set<std::string> written(arriving);
    // Block 0 of a server only serves: its other blocks come in between.
    for (int b = 0; b < program.block_count(); ++b) {
      for (const OpEntry& entry : program.block(b).ops()) {
        for (const std::string& name : entry.op->InputNames()) {
          if (written.contains(name)) continue;
          const Var* var = program.main().FindVar(name);
          if (var != nullptr && var->persistable && var->type) read.emplace(name, entry.op.get());
        }
        for (const std::string& name : entry.op->OutputNames()) written.insert(name);
      }
    }
    return read;
  }

  void CheckStarted(const RoleProgram& main, const RoleProgram& startup,
                    const std::set<std::string>& arriving) {
    std::map<std::string, const Op*> writers;
    for (const OpEntry& entry : startup.program.main().ops()) {
      for (const std::string& name : entry.op->OutputNames()) writers[name] = entry.op.get();
    }
    for (const auto& [name, reader] : ReadBeforeWritten(main.program, arriving)) {
      const auto writer = writers.find(name);
      if (writer == writers.end()) {
        Error("E-check-no-start", startup,
              StrCat("gives no value to ", name, ", which ", main.file, " reads"), reader);
        continue;
      }
      CheckShape(main, startup, name, *writer->second);
    }
  }

  void CheckShape(const RoleProgram& main, const RoleProgram& startup, const std::string& name,
                  const Op& writer) {
    const Var* wanted = main.program.main().FindVar(name);
    const Var* given = startup.program.main().FindVar(name);
    if (given != nullptr && given->type && !Compatible(given->shape(), wanted->shape())) {
      Error("E-check-start-shape", startup,
            StrCat(name, " starts as ", PrintVarType(*given), ", but ", main.file, " declares ",
                   PrintVarType(*wanted)),
            &writer);
      return;
    }
    std::optional<Shape> filled;
    if (const auto* longs = writer.Get<std::vector<std::int64_t>>("shape")) filled = Shape(*longs);
    if (const auto* ints = writer.Get<std::vector<std::int32_t>>("shape")) {
      filled = Shape(std::vector<Dim>(ints->begin(), ints->end()));
    }
    if (!filled || filled->Count() == wanted->shape().Count()) return;
    Error("E-check-start-shape", startup,
          StrCat(name, " is filled with shape ", *filled, ", but ", main.file, " declares ",
                 PrintVarType(*wanted)),
          &writer);
  }

  // What is fetched each step is fetched at the start too: otherwise the first step runs on values of its
  // own.
  void CheckFetchedAtStart(const TrainerFacts& trainer) {
    for (const Message& message : trainer.recvs) {
      const PserverFacts* pserver = facts_.FindPserver(message.pserver);
      if (pserver == nullptr || pserver->mode == kGeo) continue;
      const auto& starts = trainer.startup_recvs;
      const bool fetched = std::any_of(starts.begin(), starts.end(), [&](const Message& start) {
        return start.remote == message.remote && start.pserver == message.pserver &&
               start.local == message.local;
      });
      if (fetched) continue;
      Error("E-check-start-recv", *trainer.startup_file,
            StrCat("does not receive ", message.remote, " from ", message.pserver,
                   "; the first step would not start ", "from the pserver's value"),
            message.op);
    }
  }

  const RoleFacts& facts_;
  std::vector<Finding>& findings_;
};

}  // namespace

void CheckStartup(const RoleFacts& facts, std::vector<Finding>& findings) {
  StartupRules(facts, findings).Run();
}

}  // namespace penstock
