// A server's part of a checkpoint: what it contains, and what it is restored into.
#include "executor/pserver/checkpoints.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {
namespace {

using pserver::CheckpointOptions;
using pserver::Checkpoints;
using pserver::ChunkStore;

struct Server {
  explicit Server(std::string optimizer = "adam") {
    job.servers = {"a:1"};
    job.params = {{.name = "w", .shape = {6, 4}, .server = 0, .optimizer = std::move(optimizer)}};
    program = job.Pserver(0);
    facts = protocol::ReadServer(SimOps(), program, *program.main().ops().back().op).value();
    job.Start(0, scope);
  }
  void MakeStore() { store = ChunkStore::Make(program, facts, scope, 32).value(); }
  Status Save(Disk& disk, std::uint64_t step, CheckpointOptions options) {
    auto made = Checkpoints::Make(disk, std::move(options), facts, program, 0);
    if (!made.ok()) return std::move(made).status();
    Checkpoints& checkpoints = **made;
    for (int chunk = 0; chunk < 3; ++chunk) store->CopyState(0, chunk, *checkpoints.CopyFor(0, *store));
    checkpoints.PutShared(store->CopyShared());
    return checkpoints.Write(step, checkpoints.Take());
  }
  std::string BytesOf(const std::string& name) const {
    const Tensor& tensor = *scope.Find(name)->If<Tensor>();
    return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
  }

  ToyJob job;
  Program program;
  roles::PserverFacts facts;
  Scope scope;
  std::unique_ptr<ChunkStore> store;
};

CheckpointOptions Every5() { return {.folder = "ckpt", .every = 5, .resume = {}, .servers = {"a:1"}}; }
CheckpointOptions Resume(std::uint64_t step) {
  return {.folder = "ckpt", .every = 5, .resume = step, .servers = {"a:1"}};
}

TEST(Checkpoints, APartRestoresParametersAndState) {
  FaultyDisk disk;
  Server first;
  float number = 0;
  Tensor& w = first.scope.Find("w")->As<Tensor>();
  for (Dim i = 0; i < w.count(); ++i) w.Data<float>()[i] = number++;
  first.MakeStore();
  ASSERT_TRUE(first.Save(disk, 5, Every5()).ok());
  const auto found = checkpoint::FindCheckpoints(disk, "ckpt").value();
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].whole()) << found[0].lacks;
  EXPECT_GT(found[0].parts[0].values.size(), 1U) << "the optimizer's state is there too";
  EXPECT_EQ(found[0].parts[0].values[0].name, "w");
  EXPECT_EQ(found[0].parts[0].values[0].type, "f32[6, 4]");

  Server second;
  const auto checkpoints = Checkpoints::Make(disk, Resume(5), second.facts, second.program, 0);
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status().ToString();
  ASSERT_NE(second.BytesOf("w"), first.BytesOf("w"));
  const auto restored = (*checkpoints)->Restore(second.scope);
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  for (const std::string& name : *restored) EXPECT_EQ(second.BytesOf(name), first.BytesOf(name)) << name;
  EXPECT_TRUE(restored->contains("w"));
}

TEST(Checkpoints, AnUpdateCopiesAChunkBeforeItChangesIt) {
  Server server;
  server.MakeStore();
  ChunkStore& store = *server.store;
  const std::string w = server.BytesOf("w");
  const auto copy = store.BeginStateCopy(0), later = store.BeginStateCopy(0);
  for (int chunk = 0; chunk < 3; ++chunk) store.BeginCut(0, chunk, copy);
  store.CopyCut(0, 0);
  SimBlockRunner runner;
  for (int chunk = 0; chunk < 3; ++chunk) {
    for (int trainer = 0; trainer < server.job.trainers; ++trainer) {
      const Payload gradient = Payload::Of(std::string(32, '?'));
      ASSERT_TRUE(
          store.Merge({.param = 0, .chunk = chunk, .trainer = trainer, .step = 0, .parts = {gradient}}).ok());
    }
    ASSERT_TRUE(store.Run({.param = 0, .chunk = chunk, .step = 0}, runner).ok());
    store.CopyCut(0, chunk);
    store.CopyState(0, chunk, *later);
  }
  const auto bytes_of = [](const pserver::StateCopy& state) {
    const Tensor& tensor = state.tensors.front().second;
    return std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  };
  EXPECT_EQ(bytes_of(*copy), w);
  EXPECT_EQ(bytes_of(*later), server.BytesOf("w"));
  EXPECT_NE(server.BytesOf("w"), w);
}

TEST(Checkpoints, ACheckpointOfAnotherJobIsRefused) {
  FaultyDisk disk;
  Server first;
  first.MakeStore();
  ASSERT_TRUE(first.Save(disk, 5, Every5()).ok());
  Server other("sgd");
  other.scope.Find("w")->As<Tensor>() = Tensor(DType::kFp32, {5, 4});
  const auto checkpoints = Checkpoints::Make(disk, Resume(5), other.facts, other.program, 0);
  const Status differs = (*checkpoints)->Restore(other.scope).status();
  EXPECT_EQ(differs.id(), "E-checkpoint-differs");
  EXPECT_EQ(differs.message(),
            "ckpt/step-5 is a checkpoint of another job: its w is f32[6, 4], here it is f32[5, 4]");
  Server momentum("momentum");
  const auto sgd = Checkpoints::Make(disk, Resume(5), momentum.facts, momentum.program, 0);
  ASSERT_TRUE((*sgd)->Restore(momentum.scope).ok());
  momentum.MakeStore();
  EXPECT_EQ(
      (*sgd)->Complete(momentum.scope, *momentum.store).message(),
      "ckpt/step-5 is a checkpoint of another job: pserver 0 has w_velocity, which the checkpoint lacks");
}

