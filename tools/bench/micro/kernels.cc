// Measures the kernels of ops, each as the only op of a program that the executor runs, next to a floor that
// is measured in the same run:
//
//   bytes     the operands' bytes, read or written once, at the speed of a copy of as many bytes
//   products  the op's multiplications and additions at the speed of oneDNN's sgemm of large matrices
//
// The floor is the larger of the two. Buffers of the floor have the size of the operands, so operands that
// fit into a cache are compared with the bandwidth of that cache. With one thread, times are the thread's CPU
// time, which other processes disturb less; with two, wall-clock time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/autodiff/grad_ops.h"
#include "framework/base/strings.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"
#include "tools/bench/micro/kernel_cases.h"
#include "tools/peaks/peaks.h"
#include "tools/peaks/time.h"

namespace penstock::bench {
namespace {

double Now(int threads) { return threads == 1 ? ThreadSeconds() : WallSeconds(); }

template <typename T>
void FillSpan(std::span<T> values, double low, double high, std::mt19937& random) {
  // Values of a period that is no power of two: filling large tensors by the generator would take longer than
  // the measurement.
  std::vector<T> drawn(std::min<std::size_t>(values.size(), 100'003));
  std::uniform_real_distribution<double> uniform(low, high);
  for (T& value : drawn) value = static_cast<T>(uniform(random));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn[i % drawn.size()];
}

// A case with its variables in a scope, ready to run.
class KernelRun {
 public:
  KernelRun(const KernelCase& from, bool gradient, int threads)
      : threads_(threads), executor_(AllOps(), {.threads = threads}) {
    for (const KernelInput& input : from.inputs) Fill(input);
    std::vector<Op> ops = {from.op};
    compiled_ = Compile(ops);
    if (gradient) {
      Run();
      ops = GradientOps(from);
      for (const Op& op : ops) FillMissing(op);
      compiled_ = Compile(ops);
    }
    Run();
    ChooseGroup();
    bytes_ = gradient ? from.gradient_bytes : from.bytes;
    if (bytes_ < 0) bytes_ = OperandBytes(ops);
    flops_ = gradient ? from.gradient_flops : from.flops;
  }

  void Run() { Must(executor_.Run(compiled_, scope_, {})); }
  // Seconds of a run; of the mean of several, if a run is short against reading the clock.
  double Sample() {
    const double began = Now(threads_);
    for (int i = 0; i < group_; ++i) Run();
    samples_.push_back((Now(threads_) - began) / group_);
    return samples_.back();
  }

  // Keeps the least floor of all calls.
  void MeasureFloor() {
    copy_s_ = std::min(copy_s_, CopySeconds(bytes_, threads_));
    if (flops_ > 0) product_s_ = std::min(product_s_, SecondsPerFlop(threads_) * flops_);
  }
  double FloorSeconds() const { return flops_ > 0 ? std::max(copy_s_, product_s_) : copy_s_; }
  std::string Describe() const {
    const std::string bytes =
        StrCat(bytes_ / 1e3, " KB at ", static_cast<int>(bytes_ / copy_s_ / 1e9), " GB/s");
    if (flops_ == 0) return bytes;
    return StrCat(static_cast<int>(flops_ / 1e6), " MFLOP at ", static_cast<int>(flops_ / product_s_ / 1e9),
                  " GFLOP/s, ", bytes);
  }

  int group() const { return group_; }  // runs of a sample
  // Of all calls so far, sorted.
  const std::vector<double>& Samples() {
    std::ranges::sort(samples_);
    return samples_;
  }

 private:
  void ChooseGroup() {
    while (group_ < 1000 && Sample() * group_ < 20e-6) group_ *= 2;
    samples_.clear();
  }
  void Fill(const KernelInput& input) {
    Tensor tensor(input.dtype, input.shape);
    if (input.dtype == DType::kInt64) FillSpan(tensor.Span<std::int64_t>(), input.low, input.high, random_);
    if (input.dtype == DType::kFp32) FillSpan(tensor.Span<float>(), input.low, input.high, random_);
    if (input.sequence > 0) {
      LoDLevel level;
      for (Dim row = 0; row <= input.shape[0]; row += input.sequence)
        level.push_back(static_cast<std::uint64_t>(row));
      tensor.set_lod({level});
    }
    Variable& variable = *scope_.FindOrCreate(input.name);
    if (input.height == 0) {
      variable.As<Tensor>() = tensor;
      return;
    }
    SelectedRows rows;
    rows.height = input.height;
    rows.rows.resize(static_cast<std::size_t>(input.shape[0]));
    FillSpan(std::span(rows.rows), 0, static_cast<double>(input.height), random_);
    rows.value = tensor;
    variable.As<SelectedRows>() = std::move(rows);
  }

  // All variables are the scope's: nothing is fed, fetched, or omitted because nobody reads it.
  exec::Executor::Compiled Compile(const std::vector<Op>& ops) {
    Program program;
    Block& main = program.MutableBlock(0);
    for (const Op& op : ops) {
      for (const std::vector<std::string>& names : {op.InputNames(), op.OutputNames()}) {
        for (const std::string& name : names) Declare(name, main);
      }
      main.Append(op);
    }
    return Must(executor_.Compile(program, {}, {}));
  }
  void Declare(const std::string& name, Block& main) const {
    if (main.FindVar(name) != nullptr || name == kEmptyVarName) return;
    Var var;
    var.name = name;
    var.persistable = true;
    const Variable* value = scope_.Find(name);
    if (value != nullptr && value->Is<SelectedRows>()) var.kind = VarKind::kSelectedRows;
    main.SetVar(std::move(var));
  }

  static std::vector<Op> GradientOps(const KernelCase& from) {
    NameSet none;
    for (const std::string& name : from.op.InputNames()) {
      if (!from.wanted.contains(name)) none.insert(GradName(name));
    }
    GradNames names;
    return Must(MakeGradOps(AllOps(), from.op, none, names));
  }
  // The gradients of the op's outputs, shaped like them.
  void FillMissing(const Op& op) {
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) {
        if (scope_.Find(name) != nullptr) continue;
        const std::string of = name.substr(0, name.size() - std::string_view(kGradSuffix).size());
        const Variable* value = scope_.Find(of);
        const Tensor* forward = value == nullptr ? nullptr : value->If<Tensor>();
        PENSTOCK_CHECK(forward != nullptr, StrCat(op.type(), ": nothing gives ", name));
        Fill({.name = name, .shape = forward->shape()});
        scope_.Find(name)->As<Tensor>().ShareLod(*forward);
      }
    }
  }
  double OperandBytes(const std::vector<Op>& ops) const {
    double bytes = 0;
    for (const Op& op : ops) {
      for (const std::vector<std::string>& names : {op.InputNames(), op.OutputNames()}) {
        for (const std::string& name : names) bytes += BytesOf(name);
      }
    }
    return bytes;
  }
  double BytesOf(const std::string& name) const {
    const Variable* value = scope_.Find(name);
    if (value == nullptr) return 0;
    const auto* rows = value->If<SelectedRows>();
    const Tensor* tensor = rows != nullptr ? &rows->value : value->If<Tensor>();
    return tensor == nullptr ? 0 : static_cast<double>(tensor->bytes());
  }

  const int threads_;
  std::mt19937 random_{7};
  Scope scope_;
  exec::Executor executor_;
  exec::Executor::Compiled compiled_;
  int group_ = 1;
  std::vector<double> samples_;  // seconds
  double bytes_ = 0, flops_ = 0;
  double copy_s_ = std::numeric_limits<double>::infinity();
  double product_s_ = std::numeric_limits<double>::infinity();
};

// Google Benchmark calls this several times per benchmark, with more iterations each time. All calls use the
// same KernelRun, because filling large tensors takes longer than small samples.
void MeasureKernel(benchmark::State& state, const KernelCase* from, bool gradient) {
  using Key = std::tuple<const KernelCase*, bool, int>;
  static Key key;
  static std::unique_ptr<KernelRun> run;
  const int threads = static_cast<int>(state.range(0));
  if (run == nullptr || key != Key(from, gradient, threads)) {
    run.reset();
    run = std::make_unique<KernelRun>(*from, gradient, threads);
    key = {from, gradient, threads};
  }
  run->MeasureFloor();
  for (int i = 0; i < 2; ++i) run->Run();  // loads the caches
  while (state.KeepRunningBatch(run->group())) state.SetIterationTime(run->Sample() * run->group());
  run->MeasureFloor();
  const std::vector<double>& sorted = run->Samples();
  state.counters["least_ms"] = sorted.front() * 1e3;
  state.counters["median_ms"] = sorted[sorted.size() / 2] * 1e3;
  state.counters["floor_ms"] = run->FloorSeconds() * 1e3;
  state.counters["ratio"] = sorted.front() / run->FloorSeconds();
  state.SetLabel(run->Describe());
}

std::string Extents(const Shape& shape) {
  std::string text;
  for (const Dim extent : shape.dims()) text += StrCat(text.empty() ? "" : "x", extent);
  return text;
}

// "Kernel/conv2d/of:64x1x28x28,20x1x5x5/threads:1"; ops with one input of many elements have one shape.
std::string NameOf(const KernelCase& c, bool gradient) {
  std::string name =
      StrCat("Kernel/", c.op.type(), gradient ? "_grad" : "", "/of:", Extents(c.inputs[0].shape));
  if (c.inputs.size() > 1) name += StrCat(",", Extents(c.inputs[1].shape));
  for (const char* attr : {"pooltype", "pooling_type"}) {
    if (const auto* text = c.op.Get<std::string>(attr)) name += StrCat(",", *text);
  }
  if (const auto* dim = c.op.Get<std::vector<std::int32_t>>("dim")) name += StrCat(",dim=", dim->front());
  if (c.op.GetOr("transpose_Y", false)) name += ",transposed";
  return name;
}

const bool kRegistered = [] {
  static const std::vector<KernelCase> cases = KernelCases();
  for (const KernelCase& c : cases) {
    for (const bool gradient : {false, true}) {
      if (gradient && c.wanted.empty()) continue;
      benchmark::RegisterBenchmark(NameOf(c, gradient).c_str(), MeasureKernel, &c, gradient)
          ->ArgName("threads")
          ->Arg(1)
          ->Arg(2)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace penstock::bench
