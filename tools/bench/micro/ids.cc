// Measures split_ids and merge_ids: shards the distinct ids of a batch of 512 examples with 26 words each,
// and a gradient of as many rows of 16 floats, over 1 to 64 servers; and puts the answers in order.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr Dim kWidth = 16;
constexpr Dim kIds = Dim{512} * 26;

class Splitter {
 public:
  Splitter(int servers, bool rows) {
    Block& main = program_.MutableBlock(0);
    const VarKind kind = rows ? VarKind::kSelectedRows : VarKind::kTensor;
    const auto declare = [&](const std::string& name) {
      Var var;
      var.name = name;
      var.kind = kind;
      var.persistable = true;
      var.type = rows ? TensorType{DType::kFp32, {kUnknownDim, kWidth}}
                      : TensorType{DType::kInt64, {kUnknownDim, 1}};
      main.SetVar(std::move(var));
    };
    declare("ids");
    std::vector<std::string> parts;
    for (int s = 0; s < servers; ++s) declare(parts.emplace_back(StrCat("part", s)));
    main.Append(Op("split_ids").AddInput("Ids", {"ids"}).AddOutput("Out", parts));
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> uniform(0, 1'000'000);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(kIds));
    std::generate(ids.begin(), ids.end(), [&] { return uniform(random); });
    Variable& value = *scope_.FindOrCreate("ids");
    if (rows) {
      value.As<SelectedRows>() = {
          .rows = ids, .height = 1'000'001, .value = Tensor(DType::kFp32, {kIds, kWidth})};
    } else {
      Tensor tensor(DType::kInt64, {kIds, 1});
      std::copy(ids.begin(), ids.end(), tensor.Data<std::int64_t>());
      value.As<Tensor>() = std::move(tensor);
    }
  }
  void Run() { Must(executor_.Run(program_, scope_, {}, {})); }

 private:
  Program program_;
  Scope scope_;
  exec::Executor executor_{AllOps(), {.threads = 1}};
};

void SplitIds(benchmark::State& state, bool rows) {
  Splitter splitter(static_cast<int>(state.range(0)), rows);
  for ([[maybe_unused]] const auto i : state) splitter.Run();
  state.SetItemsProcessed(state.iterations() * kIds);
}
class Merger {
 public:
  explicit Merger(int servers) {
    Block& main = program_.MutableBlock(0);
    const auto hold = [&](const std::string& name, Tensor tensor) {
      Var var;
      var.name = name;
      var.persistable = true;
      var.type = TensorType{tensor.dtype(), tensor.shape()};
      main.SetVar(std::move(var));
      scope_.FindOrCreate(name)->As<Tensor>() = std::move(tensor);
    };
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> uniform(0, 1'000'000);
    Tensor ids(DType::kInt64, {kIds, 1});
    for (std::int64_t& id : ids.Span<std::int64_t>()) id = uniform(random);
    std::vector<std::set<std::int64_t>> of_server(static_cast<std::size_t>(servers));
    for (const std::int64_t id : ids.Span<std::int64_t>())
      of_server[static_cast<std::size_t>(id % servers)].insert(id);
    hold("ids", ids);
    hold("out", Tensor(DType::kFp32, {kIds, kWidth}));
    std::vector<std::string> rows, answers;
    for (const std::set<std::int64_t>& asked : of_server) {
      const auto count = static_cast<Dim>(asked.size());
      Tensor asked_ids(DType::kInt64, {count, 1});
      std::ranges::copy(asked, asked_ids.Data<std::int64_t>());
      hold(rows.emplace_back(StrCat("rows", rows.size())), asked_ids);
      hold(answers.emplace_back(StrCat("x", answers.size())), Tensor(DType::kFp32, {count, kWidth}));
    }
    main.Append(Op("merge_ids")
                    .AddInput("Ids", {"ids"})
                    .AddInput("Rows", rows)
                    .AddInput("X", answers)
                    .AddOutput("Out", {"out"}));
  }
  void Run() { Must(executor_.Run(program_, scope_, {}, {})); }

 private:
  Program program_;
  Scope scope_;
  exec::Executor executor_{AllOps(), {.threads = 1}};
};

void MergeIds(benchmark::State& state) {
  Merger merger(static_cast<int>(state.range(0)));
  for ([[maybe_unused]] const auto i : state) merger.Run();
  state.SetItemsProcessed(state.iterations() * kIds);
}
void Servers(benchmark::internal::Benchmark* bench) {
  bench->ArgName("servers")->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(SplitIds, ids, false)->Apply(Servers);
BENCHMARK_CAPTURE(SplitIds, rows, true)->Apply(Servers);
BENCHMARK(MergeIds)->Apply(Servers);

}  // namespace
}  // namespace penstock::bench
