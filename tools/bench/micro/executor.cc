// Measures what the executor adds to kernels: chains of tiny ops ([1, 8] floats, kernels included) in the
// state that a training loop reaches, with hot and with cold caches; and the compilation of long programs:
// time until the first run has ended, and the memory that the compiled program holds.
#include "executor/schedule/executor.h"

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"
#include "tools/peaks/time.h"

namespace penstock::bench {
namespace {

const Shape kTiny = {1, 8};
constexpr int kAddends = 7;  // of a sum, which with its output has 8 operands
constexpr std::size_t kEvictedBytes = std::size_t{64} << 20;
constexpr int kColdRuns = 30;

enum class Mix {
  kEight,         // eight types of ops of two and three operands
  kTwoOperands,   // eight types of ops of one input and one output
  kEightOperands  // sums of seven inputs
};

std::string Step(int i) { return StrCat("h", i); }

Op TinyOp(Mix mix, int i) {
  static constexpr const char* kEight[] = {
      "relu", "elementwise_add", "tanh", "scale", "sigmoid", "elementwise_mul", "elementwise_sub", "square"};
  static constexpr const char* kTwo[] = {"relu", "scale", "tanh", "sigmoid", "square", "abs", "exp", "log"};
  const std::string x = Step(i), out = Step(i + 1);
  if (mix == Mix::kEightOperands) {
    std::vector<std::string> addends = {x};
    for (int k = 1; k < kAddends; ++k) addends.push_back(StrCat("z", k));
    return Op("sum").AddInput("X", addends).AddOutput("Out", {out});
  }
  const std::string type = (mix == Mix::kEight ? kEight : kTwo)[static_cast<std::size_t>(i) % 8];
  Op op(type);
  op.AddInput("X", {x}).AddOutput("Out", {out});
  if (type.starts_with("elementwise")) op.AddInput("Y", {"z1"});
  if (type == "scale") op.Set("scale", 0.5f);
  return op;
}

// A program that reads h0 and z1 to z6 and leaves its result in h<ops>, all of which are in the scope.
class TinyOps {
 public:
  TinyOps(Mix mix, int ops) {
    Block& main = program_.MutableBlock(0);
    for (int i = 0; i <= ops; ++i) {
      Var var = TensorVar(Step(i), DType::kFp32, kTiny);
      var.persistable = i == 0 || i == ops;
      main.SetVar(std::move(var));
    }
    Fill(Step(0), 0.25f);
    for (int k = 1; k < kAddends; ++k) {
      Var var = TensorVar(StrCat("z", k), DType::kFp32, kTiny);
      var.persistable = true;
      main.SetVar(std::move(var));
      Fill(StrCat("z", k), 0.125f);
    }
    for (int i = 0; i < ops; ++i) main.Append(TinyOp(mix, i));
  }

  void Compile() { compiled_ = Must(executor_.Compile(program_, {}, {})); }
  void Run() { Must(executor_.Run(compiled_, scope_, {})); }

 private:
  void Fill(const std::string& name, float value) {
    Tensor& tensor = scope_.FindOrCreate(name)->As<Tensor>();
    tensor = Tensor(DType::kFp32, kTiny);
    std::ranges::fill(tensor.Span<float>(), value);
  }

  Program program_;
  Scope scope_;
  exec::Executor executor_{AllOps(), {.threads = 1}};
  exec::Executor::Compiled compiled_;
};

// A program of updates of parameters of one shape, each by an op of its own.
class SmallUpdates {
 public:
  SmallUpdates(const char* type, const Shape& shape, int ops) {
    const std::string optimizer = type;
    std::vector<std::string> states, powers;
    if (optimizer == "momentum") states = {"Velocity"};
    if (optimizer == "adam") states = {"Moment1", "Moment2"}, powers = {"Beta1Pow", "Beta2Pow"};
    Declare("rate", {1});
    for (int i = 0; i < ops; ++i) {
      const auto named = [i](const std::string& slot) { return StrCat(slot, i); };
      Op op(type);
      op.AddInput("LearningRate", {"rate"});
      op.AddInput("Grad", {Declare(named("Grad"), shape)});
      op.AddInput("Param", {Declare(named("Param"), shape)}).AddOutput("ParamOut", {named("Param")});
      for (const auto* slots : {&states, &powers}) {
        for (const std::string& slot : *slots) {
          op.AddInput(slot, {Declare(named(slot), slots == &states ? shape : Shape{1})});
          op.AddOutput(slot + "Out", {named(slot)});
        }
      }
      if (optimizer == "momentum") op.Set("mu", 0.9f);
      program_.MutableBlock(0).Append(std::move(op));
    }
    compiled_ = Must(executor_.Compile(program_, {}, {}));
  }
  void Run() { Must(executor_.Run(compiled_, scope_, {})); }

