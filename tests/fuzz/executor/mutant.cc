#include "tests/fuzz/executor/mutant.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "executor/schedule/executor.h"
#include "framework/ir/block_uses.h"
#include "framework/text/parser.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/fuzz/executor/mutate.h"
#include "tests/fuzz/executor/values.h"

namespace penstock::fuzz {
namespace {

using namespace std::chrono_literals;

// Cancels long runs, because a mutated loop may be infinite.
class Watchdog {
 public:
  explicit Watchdog(exec::Executor& executor) : thread_([this, &executor] { Watch(executor); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch(exec::Executor& executor) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, 1s, [this] { return done_; })) executor.Cancel();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

// The variables that ops of block 0 read before an op writes them.
std::set<std::string> Needed(const Program& program) {
  std::set<std::string> needed, written;
  for (const OpEntry& entry : program.main().ops()) {
    for (const std::string& name : entry.op->InputNames()) {
      if (!written.contains(name)) needed.insert(name);
    }
    for (const std::string& name : entry.op->OutputNames()) written.insert(name);
  }
  return needed;
}

Tensor KnownOrAny(Draw& draw, const Mutant& mutant, const Var& var, Dim batch, int odd) {
  const auto known = mutant.values.find(var.name);
  if (known == mutant.values.end()) return TensorFor(draw, var, batch, odd);
  return odd > 0 && draw.OneIn(odd) ? Changed(draw, known->second) : known->second;
}

void FillScope(Draw& draw, const Mutant& mutant, Scope& scope, int odd) {
  for (const VarRef& var : mutant.main.main().vars()) {
    const bool there = scope.FindLocal(var->name) != nullptr;
    if (!var->persistable || (there && !draw.OneIn(odd > 0 ? odd : 1000000))) continue;
    if (odd > 0 && draw.OneIn(2 * odd)) continue;
    Variable value = ValueFor(draw, *var, 2, odd);
    if (var->kind == VarKind::kTensor && value.Is<Tensor>())
      value.As<Tensor>() = KnownOrAny(draw, mutant, *var, 2, odd);
    *scope.FindOrCreate(var->name) = std::move(value);
  }
}

std::vector<exec::Feed> Feeds(Draw& draw, const Mutant& mutant, Scope& scope, int odd) {
  std::vector<exec::Feed> feeds;
  const std::set<std::string> needed = Needed(mutant.main);
  const Dim batch = draw.Between(1, 4);
  for (const VarRef& var : mutant.main.main().vars()) {
    const bool data = var->facts.is_data || var->need_check_feed || needed.contains(var->name);
    if (var->persistable || !data || (odd > 0 && draw.OneIn(3 * odd))) continue;
    if (var->kind != VarKind::kTensor || (odd > 0 && draw.OneIn(3 * odd))) {
      *scope.FindOrCreate(var->name) = ValueFor(draw, *var, batch, odd);
    } else if (var->type) {
      feeds.push_back({var->name, KnownOrAny(draw, mutant, *var, batch, odd)});
    }
  }
  return feeds;
}

std::vector<std::string> Fetches(Draw& draw, const Program& program) {
  std::vector<std::string> fetches;
  const std::vector<VarRef>& vars = program.main().vars();
  for (int n = draw.Below(4); n > 0 && !vars.empty(); --n)
    fetches.push_back(vars[static_cast<std::size_t>(draw.Below(static_cast<int>(vars.size())))]->name);
  return fetches;
}

Program Parsed(const Program& otherwise, const std::string& text) {
  Result<Program> program = ParseText(text, "mutant");
  return program.ok() ? *std::move(program) : otherwise;
}

}  // namespace

Mutant MakeMutant(const std::vector<Subject>& subjects, std::uint64_t number) {
  Draw draw(number * 2654435761u + 17);
  const Subject& subject = draw.Of(subjects);
  const Subject& donor = draw.Of(subjects);
  Draft draft = DraftOf(subject.main);
  const Draft theirs = DraftOf(donor.main);
  for (int n = draw.OneIn(8) ? 0 : draw.Between(1, draw.OneIn(4) ? 8 : 3); n > 0; --n)
    Mutate(draft, theirs, draw);
  Mutant mutant = {subject.name, subject.startup, Program(), subject.values};
  for (const auto& [name, value] : donor.values) mutant.values.emplace(name, value);
  // As text, as users write programs.
  std::string text = PrintProgram(ProgramOf(draft));
  mutant.main = Parsed(subject.main, text);
  if (draw.OneIn(3)) {
    for (int n = draw.Between(1, 3); n > 0; --n) text = MutatedText(text, draw);
    mutant.main = Parsed(mutant.main, text);
  }
  return mutant;
}

RunCounts RunMutant(const Mutant& mutant, std::uint64_t number) {
  Draw draw(number ^ 0x5DEECE66Du);
  exec::Executor executor(AllOps(), {.threads = draw.OneIn(4) ? 2 : 1});
  const Watchdog watchdog(executor);
  Scope scope;
  (void)executor.Run(mutant.startup, scope, {}, {});
  const int odd = draw.OneIn(2) ? 0 : draw.Between(3, 20);
  FillScope(draw, mutant, scope, odd);
  RunCounts counts;
  std::vector<std::vector<Variable>> kept;  // like a caller that reads the results later
  for (int run = draw.Between(2, 4); run > 0; --run) {
    const std::vector<exec::Feed> feeds = Feeds(draw, mutant, scope, odd);
    Result<std::vector<Variable>> out = executor.Run(mutant.main, scope, feeds, Fetches(draw, mutant.main));
    ++counts.runs;
    counts.ok += out.ok();
    if (out.ok() && draw.OneIn(2)) kept.push_back(*std::move(out));
    if (odd > 0 && draw.OneIn(3)) FillScope(draw, mutant, scope, odd);
  }
  return counts;
}

}  // namespace penstock::fuzz
