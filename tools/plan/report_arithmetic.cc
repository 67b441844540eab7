// The derivation of the expected times from the counts, so that a reader can verify them: each line is
// "label  = formula = result", and a formula contains only numbers from lines above it or from the tables.
#include <algorithm>

#include "framework/base/strings.h"
#include "tools/plan/numbers.h"
#include "tools/plan/report.h"

namespace penstock::tools {
namespace {

std::string Ms(double ms) { return Fixed(ms, 3); }

class Arithmetic {
 public:
  explicit Arithmetic(const JobReport& report)
      : report_(report), network_(*report.question.network), expected_(*report.expectation) {}

  std::string Write() {
    Line("bytes a link carries in a ms", StrCat(Plain(network_.bits_per_second), " / 8 / 1000"),
         Plain(BytesPerMs()));
    if (expected_.hiding == cost::Hiding::kBackward) {
      Line("backward pass, ms", StrCat(Plain(network_.step_ms), " x 2 / 3"), Ms(expected_.backward_ms));
    }
    report_.job.pservers.empty() ? Ring() : PushAndPull();
    Step();
    return StrCat("\ntimes at ", Plain(network_.bits_per_second), " bit/s each way, ",
                  Plain(network_.step_ms), " ms for a step of one trainer alone, ",
                  Plain(network_.message_us), " us for a message\n", Aligned());
  }

 private:
  double BytesPerMs() const { return network_.bits_per_second / 8 / 1000; }

  void Line(std::string what, std::string formula, std::string result) {
    lines_.push_back({std::move(what), std::move(formula), std::move(result)});
  }

  std::string Aligned() const {
    std::size_t width = 0;
    for (const auto& line : lines_) width = std::max(width, line[0].size());
    std::string out;
    for (const auto& line : lines_) {
      out += StrCat("  ", line[0], std::string(width - line[0].size(), ' '), "  = ", line[1], " = ", line[2],
                    "\n");
    }
    return out;
  }

  void Link(const std::string& what, const cost::Volume& volume, double ms) {
    Line(StrCat(what, ", ms"),
         StrCat(Grouped(volume.bytes), " / ", Plain(BytesPerMs()), " + ", Grouped(volume.messages), " x ",
                Plain(network_.message_us), " / 1000"),
         Ms(ms));
  }

  // The time of one end of the push; `who` owns the link.
  void Push(std::string_view what, const std::string& who, const cost::LinkEnd& end) {
    Link(StrCat(what, " at ", who, " while backward goes on"), end.overlaps, end.overlaps_ms);
    Link(StrCat(what, " at ", who, ", the rest"), end.others, end.others_ms);
    const std::string sum = expected_.hiding == cost::Hiding::kBackward
                                ? StrCat("max(0, ", Ms(end.overlaps_ms), " - ", Ms(expected_.backward_ms),
                                         ") + ", Ms(end.others_ms))
                                : StrCat(Ms(end.overlaps_ms), " + ", Ms(end.others_ms));
    Line(StrCat(what, " at ", who, expected_.hiding == cost::Hiding::kBackward ? ", not hidden, ms" : ", ms"),
         sum, Ms(end.exposed_ms));
  }

  static std::string Trainer(const cost::LinkEnd& end) { return StrCat("trainer ", end.index); }
  static std::string Pserver(const cost::LinkEnd& end) { return StrCat("pserver ", end.index); }

  void PushAndPull() {
    Push("push", Trainer(expected_.push_trainer), expected_.push_trainer);
    if (expected_.together) Push("push", Pserver(expected_.push_pserver), expected_.push_pserver);
    Link(StrCat("pull at ", Trainer(expected_.pull_trainer)), expected_.pull_trainer.others,
         expected_.pull_trainer.others_ms);
    if (!expected_.together) return Floor();
    Link(StrCat("pull at ", Pserver(expected_.pull_pserver)), expected_.pull_pserver.others,
         expected_.pull_pserver.others_ms);
    Slower("push, ms", expected_.push_trainer, expected_.push_pserver, expected_.exposed_push_ms);
    if (expected_.exposed_told_ms > 0) Telling();
    Slower("pull, ms", expected_.pull_trainer, expected_.pull_pserver, expected_.exposed_pull_ms);
  }

  void Slower(const std::string& what, const cost::LinkEnd& a, const cost::LinkEnd& b, double ms) {
    Line(what, StrCat("max(", Ms(a.exposed_ms), ", ", Ms(b.exposed_ms), ")"), Ms(ms));
  }

  // Messages between pservers, after the push and before the pull.
  void Telling() {
    const cost::PserverCost& busiest =
        report_.cost.pservers[static_cast<std::size_t>(expected_.telling_pserver)];
    const std::string who = StrCat("pserver ", expected_.telling_pserver);
    Link(StrCat(who, " tells the others"), busiest.told, expected_.told_ms);
    Link(StrCat(who, " hears the others"), busiest.heard, expected_.heard_ms);
    Line("telling each other, ms", StrCat("max(", Ms(expected_.told_ms), ", ", Ms(expected_.heard_ms), ")"),
         Ms(expected_.exposed_told_ms));
  }

  // The bandwidth of the busiest pserver's link limits the steps of all trainers.
  void Floor() {
    const cost::Traffic& busiest =
        report_.cost.pservers[static_cast<std::size_t>(expected_.busiest_pserver)].traffic;
    const std::string who = StrCat("pserver ", expected_.busiest_pserver);
    const double up = cost::LinkMs(busiest.up, network_), down = cost::LinkMs(busiest.down, network_);
    Link(StrCat("up to ", who, " from all trainers"), busiest.up, up);
    Link(StrCat("down from ", who, " to all trainers"), busiest.down, down);
    Line(StrCat(who, " for a step of every trainer, ms"),
         PerStep(StrCat("max(", Ms(up), ", ", Ms(down), ")")), Ms(expected_.pserver_ms));
  }

  void Ring() { Push("ring", StrCat("rank ", expected_.push_trainer.index), expected_.push_trainer); }

  std::string PerStep(const std::string& formula) const {
    const int steps = report_.cost.steps_per_exchange;
    return steps == 1 ? formula : StrCat(formula, " / ", steps);
  }

  void Step() {
    const std::string push = Ms(expected_.exposed_push_ms), pull = Ms(expected_.exposed_pull_ms);
    const std::string alone = Plain(network_.step_ms);
    if (expected_.hiding == cost::Hiding::kEverything) {
      Line("a trainer's step, ms", StrCat("max(", alone, ", ", PerStep(push), ", ", PerStep(pull), ")"),
           Ms(expected_.trainer_ms));
    } else if (report_.job.pservers.empty()) {
      Line("a trainer's step, ms", StrCat(alone, " + ", PerStep(push)), Ms(expected_.trainer_ms));
    } else {
      const std::string told =
          expected_.exposed_told_ms > 0 ? StrCat(" + ", Ms(expected_.exposed_told_ms)) : "";
      Line("a trainer's step, ms", StrCat(alone, " + ", PerStep(push), told, " + ", PerStep(pull)),
           Ms(expected_.trainer_ms));
    }
    if (!expected_.together) {
      Line("step, ms", StrCat("max(", Ms(expected_.trainer_ms), ", ", Ms(expected_.pserver_ms), ")"),
           Ms(expected_.step_ms));
    }
    Line("exposed communication, ms a step", StrCat(Ms(expected_.step_ms), " - ", alone),
         Ms(expected_.exposed_ms));
    Line("efficiency", StrCat(alone, " / ", Ms(expected_.step_ms)), Fixed(expected_.efficiency, 3));
    Line("speed-up over one machine", StrCat(report_.job.trainers, " x ", Fixed(expected_.efficiency, 3)),
         Fixed(expected_.speedup, 2));
  }

  const JobReport& report_;
  const cost::Network& network_;
  const cost::Expectation& expected_;
  std::vector<std::vector<std::string>> lines_;
};

// Selects powers of two, and the numbers around the chosen, the best and the given number.
bool IsShown(int pservers, const cost::PserverAdvice& advice, int given) {
  const auto near = [pservers](int n) { return pservers >= n - 1 && pservers <= n + 1; };
  return (pservers & (pservers - 1)) == 0 || near(advice.chosen) || pservers == advice.best ||
         pservers == given;
}

}  // namespace

std::string ReportAdvice(const JobReport& report) {
  const cost::PserverAdvice& advice = report.advice;
  if (advice.tried.empty()) return "";
  const int given = static_cast<int>(report.job.pservers.size());
  TextTable table({"pservers", "imbalance", "most bytes up", "most bytes down", "step, ms", "efficiency"}, 0);
  double best = 0, chosen = 0;
  for (const cost::PserverChoice& choice : advice.tried) {
    if (choice.pservers == advice.best) best = choice.step_ms;
    if (choice.pservers == advice.chosen) chosen = choice.step_ms;
    if (!IsShown(choice.pservers, advice, given)) continue;
    table.Add({StrCat(choice.pservers), Fixed(choice.parameters.factor, 2), Grouped(choice.busiest_up.bytes),
               Grouped(choice.busiest_down.bytes), Ms(choice.step_ms), Fixed(choice.efficiency, 3)});
  }
  std::string out = StrCat("\nthe same with other numbers of pservers; most bytes are those of the busiest\n",
                           table.ToString(), "  chosen: ", advice.chosen, ", the fewest whose step of ",
                           Ms(chosen), " ms is at most ", cost::kStepTolerance, " x ", Ms(best),
                           " ms, the best, of ", advice.best, "\n");
  if (!advice.as_given) {
    out += StrCat("  the ", given,
                  " given pservers hold other pieces than this table's, which is cut and placed by ",
                  "default\n");
  }
  return out;
}

std::string ReportArithmetic(const JobReport& report) {
  return report.expectation ? Arithmetic(report).Write() : std::string();
}

}  // namespace penstock::tools