 private:
  const std::string& Declare(const std::string& name, const Shape& shape) {
    Var var = TensorVar(name, DType::kFp32, shape);
    var.persistable = true;
    Tensor& tensor = scope_.FindOrCreate(name)->As<Tensor>();
    tensor = Tensor(DType::kFp32, shape);
    std::ranges::fill(tensor.Span<float>(), 0.5f);
    program_.MutableBlock(0).SetVar(std::move(var));
    return program_.block(0).FindVar(name)->name;
  }

  Program program_;
  Scope scope_;
  exec::Executor executor_{AllOps(), {.threads = 1}};
  exec::Executor::Compiled compiled_;
};

void CountOps(benchmark::State& state) {
  state.counters["cpu_an_op"] =
      benchmark::Counter(static_cast<double>(state.range(0)),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void TinyOpsHot(benchmark::State& state, Mix mix) {
  TinyOps tiny(mix, static_cast<int>(state.range(0)));
  tiny.Compile();
  tiny.Run();
  for ([[maybe_unused]] const auto i : state) tiny.Run();
  CountOps(state);
}

// Each run begins with caches that hold nothing of it.
void TinyOpsCold(benchmark::State& state, Mix mix) {
  TinyOps tiny(mix, static_cast<int>(state.range(0)));
  tiny.Compile();
  tiny.Run();
  std::vector<char> other(kEvictedBytes, 1);
  for ([[maybe_unused]] const auto i : state) {
    for (char& c : other) ++c;
    benchmark::DoNotOptimize(other.data());
    const double began = ThreadSeconds();
    tiny.Run();
    state.SetIterationTime(ThreadSeconds() - began);
  }
  CountOps(state);
}

void Updates(benchmark::State& state, const char* type, const Shape& shape) {
  SmallUpdates updates(type, shape, static_cast<int>(state.range(0)));
  updates.Run();
  for ([[maybe_unused]] const auto i : state) updates.Run();
  CountOps(state);
}

// Bytes that the allocator has handed out. tcmalloc replaces mallinfo, but not its successor.
double AllocatedBytes() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
  return static_cast<double>(static_cast<unsigned>(info.uordblks)) +
         static_cast<double>(static_cast<unsigned>(info.hblkhd));
}

void CompileOps(benchmark::State& state) {
  double compile_s = 0, first_s = 0, bytes = 0;
  for ([[maybe_unused]] const auto i : state) {
    TinyOps tiny(Mix::kEight, static_cast<int>(state.range(0)));
    const double before = AllocatedBytes(), began = ThreadSeconds();
    tiny.Compile();
    const double compiled = ThreadSeconds();
    tiny.Run();
    const double ran = ThreadSeconds();
    state.SetIterationTime(ran - began);
    compile_s += compiled - began;
    first_s += ran - compiled;
    bytes = AllocatedBytes() - before;
  }
  const auto mean = benchmark::Counter::kAvgIterations;
  state.counters["compile_s"] = benchmark::Counter(compile_s, mean);
  state.counters["first_run_s"] = benchmark::Counter(first_s, mean);
  state.counters["held_bytes"] = bytes;
}

void Chains(benchmark::internal::Benchmark* bench) {
  bench->ArgName("ops")->Arg(1)->Arg(100)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMicrosecond);
}
void ColdChains(benchmark::internal::Benchmark* bench) {
  Chains(bench);
  bench->UseManualTime()->Iterations(kColdRuns);
}
BENCHMARK_CAPTURE(TinyOpsHot, eight_types, Mix::kEight)->Apply(Chains);
BENCHMARK_CAPTURE(TinyOpsHot, two_operands, Mix::kTwoOperands)->Apply(Chains);
BENCHMARK_CAPTURE(TinyOpsHot, eight_operands, Mix::kEightOperands)->Apply(Chains);
BENCHMARK_CAPTURE(TinyOpsCold, eight_types, Mix::kEight)->Apply(ColdChains);
BENCHMARK_CAPTURE(TinyOpsCold, two_operands, Mix::kTwoOperands)->Apply(ColdChains);
BENCHMARK_CAPTURE(TinyOpsCold, eight_operands, Mix::kEightOperands)->Apply(ColdChains);
void ManyUpdates(benchmark::internal::Benchmark* bench) {
  bench->ArgName("ops")->Arg(200)->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(Updates, sgd_64, "sgd", Shape{64})->Apply(ManyUpdates);
BENCHMARK_CAPTURE(Updates, sgd_64x64, "sgd", Shape{64, 64})->Apply(ManyUpdates);
BENCHMARK_CAPTURE(Updates, momentum_64, "momentum", Shape{64})->Apply(ManyUpdates);
BENCHMARK_CAPTURE(Updates, momentum_64x64, "momentum", Shape{64, 64})->Apply(ManyUpdates);
BENCHMARK_CAPTURE(Updates, adam_64, "adam", Shape{64})->Apply(ManyUpdates);
BENCHMARK_CAPTURE(Updates, adam_64x64, "adam", Shape{64, 64})->Apply(ManyUpdates);
BENCHMARK(CompileOps)
    ->ArgName("ops")
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench
