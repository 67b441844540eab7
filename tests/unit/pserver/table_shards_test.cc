// A table in several shards has the bytes that it has in one: rows, states, copies, checkpoints.
#include <random>

#include "tests/support/faulty_disk.h"
#include "tests/unit/pserver/saved_table.h"

namespace penstock::test {
namespace {

constexpr int kStepsOfShards = 16;

std::vector<std::int64_t> SomeIds() { return {-4, 50, 0, 3, -4, 7, 8, 1, 2}; }

// Few ids, some twice; every third step lists none.
RowGradient DrawnIn(int step, std::mt19937_64& random) {
  RowGradient gradient;
  gradient.ids.resize(step % 3 == 2 ? 0 : random() % 9);
  for (std::int64_t& id : gradient.ids) id = static_cast<std::int64_t>(random() % 13) - 4;
  std::vector<float> values(gradient.ids.size() * kWidth);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 997 - 1;
  gradient.values.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return gradient;
}

void TrainShards(TableServer& server, int begin, int end, const std::function<void(int)>& after_step) {
  for (int step = begin; step < end; ++step) {
    std::mt19937_64 random(static_cast<std::uint64_t>(step));
    server.Step({DrawnIn(step, random), DrawnIn(step + 1, random)});
    for (int shard = 0; shard < server.shards(); ++shard) {
      if (!server.store().BeginSweep(0, shard) || step % 3 == 0) continue;
      while (server.store().Sweep(0, shard)) {
      }
    }
    after_step(step);
  }
}

std::map<std::string, std::string> BytesOfCopy(const pserver::TableCopy& copy) {
  std::map<std::string, std::string> bytes = {{"t", BytesOf(copy.rows.value) + TextOf(copy.rows.rows)}};
  for (const auto& [name, tensor] : copy.state) bytes[name] = BytesOf(tensor);
  bytes["scalars"] = StrCat(copy.scalars, " ", copy.constants);
  if (!copy.life) return bytes;
  bytes["life"] = BytesOf(copy.life->headers.value) + TextOf(copy.life->headers.rows);
  bytes["clock"] = BytesOf(copy.life->clock);
  return bytes;
}

// All that can be observed of a table: what lookups of the last two versions read, copies, and the end.
std::vector<std::map<std::string, std::string>> Observed(const RoleSet& roles, int shards, bool keeps) {
  TableServer server(roles, true, shards);
  if (keeps) server.store().KeepVersions();
  std::vector<std::map<std::string, std::string>> seen;
  TrainShards(server, 0, kStepsOfShards, [&](int step) {
    const auto version = static_cast<std::uint64_t>(step + 1);
    seen.push_back(BytesOfCopy(server.Copied()));
    seen.back()["read"] = BytesOf(server.Read(SomeIds(), version, 3));
    if (keeps) seen.back()["last"] = BytesOf(server.Read(SomeIds(), version - 1, -1));
    std::vector<pserver::TableCopy> saved;
    for (int shard = 0; shard < server.shards(); ++shard)
      saved.push_back(*server.store().CopyForSave(0, shard));
    for (const auto& [name, bytes] : BytesOfCopy(pserver::JoinShards(std::move(saved))))
      seen.back()["saved " + name] = bytes;
  });
  std::uint64_t entered = 0;
  for (int shard = 0; shard < server.shards(); ++shard)
    entered += server.store().RowCountsOf(0, shard).entered;
  seen.push_back(server.Published());
  seen.back()["entered"] = StrCat(entered);
  return seen;
}

bool MayHaveShards(const Optimizer& optimizer) {
  return optimizer.by_row && optimizer.name != "momentum" && optimizer.name != "nesterov";
}

TEST(TableShards, ShardsHaveTheBytesOfOneShard) {
  int shards = 1;
  for (const Optimizer& optimizer : TableOptimizers()) {
    for (const char* policy : {"", "entry count 2, evict unseen 1"}) {
      const RoleSet roles = RolesOf(optimizer, "f32", 2, policy);
      shards = shards % 4 + 2;
      SCOPED_TRACE(StrCat(optimizer.name, " ", policy, ", ", shards, " shards"));
      EXPECT_EQ(TableServer(roles, true, shards).shards(), MayHaveShards(optimizer) ? shards : 1);
      EXPECT_EQ(Observed(roles, shards, shards % 2 == 0), Observed(roles, 1, shards % 2 == 0));
    }
  }
}

TEST(TableShards, ATableHasSeveralByItsSizeOnlyWhereAllRowsAreIndependent) {
  const Optimizer sgd = TableOptimizers().front();
  EXPECT_EQ(TableServer(RolesOf(sgd, "f32", 1), false, 3).shards(), 1) << "on columns";
  EXPECT_EQ(TableServer(RolesOf(sgd, "f32", 1, "budget_mb 1"), true, 3).shards(), 1);
  EXPECT_EQ(TableServer(RolesOf(sgd, "f32", 1, "evict unseen 1"), true, 3).shards(), 3);
  TableServer small(RolesOf(sgd, "f32", 1), true);
  const auto by_size = [&](Dim rows, int most) {
    roles::PserverFacts facts = small.facts();
    facts.params[0].param.shape = {rows, kWidth};
    return pserver::ChunkStore::Make(small.program(), facts, small.scope(), {}, kMaxBodyBytes, {.most = most})
        .value()
        ->chunk_count(0);
  };
  EXPECT_EQ(by_size(100, 8), 1u);
  EXPECT_EQ(by_size(1'000'000, 8), 8u) << "76 MB";
  EXPECT_EQ(by_size(200'000, 8), 3u) << "15 MB";
  EXPECT_EQ(by_size(1'000'000, 1), 1u);
}

// With other numbers of shards before and after.
TEST(TableShards, ACheckpointContinuesInAnyNumberOfShards) {
  for (const Optimizer& optimizer : TableOptimizers()) {
    for (const char* policy : {"", "entry count 2, evict unseen 3"}) {
      if (!MayHaveShards(optimizer)) continue;
      SCOPED_TRACE(StrCat(optimizer.name, " ", policy));
      const RoleSet roles = RolesOf(optimizer, "f32", 2, policy);
      TableServer whole(roles, true), first(roles, true, 3), second(roles, true, 2);
      TrainShards(whole, 0, kStepsOfShards, [](int) {});
      TrainShards(first, 0, 8, [](int) {});
      FaultyDisk disk;
      const auto checkpoints = [&](const TableServer& server, std::optional<std::uint64_t> resume) {
        return pserver::Checkpoints::Make(
                   disk, {.folder = "ckpt", .every = 8, .resume = resume, .servers = {"a:1"}}, server.facts(),
                   server.program(), 0)
            .value();
      };
      const auto writer = checkpoints(first, {});
      WriteRows(first, *writer, 8);
      ASSERT_TRUE(writer->Write(8, writer->Take()).ok());
      const auto reader = checkpoints(second, 8);
      const auto restored = reader->Restore(second.scope());
      ASSERT_TRUE(restored.ok()) << restored.status().ToString();
      const Status completed = reader->Complete(second.scope(), second.store());
      ASSERT_TRUE(completed.ok()) << completed.ToString();
      EXPECT_EQ(BytesOfCopy(second.Copied()), BytesOfCopy(first.Copied()));
      TrainShards(second, 8, kStepsOfShards, [](int) {});
      EXPECT_EQ(BytesOfCopy(second.Copied()), BytesOfCopy(whole.Copied()));
      EXPECT_EQ(second.Published(), whole.Published());
    }
  }
}

TEST(TableShards, RowsOfAnotherShardAreRefused) {
  TableServer server(RolesOf(TableOptimizers().front(), "f32", 1), true, 2);
  std::int64_t id = 0;
  while (protocol::ShardOf(id, 2) != 1) ++id;
  const pserver::RowIds ids = pserver::RowIds::Of(Payload::Of(TextOf({id})));
  EXPECT_TRUE(server.store().CheckShard({.trainer = 1, .param = 0, .chunk = 1, .ids = ids}).ok());
  const Status asked = server.store().CheckShard({.trainer = 1, .param = 0, .chunk = 0, .ids = ids});
  EXPECT_EQ(asked.id(), "E-rpc-row");
  EXPECT_EQ(asked.message(),
            StrCat("trainer 1 asked for row ", id, " of t in shard 0 of 2, which does not have it"));
  const Status sent =
      server.store().Merge({.param = 0,
                            .chunk = 0,
                            .trainer = 0,
                            .parts = {Payload::Of(TextOf({id}) + std::string(kWidth * sizeof(float), '\0'))},
                            .rows = 1});
  EXPECT_EQ(sent.id(), "E-rpc-row");
}

}  // namespace
}  // namespace penstock::test
