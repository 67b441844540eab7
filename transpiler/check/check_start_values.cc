// Every slice, every role and the source start a variable alike, shapes aside.
#include <algorithm>
#include <unordered_set>

#include "transpiler/check/composition.h"

namespace penstock {
namespace {

using Starts = std::unique_ptr<Evaluation>;

class StartValueRules {
 public:
  StartValueRules(Composition& set, const SourcePrograms* source, Findings& findings)
      : set_(set), findings_(findings) {
    if (source == nullptr) return;
    source_ = Run(source->startup, nullptr);
  }

  void Run() {
    const auto& trainers = set_.facts.trainers;
    for (const TrainerFacts& trainer : trainers) {
      starts_.push_back(trainer.startup == nullptr ? nullptr : Run(trainer.startup->program, &trainer));
    }
    for (std::size_t t = 0; t < trainers.size(); ++t) CheckTrainer(t);
    NoteWholes();
    for (const PserverFacts& pserver : set_.facts.pservers) CheckPserver(pserver);
  }

 private:
  // Without what comes from the pservers.
  Starts Run(const Program& startup, const TrainerFacts* trainer) {
    auto run = std::make_unique<Evaluation>(startup, set_.ops, set_.table);
    run->IgnoreShapes();
    std::unordered_set<const Op*> joins;
    if (trainer != nullptr) {
      for (const Transfer& recv : trainer->startup_recvs) joins.insert(recv.cut_op);
    }
    for (const OpEntry& entry : startup.main().ops()) {
      if (entry.op->type() == "fake_init") continue;  // a table that is elsewhere
      if (joins.contains(entry.op.get()) || entry.op->type() == "recv") continue;
      run->RunOp(*entry.op);
    }
    return run;
  }

  void Compare(std::string_view name, const Evaluation* reference, std::string_view reference_name,
               ExprId given, const RoleProgram& file) {
    const ExprId* expected = reference == nullptr ? nullptr : reference->Find(name);
    if (expected == nullptr || *expected == given) return;
    findings_.Error("E-check-start-differs", file,
                    StrCat("starts ", name, " otherwise than ", reference_name));
    const auto [left, right] = set_.table.Difference(*expected, given);
    findings_.Detail(StrCat(reference_name, ":  ", left));
    findings_.Detail(StrCat(file.file, ":  ", right));
  }

  void CheckTrainer(std::size_t t) {
    if (starts_[t] == nullptr) return;
    const TrainerFacts& trainer = set_.facts.trainers[t];
    for (const VarRef& var : trainer.startup->program.main().vars()) {
      const ExprId* value = starts_[t]->Find(var->name);
      if (value == nullptr || !var->type || set_.counters.contains(var->name)) continue;
      Compare(var->name, source_.get(), "the source", *value, *trainer.startup);
      if (t > 0 && set_.facts.trainers.front().startup != nullptr) {
        Compare(var->name, starts_.front().get(), set_.facts.trainers.front().startup->file, *value,
                *trainer.startup);
      }
    }
  }

  // What each pserver holds is a piece of which variable.
  void NoteWholes() {
    for (const auto& [param, slices] : set_.slices) {
      for (const UpdatedSlice& slice : slices)
        wholes_.emplace(Place(slice.pserver->address, slice.update->param), param);
    }
    for (const TrainerFacts& trainer : set_.facts.trainers) {
      for (const Transfer& recv : trainer.startup_recvs) {
        for (const Piece& piece : recv.pieces)
          wholes_.emplace(Place(piece.pserver, piece.remote), recv.whole);
      }
    }
  }

  // A slice starts as its whole does: in the source, else in the trainer's program, which Fluid leaves it in.
  void CheckPserver(const PserverFacts& pserver) {
    if (pserver.startup == nullptr) return;
    const Starts start = Run(pserver.startup->program, nullptr);
    for (const VarRef& var : pserver.startup->program.main().vars()) {
      const ExprId* value = start->Find(var->name);
      if (value == nullptr || set_.counters.contains(var->name)) continue;
      const auto piece = wholes_.find({pserver.address, var->name});
      const std::string_view name = piece == wholes_.end() ? std::string_view(var->name) : piece->second;
      if (pserver.counters.contains(var->name)) {
        // Counts what trainers tell: begins otherwise than what they tell (check_step_counters.cc).
      } else if (source_ != nullptr) {
        Compare(name, source_.get(), "the source", *value, *pserver.startup);
      } else if (!starts_.empty() && starts_.front() != nullptr) {
        Compare(name, starts_.front().get(), set_.facts.trainers.front().startup->file, *value,
                *pserver.startup);
      }
      CompareWithOthers(name, *value, pserver);
    }
  }

  // Slices, and the state of slices, start alike on all pservers.
  void CompareWithOthers(std::string_view name, ExprId value, const PserverFacts& pserver) {
    const auto [it, fresh] = known_.emplace(name, std::pair(&pserver, value));
    if (fresh || it->second.second == value) return;
    findings_.Error("E-check-start-differs", *pserver.startup,
                    StrCat("starts ", name, " otherwise than ", it->second.first->startup->file));
    const auto [left, right] = set_.table.Difference(it->second.second, value);
    findings_.Detail(StrCat(it->second.first->startup->file, ":  ", left));
    findings_.Detail(StrCat(pserver.startup->file, ":  ", right));
  }

  Composition& set_;
  Findings& findings_;
  Starts source_;
  std::vector<Starts> starts_;         // of the trainers
  PlaceMap<std::string_view> wholes_;  // of pieces
  ViewMap<std::pair<const PserverFacts*, ExprId>> known_;
};

}  // namespace

void CheckStartValues(Composition& set, const SourcePrograms* source, Findings& findings) {
  StartValueRules(set, source, findings).Run();
}

}  // namespace penstock
