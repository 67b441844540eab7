// Measures row operations of a sparse table: gathers the rows that a batch of 512 examples with 26 words each
// looks up, and merges and applies two trainers' gradients of as many rows with sgd. Rows have 16 floats; ids
// are uniformly distributed. The server holds the whole table (by_range) or a shard by id (by_id).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "executor/pserver/memory/chunk_store.h"
#include "executor/schedule/executor.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr Dim kWidth = 16;
constexpr std::size_t kIds = std::size_t{512} * 26;
constexpr int kTrainers = 2;

std::string TextOf(const void* data, std::size_t bytes) { return {static_cast<const char*>(data), bytes}; }

class TableServer {
 public:
  TableServer(Dim rows, bool by_id)
      : job_{.shape = {rows, kWidth}, .trainers = kTrainers, .rows = true}, program_(ServerProgram(job_, 0)) {
    FillServer(job_, 0, scope_);
    roles::PserverFacts role = Must(roles::ReadServer(AllOps(), program_, *program_.main().ops().back().op));
    if (by_id) {
      role.params.front().by_id = true;
      KeepAsRows(*scope_.Find(job_.Param(0)));
    }
    store_ = Must(pserver::ChunkStore::Make(program_, role, scope_));
    Draw(rows);
  }

  void Gather() { benchmark::DoNotOptimize(store_->Gather({.param = 0, .ids = pserver::RowIds::Of(ids_)})); }
  void Update() {
    for (int t = 0; t < kTrainers; ++t) {
      Must(store_->Merge(
          {.param = 0, .chunk = 0, .trainer = t, .step = step_, .parts = {gradient_}, .rows = kIds}));
    }
    Must(store_->Run({.param = 0, .chunk = 0, .step = step_++}, blocks_));
  }

 private:
  static void KeepAsRows(Variable& variable) {
    const Tensor whole = variable.As<Tensor>();
    SelectedRows rows;
    rows.height = whole.shape()[0];
    rows.rows.resize(static_cast<std::size_t>(rows.height));
    std::iota(rows.rows.begin(), rows.rows.end(), 0);
    rows.value = whole;
    variable.As<SelectedRows>() = std::move(rows);
  }
  void Draw(Dim rows) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> uniform(0, rows - 1);
    std::vector<std::int64_t> ids(kIds);
    std::generate(ids.begin(), ids.end(), [&] { return uniform(random); });
    const std::vector<float> values(kIds * kWidth, 0.25f);
    ids_ = Payload::Of(TextOf(ids.data(), ids.size() * sizeof(std::int64_t)));
    gradient_ = ids_;
    gradient_.Append(Payload::Of(TextOf(values.data(), values.size() * sizeof(float))));
  }

  const Job job_;
  const Program program_;
  Scope scope_;
  exec::Executor blocks_{AllOps(), {.threads = 1}};
  std::unique_ptr<pserver::ChunkStore> store_;
  Payload ids_, gradient_;
  std::uint64_t step_ = 0;
};

void GatherRows(benchmark::State& state, bool by_id) {
  TableServer table(state.range(0), by_id);
  for ([[maybe_unused]] const auto i : state) table.Gather();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kIds));
}

void ApplyRows(benchmark::State& state, bool by_id) {
  TableServer table(state.range(0), by_id);
  for ([[maybe_unused]] const auto i : state) table.Update();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kIds) * kTrainers);
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("rows")->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(GatherRows, by_range, false)->Apply(Sizes);
BENCHMARK_CAPTURE(GatherRows, by_id, true)->Apply(Sizes);
BENCHMARK_CAPTURE(ApplyRows, by_range, false)->Apply(Sizes);
BENCHMARK_CAPTURE(ApplyRows, by_id, true)->Apply(Sizes);

}  // namespace
}  // namespace penstock::bench
