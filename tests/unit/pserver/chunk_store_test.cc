#include "executor/pserver/memory/chunk_store.h"

#include <gtest/gtest.h>

#include <array>

#include "framework/ir/program.h"
#include "framework/tensor/chunk.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

TEST(ChunkStore, CutsElementwiseUpdatesIntoRowChunks) {
  ToyJob job;
  job.servers = {"a:1"};
  job.params = {{.name = "w", .shape = {6, 4}, .server = 0, .optimizer = "adam"}};
  const Program program = job.Pserver(0);
  roles::PserverFacts facts =
      protocol::ReadServer(SimOps(), program, *program.main().ops().back().op).value();
  Scope scope;
  job.Start(0, scope);
  const auto chunks = [&](std::size_t chunk_limit) {
    const auto store = pserver::ChunkStore::Make(program, facts, scope, chunk_limit).value();
    return std::pair(store->chunk_count(0), store->chunk_rows(0));
  };
  EXPECT_EQ(chunks(32), std::pair(std::size_t{3}, Dim{2}));
  EXPECT_EQ(chunks(70), std::pair(std::size_t{2}, Dim{4}));
  EXPECT_EQ(chunks(1), std::pair(std::size_t{6}, Dim{1}));  // a row is never cut
  EXPECT_EQ(chunks(kChunkBytes), std::pair(std::size_t{1}, Dim{6}));
  facts.params[0].elementwise = false;
  EXPECT_EQ(chunks(32), std::pair(std::size_t{1}, Dim{6}));
}

TEST(ChunkStore, ThePlanDecidesTheChunks) {
  ToyJob job;
  job.servers = {"a:1"};
  job.params = {{.name = "b", .shape = {6, 4}, .server = 0, .optimizer = "adam"},
                {.name = "w", .shape = {6, 4}, .server = 0, .optimizer = "adam"}};
  Program program = job.Pserver(0);
  Scope scope;
  job.Start(0, scope);
  const auto read = [&] { return protocol::ReadServer(SimOps(), program, *program.main().ops().back().op); };
  const auto chunk_rows = [&](int param, std::optional<std::size_t> chunk_limit = {}) {
    return pserver::ChunkStore::Make(program, read().value(), scope, chunk_limit).value()->chunk_rows(param);
  };
  EXPECT_EQ(chunk_rows(1), 6) << "without a plan by the planner's rule: 96 bytes are one chunk";
  program.mutable_meta().chunk_rows = {{"w", 4}};
  EXPECT_EQ(chunk_rows(1), 6) << "still without a plan";
  program.mutable_meta().plan = "a plan";
  EXPECT_EQ(chunk_rows(0), 6);
  EXPECT_EQ(chunk_rows(1), 4);
  EXPECT_EQ(chunk_rows(1, 32), 2) << "asked for, as tests do";
  for (const std::int64_t rows : {0, -1, 7}) {
    program.mutable_meta().chunk_rows = {{"w", rows}};
    EXPECT_EQ(read().status().id(), "E-server-chunk") << rows;
  }
}

// A trainer's gradient of rows: ids, then values.
std::vector<Payload> Parts(const std::vector<std::int64_t>& ids, const std::vector<float>& values,
                           std::size_t part_bytes) {
  std::string bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  std::vector<Payload> parts;
  for (std::size_t at = 0; at < bytes.size(); at += part_bytes)
    parts.push_back(Payload::Of(bytes.substr(at, part_bytes)));
  return parts;
}

pserver::RowIds Ids(const std::vector<std::int64_t>& ids) {
  return pserver::RowIds::Of(Parts(ids, {}, 1000).front());
}

