// Measures a sparse table in shards: lookups of 512 examples with 26 words each, by jobs on the queues of the
// shards; and a client's sorting of ids and of a gradient of as many rows. Rows have 16 floats; ids are
// uniformly distributed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "executor/client/push_bytes.h"
#include "executor/client/row_order.h"
#include "executor/pserver/memory/chunk_queues.h"
#include "executor/pserver/memory/chunk_store.h"
#include "framework/roles/row_optimizer.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr Dim kShardedWidth = 16;
constexpr std::size_t kLookedUp = std::size_t{512} * 26;

std::vector<std::int64_t> UniformIds(Dim rows) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> uniform(0, rows - 1);
  std::vector<std::int64_t> ids(kLookedUp);
  std::generate(ids.begin(), ids.end(), [&] { return uniform(random); });
  return ids;
}

// Threads that run what is posted.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  void Post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !work_.empty(); });
      if (work_.empty()) return;
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

class ShardedTable {
 public:
  ShardedTable(Dim rows, int shards)
      : job_{.shape = {rows, kShardedWidth}, .rows = true}, program_(ServerProgram(job_, 0)) {
    FillServer(job_, 0, scope_);
    roles::PserverFacts facts = Must(roles::ReadServer(AllOps(), program_, *program_.main().ops().back().op));
    roles::ServedParam& served = facts.params.front();
    served.by_id = true;
    served.row_optimizer =
        roles::RowOptimizerOf(AllOps(), program_, served.block, served.param.name, served.param.dtype);
    SelectedRows all{.height = rows, .value = scope_.Find(served.param.name)->As<Tensor>()};
    all.rows.resize(static_cast<std::size_t>(rows));
    std::iota(all.rows.begin(), all.rows.end(), 0);
    scope_.Find(served.param.name)->As<SelectedRows>() = std::move(all);
    store_ = Must(pserver::ChunkStore::Make(program_, facts, scope_, {}, kMaxBodyBytes, {.exactly = shards}));
    PENSTOCK_CHECK(store_->chunk_count(0) == static_cast<std::size_t>(shards), "the table has other shards");
    const std::vector<std::int64_t> ids = UniformIds(rows);
    const client::RowOrder order(ids, static_cast<std::uint32_t>(shards));
    for (std::uint32_t shard = 0; shard < static_cast<std::uint32_t>(shards); ++shard) {
      std::string bytes;
      for (std::size_t i = order.begin(shard); i < order.begin(shard + 1); ++i)
        bytes.append(reinterpret_cast<const char*>(&ids[order.places()[i]]), sizeof(std::int64_t));
      asked_.push_back({.param = 0,
                        .chunk = static_cast<int>(shard),
                        .ids = pserver::RowIds::Of(Payload::Of(std::move(bytes)))});
    }
  }
  void LookUp(pserver::ChunkQueues& queues) {
    std::unique_lock lock(mutex_);
    left_ = asked_.size();
    for (std::size_t shard = 0; shard < asked_.size(); ++shard) {
      queues.Push(shard, pserver::ChunkQueues::Size::kLarge, [this, shard] {
        benchmark::DoNotOptimize(store_->Gather(asked_[shard]));
        const std::lock_guard done(mutex_);
        if (--left_ == 0) all_done_.notify_one();
      });
    }
    all_done_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  const Job job_;
  const Program program_;
  Scope scope_;
  std::unique_ptr<pserver::ChunkStore> store_;
  std::vector<pserver::RowsEvent> asked_;  // by shard
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::size_t left_ = 0;
};

void ShardLookups(benchmark::State& state) {
  const auto shards = static_cast<int>(state.range(0));
  ShardedTable table(1'000'000, shards);
  std::optional<Pool> pool;
  pserver::ChunkQueues queues(static_cast<std::size_t>(shards),
                              [&](pserver::ChunkQueues::Job work) { pool->Post(std::move(work)); });
  pool.emplace(2);
  for ([[maybe_unused]] const auto i : state) table.LookUp(queues);
  pool.reset();  // its threads may still leave the queues
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kLookedUp));
}

void SortRows(benchmark::State& state, bool gradient) {
  const auto shards = static_cast<std::uint32_t>(state.range(0));
  const SelectedRows rows{.rows = UniformIds(1'000'000),
                          .height = 1'000'000,
                          .value = Tensor(DType::kFp32, {static_cast<Dim>(kLookedUp), kShardedWidth})};
  for ([[maybe_unused]] const auto i : state) {
    if (gradient) {
      benchmark::DoNotOptimize(client::CopyOfRows(rows, shards));
    } else {
      benchmark::DoNotOptimize(client::RowOrder(rows.rows, shards));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kLookedUp));
}

void Shards(benchmark::internal::Benchmark* bench) {
  bench->ArgName("shards")->Arg(1)->Arg(4)->Arg(16)->Unit(benchmark::kMicrosecond);
}
BENCHMARK(ShardLookups)
    ->ArgName("shards")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Unit(benchmark::kMicrosecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(SortRows, ids, false)->Apply(Shards);
BENCHMARK_CAPTURE(SortRows, gradient, true)->Apply(Shards);

}  // namespace
}  // namespace penstock::bench