// Rows of these ids, each with its id as value.
SelectedRows RowsById(DType type, std::vector<std::int64_t> ids) {
  SelectedRows rows{.rows = ids, .height = 100, .value = Tensor(type, {static_cast<Dim>(ids.size()), 1})};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (type == DType::kFp32) rows.value.Data<float>()[i] = static_cast<float>(ids[i]);
    if (type == DType::kInt64) rows.value.Data<std::int64_t>()[i] = ids[i];
  }
  return rows;
}

TEST(Checkpoints, RowsOfATableAndWhatTheyMissComeFromAllParts) {
  FaultyDisk disk;
  checkpoint::Writer writer(disk, {.folder = "ckpt"});
  for (int part = 0; part < 2; ++part) {
    std::vector<checkpoint::Value> values(3);
    values[0].entry = {.name = "t", .of = "t", .row_begin = {}, .rows = true, .type = "f32[2, 1]"};
    values[0].value.As<SelectedRows>() = RowsById(DType::kFp32, {part + 4, part + 8});
    values[1].entry = {.name = "t@VERSIONS",
                       .kind = checkpoint::ValueKind::kHistory,
                       .of = "t",
                       .row_begin = {},
                       .rows = true,
                       .type = "i64[2, 1]"};
    values[1].value.As<SelectedRows>() = RowsById(DType::kInt64, {part + 4, part + 8});
    values[2].entry = {.name = "t@HISTORY",
                       .kind = checkpoint::ValueKind::kHistory,
                       .of = "t",
                       .row_begin = 0,
                       .type = "i64[2]"};
    values[2].value.As<Tensor>() = Tensor(DType::kInt64, {2});
    std::memset(values[2].value.As<Tensor>().raw(), 1, 16);
    ASSERT_TRUE(writer.Write({.step = 5, .server = part, .servers = 2, .values = {}}, values).ok());
  }
  roles::PserverFacts facts;
  facts.address = "c:1";
  facts.mode = roles::ServeMode::kSync;
  facts.params.push_back({.param = {.name = "t", .shape = {100, 1}}, .by_id = true, .logical = "t"});
  Program program;
  Var table = TensorVar("t", DType::kFp32, {100, 1});
  table.kind = VarKind::kSelectedRows;
  table.persistable = true;
  program.MutableBlock(0).SetVar(std::move(table));
  Scope scope;
  scope.FindOrCreate("t")->As<SelectedRows>() = RowsById(DType::kFp32, {});
  CheckpointOptions options = Resume(5);
  options.servers = {"a:1", "b:1", "c:1"};
  const auto checkpoints = Checkpoints::Make(disk, options, facts, program, 0);
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status().ToString();
  const auto restored = (*checkpoints)->Restore(scope);
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(*restored, (std::set<std::string>{"t", "t@HISTORY", "t@VERSIONS"}));
  EXPECT_EQ(scope.Find("t")->If<SelectedRows>()->rows, (std::vector<std::int64_t>{5, 8}));
  const SelectedRows& versions = *scope.Find("t@VERSIONS")->If<SelectedRows>();
  EXPECT_EQ(versions.rows, (std::vector<std::int64_t>{5, 8}));
  EXPECT_EQ(versions.value.Data<std::int64_t>()[1], 8);
  EXPECT_EQ(scope.Find("t@HISTORY")->If<Tensor>()->count(), 2);
}

TEST(Checkpoints, TheFolderMustFitTheJob) {
  FaultyDisk disk;
  Server server;
  server.MakeStore();
  EXPECT_EQ(Checkpoints::Make(disk, {.folder = "ckpt", .every = 5, .servers = {"b:1"}}, server.facts,
                              server.program, 0)
                .status()
                .id(),
            "E-checkpoint-servers");
  EXPECT_EQ(Checkpoints::Make(disk, Every5(), server.facts, server.program, 1).status().id(),
            "E-checkpoint-mode");
  roles::PserverFacts geo = server.facts;
  geo.mode = roles::ServeMode::kGeo;
  EXPECT_TRUE(Checkpoints::Make(disk, Every5(), geo, server.program, 0).ok());
  CheckpointOptions by_time = Every5();
  by_time.share = 0.03;
  EXPECT_EQ(Checkpoints::Make(disk, by_time, geo, server.program, 0).status().id(), "E-checkpoint-mode");
  roles::PserverFacts delayed = server.facts;
  delayed.mode = roles::ServeMode::kAsync;
  EXPECT_TRUE(Checkpoints::Make(disk, Every5(), delayed, server.program, 0).ok());
  delayed.params.front().backups = {"w.0.trainer_0.bak", "w.0.trainer_1.bak"};
  EXPECT_EQ(Checkpoints::Make(disk, Every5(), delayed, server.program, 0).status().id(), "E-checkpoint-mode");
  roles::PserverFacts hybrid = server.facts;
  hybrid.job_facts = "works in mode hybrid, a policy 1\nhas random seed 1\n";
  EXPECT_EQ(Checkpoints::Make(disk, Every5(), hybrid, server.program, 0).status().id(), "E-checkpoint-mode");
  ASSERT_TRUE(server.Save(disk, 5, Every5()).ok());
  EXPECT_EQ(Checkpoints::Make(disk, Every5(), server.facts, server.program, 0).status().message(),
            "ckpt has checkpoints of an earlier job, the last of step 5");
  EXPECT_EQ(Checkpoints::Make(disk, Resume(0), server.facts, server.program, 0).status().id(),
            "E-checkpoint-newer");
  const auto later = Checkpoints::Make(disk, Resume(10), server.facts, server.program, 0);
  EXPECT_EQ((*later)->Restore(server.scope).status().id(), "E-checkpoint-whole");
}

}  // namespace
}  // namespace penstock::test