struct TableStore {
  TableStore() {
    job.servers = {"a:1"};
    job.params = {{.name = "emb", .shape = {6, 2}, .server = 0, .optimizer = "sgd", .table = true}};
    program = job.Pserver(0);
    job.Start(0, scope);
    const roles::PserverFacts facts =
        protocol::ReadServer(SimOps(), program, *program.main().ops().back().op).value();
    store = pserver::ChunkStore::Make(program, facts, scope, 8).value();
  }
  ToyJob job;
  Program program;
  Scope scope;
  std::unique_ptr<pserver::ChunkStore> store;
};

TEST(ChunkStore, MergesFragmentedRows) {
  TableStore table;
  EXPECT_EQ(table.store->chunk_count(0), 1u);
  EXPECT_EQ(table.store->Shapes().front().pushed_row_bytes, 16u);
  const Tensor before = table.scope.Find("emb")->As<Tensor>().Clone();
  ASSERT_TRUE(table.store
                  ->Merge({.param = 0,
                           .chunk = 0,
                           .trainer = 0,
                           .step = 0,
                           .parts = Parts({4, 1, 4}, {1, 2, 3, 4, 5, 6}, 7),
                           .rows = 3})
                  .ok());
  ASSERT_TRUE(table.store->Merge({.param = 0, .chunk = 0, .trainer = 1, .step = 0, .parts = {}}).ok());
  SimBlockRunner runner;
  ASSERT_TRUE(table.store->Run({.param = 0, .chunk = 0, .step = 0}, runner).ok());
  const Tensor after = table.store->Gather({.param = 0, .ids = Ids({1, 4, 0})}).value();
  const float rate = 0.1f / 2;  // of two trainers' mean
  EXPECT_FLOAT_EQ(after.Span<float>()[0], before.Span<float>()[2] - rate * 3);
  EXPECT_FLOAT_EQ(after.Span<float>()[2], before.Span<float>()[8] - rate * (1 + 5));
  EXPECT_EQ(after.Span<float>()[4], before.Span<float>()[0]);
}

TEST(ChunkStore, UsesTheRateOfTheSchedule) {
  ToyJob job;
  job.servers = {"a:1"};
  job.params = {{.name = "w", .shape = {1, 2}, .server = 0, .optimizer = "sgd"}};
  job.lr_block = true;
  const Program program = job.Pserver(0);
  const roles::PserverFacts facts =
      protocol::ReadServer(SimOps(), program, *program.main().ops().back().op).value();
  Scope scope;
  job.Start(0, scope);
  const Tensor before = scope.Find("w")->As<Tensor>().Clone();
  *scope.Find("rate") = Variable();  // no startup program makes it
  const auto store = pserver::ChunkStore::Make(program, facts, scope, kChunkBytes).value();
  scope.Find("rate")->As<Tensor>() = TensorOf<float>({1}, {4});
  const std::string ones(reinterpret_cast<const char*>(std::array<float, 2>{1, 1}.data()), 8);
  for (int t = 0; t < job.trainers; ++t) {
    ASSERT_TRUE(
        store->Merge({.param = 0, .chunk = 0, .trainer = t, .step = 0, .parts = {Payload::Of(ones)}}).ok());
  }
  SimBlockRunner runner;
  ASSERT_TRUE(store->Run({.param = -1, .chunk = 0, .step = 0}, runner).ok());  // halves it
  const Status updated = store->Run({.param = 0, .chunk = 0, .step = 0}, runner);
  ASSERT_TRUE(updated.ok()) << updated.ToString();
  EXPECT_FLOAT_EQ(scope.Find("w")->As<Tensor>().Span<float>()[1], before.Span<float>()[1] - 2);
}

struct DenseStore {
  explicit DenseStore(int trainers) {
    job.servers = {"a:1"};
    job.trainers = trainers;
    job.params = {{.name = "w", .shape = {64, 512}, .server = 0, .optimizer = "sgd"}};
    program = job.Pserver(0);
    job.Start(0, scope);
    const roles::PserverFacts facts =
        protocol::ReadServer(SimOps(), program, *program.main().ops().back().op).value();
    store = pserver::ChunkStore::Make(program, facts, scope, std::size_t{1} << 20, 50000).value();
  }
  std::size_t bytes() const { return 64 * 512 * sizeof(float); }
  // All trainers' gradients are ones.
  void Update() {
    Tensor ones(DType::kFp32, {64, 512});
    std::fill(ones.Span<float>().begin(), ones.Span<float>().end(), 1.0f);
    for (int t = 0; t < job.trainers; ++t) {
      ASSERT_TRUE(store->Merge({.trainer = t, .parts = {Payload::Of(ones, 0, ones.bytes())}}).ok());
    }
    ASSERT_TRUE(store->Run({.param = 0, .chunk = 0, .step = 0}, runner).ok());
  }
  ToyJob job;
  Program program;
  Scope scope;
  SimBlockRunner runner;
  std::unique_ptr<pserver::ChunkStore> store;
};

TEST(ChunkStore, HoldsOneGradientSumUntilTheUpdate) {
  DenseStore dense(4);
  const float before = dense.scope.Find("w")->As<Tensor>().Span<float>()[7];
  for (int step = 0; step < 3; ++step) dense.Update();
  EXPECT_EQ(dense.store->pooled_bytes(), dense.bytes());
  EXPECT_FLOAT_EQ(dense.scope.Find("w")->As<Tensor>().Span<float>()[7], before - 3 * 0.1f);
}

TEST(ChunkStore, PublishesAVersionOnceAndReleasesIt) {
  DenseStore dense(2);
  dense.Update();
  const auto first = dense.store->Publish(0, 0, 1, 0, true);
  const std::string value = first->part(0).ToText();
  EXPECT_EQ(first->part_count(), 3u);
  EXPECT_EQ(dense.store->Publish(0, 0, 1, 0, true), first) << "a repeat";
  EXPECT_EQ(dense.store->Publish(0, 0, 1, 1, true), first);
  EXPECT_EQ(first.use_count(), 1) << "all have it";
  EXPECT_EQ(dense.store->Publish(0, 0, 1, 1, true)->part(0).ToText(), value)
      << "a repeat, still of this version";
  dense.Update();
  EXPECT_EQ(dense.store->Publish(0, 0, 1, 0, true)->part(0).ToText(), value) << "there was a copy yet";
  EXPECT_NE(dense.store->Publish(0, 0, 2, 0, true)->part(0).ToText(), value);
  EXPECT_EQ(dense.store->Publish(0, 0, 1, 1, true), nullptr) << "overwritten";
}

// One sum, one copy that is still being sent, and one for the next version; not one gradient per trainer.
TEST(ChunkStore, UsesMemoryOnlyForLiveValues) {
  DenseStore dense(4);
  for (std::uint64_t version = 1; version < 5; ++version) {
    dense.Update();
    for (int t = 0; t < 4; ++t) dense.store->Publish(0, 0, version, t, true);
  }
  EXPECT_EQ(dense.store->pooled_bytes(), dense.bytes());
}

TEST(ChunkStore, ReportsARowOutOfRange) {
  TableStore table;
  for (const std::int64_t id : {std::int64_t{6}, std::int64_t{-1}}) {
    EXPECT_EQ(
        table.store
            ->Merge(
                {.param = 0, .chunk = 0, .trainer = 1, .parts = Parts({2, id}, {1, 1, 1, 1}, 100), .rows = 2})
            .message(),
        StrCat("trainer 1 sent a gradient of row ", id, " of emb, which has 6"));
    EXPECT_EQ(table.store->CheckIds(0, 1, Ids({2, id})).message(),
              StrCat("trainer 1 asked for row ", id, " of emb, which has 6"));
  }
  EXPECT_EQ(table.store->CheckIds(0, 1, pserver::RowIds::Of(Payload::Of("123"))).id(), "E-rpc-row-bytes");
  EXPECT_TRUE(table.store->CheckIds(0, 1, Ids({0, 5, 5})).ok());
}

}  // namespace
}  // namespace penstock::test
