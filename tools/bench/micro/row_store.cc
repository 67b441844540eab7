// Measures the row store of tables sharded by id with batches of 13,312 ids on one thread: rows of 16 floats,
// ids with Zipf's distribution (exponent 1.05). RowStore looks up rows, or updates them by one gradient with
// sgd or adam, where ids that occur several times are added up first; a step looks them up and updates them.
// Adam has lazy_mode, except in adam_whole and step_whole, where a row first gets the steps that it missed;
// `uniform`: all ids are as frequent. RowMap does the same with absl::flat_hash_map, whose slots contain the
// rows, but adds nothing up. All rows are stored before.
//
// RowsOnDisk is RowStore with a budget for a fifth of the rows, counted with the indexes of all; the others
// are in files in the folder for temporary files, which the system caches as far as it has memory. A batch
// includes the sweeps after it. `miss_us`: the time to bring rows back and to move others out, divided by
// the rows brought back; `misses`: their share of the ids; `of_budget`: the memory of the table.
#include <absl/container/flat_hash_map.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "executor/table/row_table.h"
#include "operators/all_ops.h"
#include "tools/bench/job/job.h"

namespace penstock::bench {
namespace {

constexpr std::size_t kFloats = 16, kBatchIds = std::size_t{512} * 26, kBatches = 100;

// Hörmann, Derflinger: "Rejection-inversion to generate variates from monotone discrete distributions", 1996.
class Zipf {
 public:
  explicit Zipf(double count) : count_(count), first_(Integral(1.5) - 1), last_(Integral(count + 0.5)) {}
  std::int64_t Draw(std::mt19937_64& random) {
    while (true) {
      const double y = last_ + uniform_(random) * (first_ - last_);
      const double k = std::clamp(std::floor(Inverse(y) + 0.5), 1.0, count_);
      if (y >= Integral(k + 0.5) - std::pow(k, -kExponent)) return static_cast<std::int64_t>(k) - 1;
    }
  }

 private:
  static constexpr double kExponent = 1.05;
  static double Integral(double x) { return (std::pow(x, 1 - kExponent) - 1) / (1 - kExponent); }
  static double Inverse(double y) { return std::pow(1 + y * (1 - kExponent), 1 / (1 - kExponent)); }

  const double count_, first_, last_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

// Ids as of hashed words.
std::int64_t WordOf(std::int64_t rank) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15u);
}

class Batches {
 public:
  Batches(std::int64_t rows, bool uniform) : ids_(kBatchIds * kBatches) {
    std::mt19937_64 random(1);
    Zipf zipf(static_cast<double>(rows));
    const auto any = [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows)); };
    std::generate(ids_.begin(), ids_.end(), [&] { return WordOf(uniform ? any() : zipf.Draw(random)); });
  }
  std::span<const std::int64_t> Next() {
    return std::span(ids_).subspan(kBatchIds * (next_++ % kBatches), kBatchIds);
  }

 private:
  std::vector<std::int64_t> ids_;
  std::size_t next_ = 0;
};

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

class StoredTable {
 public:
  StoredTable(std::int64_t rows, const char* optimizer, std::size_t columns, bool lazy,
              const RowPolicy& policy = {}) {
    std::vector<table::RowTable::ColumnSource> sources;
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < columns; ++i) {
      variables_[i].As<SelectedRows>().value = Tensor(DType::kFp32, {0, kFloats});
      sources.push_back({"column", &variables_[i]});
      used.push_back(i);
    }
    table_ = Must(table::RowTable::Make({rows, kFloats}, sources, table::RowTable::Layout::kRows, policy,
                                        {.disk = &SystemDisk(), .name = "bench"}));
    const Op op = Op(optimizer).Set("lazy_mode", lazy);
    table_->UseRule(RowRuleOf(*AllOps().Find(optimizer), op, DType::kFp32), used);
    gradient_.value = Tensor(DType::kFp32, {kBatchIds, kFloats});
    for (std::int64_t row = 0; row < rows; row += kBatchIds) {
      gradient_.rows.clear();
      for (auto i = row; i < std::min<std::int64_t>(rows, row + kBatchIds); ++i)
        gradient_.rows.push_back(WordOf(i));
      Update();
      Sweep();
    }
  }
  void Fetch(std::span<const std::int64_t> ids) { Must(table_->Fetch(ids)); }
  void Sweep() {
    while (table_->Sweep()) {
    }
  }
  table::ColdCounts cold_counts() const { return table_->cold_counts(); }
  void Lookup(std::span<const std::int64_t> ids) { table_->Read(ids, -1, gradient_.value.raw()); }
  void Update(std::span<const std::int64_t> ids) {
    gradient_.rows.assign(ids.begin(), ids.end());
    Update();
  }

 private:
  void Update() {
    SelectedRows* const gradients[] = {&gradient_};
    std::byte* const whole[] = {reinterpret_cast<std::byte*>(&powers_[0]),
                                reinterpret_cast<std::byte*>(&powers_[1])};
    table_->Update(
        {.gradients = gradients, .rate = reinterpret_cast<const std::byte*>(&rate_), .whole = whole});
  }

  std::array<Variable, 3> variables_;
  std::optional<table::RowTable> table_;
  SelectedRows gradient_;
  std::array<float, 2> powers_ = {0.9f, 0.999f};
  float rate_ = 0.01f;
};

// `of_values`: the memory of the table as a multiple of its values and states.
void Report(benchmark::State& state, double bytes, std::size_t columns) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatchIds));
  state.counters["of_values"] =
      bytes / (static_cast<double>(state.range(0)) * static_cast<double>(columns * kFloats * sizeof(float)));
}

struct StoreCase {
  const char* optimizer = "adam";
  std::size_t columns = 3;
  bool lookups = false, updates = true, lazy = true, uniform = false;
};

void RowStore(benchmark::State& state, const StoreCase& run) {
  const double before = ResidentBytes();
  StoredTable table(state.range(0), run.optimizer, run.columns, run.lazy);
  const double bytes = ResidentBytes() - before;
  Batches batches(state.range(0), run.uniform);
  for ([[maybe_unused]] const auto i : state) {
    const std::span<const std::int64_t> ids = batches.Next();
    if (run.lookups) table.Lookup(ids);
    if (run.updates) table.Update(ids);
  }
  Report(state, bytes, run.columns);
}

void RowsOnDisk(benchmark::State& state, const StoreCase& run) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t rows = state.range(0);
  // A header and the columns, in whole lines; some 14 bytes for each index entry.
  const auto row_bytes =
      static_cast<std::int64_t>((32 + run.columns * kFloats * sizeof(float) + 63) / 64 * 64);
  RowPolicy policy;
  policy.budget_mb = (rows / 5 * row_bytes + rows * 14 + rows / 5 * 17) / (1 << 20) + 4;
  policy.cold_dir = std::filesystem::temp_directory_path() / "penstock_bench_rows";
  const double before = ResidentBytes();
  StoredTable table(rows, run.optimizer, run.columns, run.lazy, policy);
  Batches batches(rows, run.uniform);
  const auto step = [&] {
    const std::span<const std::int64_t> ids = batches.Next();
    const auto begin = Clock::now();
    table.Fetch(ids);
    auto moved = Clock::now() - begin;
    if (run.lookups) table.Lookup(ids);
    if (run.updates) table.Update(ids);
    const auto swept = Clock::now();
    table.Sweep();
    return moved + (Clock::now() - swept);
  };
  for (int i = 0; i < 200; ++i) step();  // the rows that come often are in memory
  const table::ColdCounts begun = table.cold_counts();
  Clock::duration moved{0};
  for ([[maybe_unused]] const auto i : state) moved += step();
  const table::ColdCounts counts = table.cold_counts();
  const auto misses = static_cast<double>(counts.fetched - begun.fetched);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatchIds));
  state.counters["miss_us"] = std::chrono::duration<double, std::micro>(moved).count() / misses;
  state.counters["misses"] = misses / static_cast<double>(state.items_processed());
  state.counters["hot"] = static_cast<double>(counts.hot);
  state.counters["file_mb"] = static_cast<double>(counts.file_bytes) / (1 << 20);
  state.counters["of_budget"] =
      (ResidentBytes() - before) / (static_cast<double>(policy.budget_mb) * (1 << 20));
}

void RowMap(benchmark::State& state, bool updates) {
  struct Values {
    std::array<float, kFloats> values = {};
  };
  const double before = ResidentBytes();
  absl::flat_hash_map<std::int64_t, Values> map;
  for (std::int64_t row = 0; row < state.range(0); ++row) map[WordOf(row)] = Values();
  const double bytes = ResidentBytes() - before;
  Batches batches(state.range(0), false);
  std::vector<Values> gradient(kBatchIds);
  const float rate = 0.01f;
  for ([[maybe_unused]] const auto i : state) {
    Values* values = gradient.data();
    for (const std::int64_t id : batches.Next()) {
      Values& row = map.find(id)->second;
      if (updates) {
        for (std::size_t j = 0; j < kFloats; ++j) row.values[j] -= rate * values->values[j];
      } else {
        *values = row;
      }
      ++values;
    }
    benchmark::ClobberMemory();
  }
  Report(state, bytes, 1);
}

void TableRows(benchmark::internal::Benchmark* bench) {
  bench->ArgName("rows")->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMicrosecond);
}
constexpr StoreCase kLookup = {.optimizer = "sgd", .columns = 1, .lookups = true, .updates = false};
constexpr StoreCase kSgd = {.optimizer = "sgd", .columns = 1};
constexpr StoreCase kAdam, kAdamWhole = {.lazy = false}, kAdamUniform = {.uniform = true},
                           kAdamWholeUniform = {.lazy = false, .uniform = true};
constexpr StoreCase kStep = {.lookups = true}, kStepWhole = {.lookups = true, .lazy = false},
                    kStepUniform = {.lookups = true, .uniform = true},
                    kStepWholeUniform = {.lookups = true, .lazy = false, .uniform = true};
BENCHMARK_CAPTURE(RowStore, lookup, kLookup)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, sgd, kSgd)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, adam, kAdam)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, adam_whole, kAdamWhole)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, adam_uniform, kAdamUniform)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, adam_whole_uniform, kAdamWholeUniform)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, step, kStep)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, step_whole, kStepWhole)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, step_uniform, kStepUniform)->Apply(TableRows);
BENCHMARK_CAPTURE(RowStore, step_whole_uniform, kStepWholeUniform)->Apply(TableRows);
BENCHMARK_CAPTURE(RowsOnDisk, sgd, kSgd)->Apply(TableRows);
BENCHMARK_CAPTURE(RowsOnDisk, adam, kAdam)->Apply(TableRows);
BENCHMARK_CAPTURE(RowsOnDisk, step, kStep)->Apply(TableRows);
BENCHMARK_CAPTURE(RowMap, lookup, false)->Apply(TableRows);
BENCHMARK_CAPTURE(RowMap, sgd, true)->Apply(TableRows);

}  // namespace
}  // namespace penstock::bench
