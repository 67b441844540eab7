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
  roles::PserverFacts async = server.facts;
  async.mode = roles::ServeMode::kAsync;
  EXPECT_EQ(Checkpoints::Make(disk, Every5(), async, server.program, 0).status().id(), "E-checkpoint-mode");
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
