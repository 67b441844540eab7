// Schedules that messages advance: the initial values of the trainers' counters sum to the initial step on
// one machine, and each message adds what a step on one machine adds.
#include <algorithm>
#include <charconv>
#include <span>

#include "framework/ir/mentions.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

// The number with which an op without inputs fills its output; nullopt if it is not a single number.
std::optional<double> FilledBy(const Op& op) {
  const bool fills = op.FindAttr("value") != nullptr || op.FindAttr("str_value") != nullptr;
  if (!fills || !op.InputNames().empty()) return std::nullopt;
  const std::string text = op.GetOr<std::string>("str_value", "");
  if (text.empty()) return op.GetOr<float>("value", 0.0f);
  double exact = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(exact) : std::nullopt;
}

std::optional<double> StartOf(const Program& startup, std::string_view var) {
  std::optional<double> start;
  for (const OpEntry& entry : startup.main().ops()) {
    if (Writes(*entry.op, var)) start = FilledBy(*entry.op);
  }
  return start;
}

// Compares in single precision, in which programs store these numbers.
bool Same(double a, double b) { return static_cast<float>(a) == static_cast<float>(b); }

// The amount that an op adds to the only variable that it reads and writes.
std::optional<double> AddedBy(const Op& op, const std::string& counter) {
  if (op.InputNames() != std::vector{counter} || op.OutputNames() != std::vector{counter})
    return std::nullopt;
  if (const auto* step = op.Get<float>("step")) return *step;
  const auto* bias = op.Get<float>("bias");
  const bool adds = bias != nullptr && *bias != 0.0f && op.GetOr<float>("scale", 1.0f) == 1.0f;
  return adds ? std::optional<double>(*bias) : std::nullopt;
}

class CounterRules {
 public:
  CounterRules(const RoleFacts& facts, const SourcePrograms* source, Findings& findings)
      : facts_(facts), source_(source), findings_(findings) {}

  void Run() {
    for (const PserverFacts& pserver : facts_.pservers) {
      const bool schedule = pserver.lr_block > 0 && pserver.lr_block < pserver.file->program.block_count();
      if (!schedule) continue;
      if (!pserver.counters.empty()) {
        CheckPserver(pserver);
      } else if (source_ != nullptr && pserver.mode != ServeMode::kSync) {
        CheckTold(pserver);
      }
    }
  }

 private:
  // The counter of the source's schedule is computed here, but not from the trainers' reports.
  void CheckTold(const PserverFacts& pserver) {
    for (const OpEntry& entry : source_->main.main().ops()) {
      const auto counted = entry.op->OutputNames();
      if (!Has(entry.op->role(), OpRole::kLrSched) || counted.size() != 1 ||
          !AddedBy(*entry.op, counted.front()))
        continue;
      for (const OpEntry& own : pserver.file->program.block(pserver.lr_block).ops()) {
        if (own.op->OutputNames() != counted || AddedBy(*own.op, counted.front())) continue;
        findings_.Error("E-check-not-sent", *pserver.file,
                        StrCat("computes ", counted.front(), ", which counts steps, but no trainer tells ",
                               pserver.address, " of one"),
                        own.op.get());
      }
    }
  }

  void CheckPserver(const PserverFacts& pserver) {
    for (const OpEntry& entry : pserver.file->program.block(pserver.lr_block).ops()) {
      const auto& counted = entry.op->Input("X");
      const bool sums =
          !counted.empty() && std::all_of(counted.begin(), counted.end(),
                                          [&](const auto& name) { return pserver.counters.contains(name); });
      if (!sums || entry.op->OutputNames().size() != 1) continue;
      const std::string counter = entry.op->OutputNames().front();
      if (static_cast<int>(counted.size()) != pserver.trainers) {
        findings_.Error(
            "E-check-trainers", *pserver.file,
            StrCat("counts the steps of ", counted.size(), " trainers, but serves ", pserver.trainers),
            entry.op.get());
      }
      const std::set<std::string_view> distinct(counted.begin(), counted.end());
      if (distinct.size() != counted.size() || distinct.contains(counter)) {
        findings_.Error(
            "E-check-not-sent", *pserver.file,
            StrCat("makes ", counter, " of ", Join(counted, ", "), "; it must be each trainer's once"),
            entry.op.get());
      }
      ReadSource(counter);
      for (const TrainerFacts& trainer : facts_.trainers) CheckTrainer(trainer, pserver, counted, counter);
      if (pserver.startup != nullptr) CheckBegin(pserver, counted, counter);
    }
  }

  void ReadSource(const std::string& counter) {
    begin_ = step_ = std::nullopt;
    if (source_ == nullptr) return;
    for (const OpEntry& entry : source_->main.main().ops()) {
      if (!step_) step_ = AddedBy(*entry.op, counter);
    }
    begin_ = StartOf(source_->startup, counter);
  }

  // A trainer's own counter never changes: its value is what each message adds.
  void CheckTrainer(const TrainerFacts& trainer, const PserverFacts& pserver,
                    std::span<const std::string> counted, const std::string& counter) {
    if (trainer.startup == nullptr) return;
    for (const Transfer& send : trainer.sends) {
      const bool tells =
          send.counts_steps && std::any_of(send.pieces.begin(), send.pieces.end(), [&](auto& p) {
            return p.pserver == pserver.address &&
                   std::find(counted.begin(), counted.end(), p.remote) != counted.end();
          });
      if (!tells) continue;
      const std::optional<double> added = StartOf(trainer.startup->program, send.whole);
      if (!added || !told_.emplace(&trainer, counter).second) continue;
      const auto [known, fresh] = added_.emplace(counter, std::pair(&trainer, *added));
      if (step_ && !Same(*added, *step_)) {
        findings_.Error("E-check-start-differs", *trainer.startup,
                        StrCat("adds ", *added, " to ", counter, " each step; the source adds ", *step_));
      } else if (!fresh && !Same(known->second.second, *added)) {
        findings_.Error("E-check-start-differs", *trainer.startup,
                        StrCat("adds ", *added, " to ", counter, " each step; ",
                               known->second.first->startup->file, " adds ", known->second.second));
      }
    }
  }

  void CheckBegin(const PserverFacts& pserver, std::span<const std::string> counted,
                  const std::string& counter) {
    double sum = 0.0;
    for (const std::string& name : counted) {
      const std::optional<double> start = StartOf(pserver.startup->program, name);
      if (!start) return;  // another rule reports it
      sum += *start;
    }
    if (!begin_ || !step_ || Same(sum, *begin_ + *step_)) return;
    const std::string differs =
        StrCat(counter, " is ", sum, " at the first step; in the source it is ", *begin_ + *step_);
    // Fluid starts each trainer's counter at one step, which stays ahead of the source by a constant.
    if (Same(sum, *step_ * static_cast<double>(counted.size()))) {
      findings_.Warning("W-check-schedule-ahead", *pserver.startup, differs);
    } else {
      findings_.Error("E-check-start-differs", *pserver.startup, differs);
    }
  }

  const RoleFacts& facts_;
  const SourcePrograms* source_;
  Findings& findings_;
  std::optional<double> begin_, step_;  // the source's counter: initial value, increment per step
  std::set<std::pair<const TrainerFacts*, std::string>> told_;           // already checked
  std::map<std::string, std::pair<const TrainerFacts*, double>> added_;  // by the first trainer, by counter
};

}  // namespace

void CheckStepCounters(const RoleFacts& facts, const SourcePrograms* source, Findings& findings) {
  CounterRules(facts, source, findings).Run();
}

}  // namespace penstock::check
