// Collective ops, run by an executor on each of 1 to 4 threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "operators/common/ring_sites.h"
#include "tests/support/thread_rings.h"

namespace penstock {
namespace {

using test::OnThreads;
using test::ThreadRings;

Program Parsed(const std::string& text) {
  Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

Tensor Floats(std::vector<float> values, Shape shape) {
  Tensor tensor(DType::kFp32, shape);
  std::copy(values.begin(), values.end(), tensor.Data<float>());
  return tensor;
}

std::vector<float> ValuesOf(const Scope& scope, const std::string& name) {
  const auto values = scope.Find(name)->As<Tensor>().Span<float>();
  return {values.begin(), values.end()};
}

Status RunIn(Scope& scope, const std::string& text, ThreadRings& rings) {
  exec::Executor executor(AllOps(), {.threads = 1, .rings = &rings});
  return executor.Run(Parsed(text), scope, {}, {}).status();
}

int RankOf(ThreadRings& rings) { return (*rings.Ring(0))->rank(); }

// x is [rank + 1, 10 * (rank + 1)] on each rank.
void ExpectOfAllRanks(const std::string& ops, const std::function<std::vector<float>(int ranks)>& is) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnThreads(ranks, [&](ThreadRings& rings) {
      Scope scope;
      const auto base = static_cast<float>(RankOf(rings) + 1);
      scope.FindOrCreate("x")->As<Tensor>() = Floats({base, 10 * base}, {2});
      const Status status =
          RunIn(scope, "program\nblock 0 {\n  persist x : f32[2]\n  persist out : f32[2]\n  " + ops + "\n}\n",
                rings);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(ValuesOf(scope, "out"), is(ranks));
      EXPECT_EQ(rings.begun, 1);
    });
  }
}

float SumTo(int ranks) { return static_cast<float>(ranks * (ranks + 1) / 2); }

TEST(CollectiveOps, SumAndMaximumCoverAllRanks) {
  const auto sum = [](int ranks) { return std::vector<float>{SumTo(ranks), 10 * SumTo(ranks)}; };
  const auto max = [](int ranks) {
    return std::vector<float>{static_cast<float>(ranks), 10 * static_cast<float>(ranks)};
  };
  ExpectOfAllRanks("out = c_allreduce_sum(X=x)", sum);
  ExpectOfAllRanks("out = c_allreduce_sum(X=x) {ring_id=1, use_calc_stream=true}", sum);
  ExpectOfAllRanks("out = c_allreduce_max(X=x)", max);
  ExpectOfAllRanks("out = c_allreduce_min(X=x)", [](int) { return std::vector<float>{1, 10}; });
  ExpectOfAllRanks("out = c_allreduce_prod(X=x)", [](int ranks) {
    float first = 1, second = 1;
    for (int rank = 1; rank <= ranks; ++rank) {
      first *= static_cast<float>(rank);
      second *= 10 * static_cast<float>(rank);
    }
    return std::vector<float>{first, second};
  });
  ExpectOfAllRanks("out = allreduce(X=x)", sum);
  ExpectOfAllRanks("out = allreduce(X=x) {reduce_type=2}", max);
  ExpectOfAllRanks("out = allreduce(X=x) {reduce_type=3}", [](int) { return std::vector<float>{1, 10}; });
}

// For parallel vectors the result is the mean.
TEST(CollectiveOps, AdasumCombinesRanksInPairs) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnThreads(ranks, [&](ThreadRings& rings) {
      Scope scope;
      const auto base = static_cast<float>(RankOf(rings) + 1);
      scope.FindOrCreate("x")->As<Tensor>() = Floats({base, 10 * base}, {2});
      const Status status = RunIn(scope,
                                  "program\nblock 0 {\n  persist x : f32[2]\n"
                                  "  x = c_allreduce_adasum(X=x)\n}\n",
                                  rings);
      if (ranks == 3) {
        EXPECT_EQ(status.id(), "E-collective-adasum") << status.ToString();
        return;
      }
      ASSERT_TRUE(status.ok()) << status.ToString();
      const std::vector<float> values = ValuesOf(scope, "x");
      EXPECT_NEAR(values[0], SumTo(ranks) / static_cast<float>(ranks), 1e-5);
      EXPECT_NEAR(values[1], 10 * SumTo(ranks) / static_cast<float>(ranks), 1e-4);
    });
  }
}

TEST(CollectiveOps, OverlapWithComputationUntilAwaited) {
  ExpectOfAllRanks("out = c_allreduce_sum(X=x)\n  out = c_sync_comm_stream(X=out)", [](int ranks) {
    return std::vector<float>{SumTo(ranks), 10 * SumTo(ranks)};
  });
}

TEST(CollectiveOps, BroadcastGatherAndScatter) {
  ExpectOfAllRanks("out = c_broadcast(X=x)", [](int) { return std::vector<float>{1, 10}; });
  ExpectOfAllRanks("out = broadcast(X=x)", [](int) { return std::vector<float>{1, 10}; });
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnThreads(ranks, [&](ThreadRings& rings) {
      Scope scope;
      const auto rank = static_cast<float>(RankOf(rings));
      scope.FindOrCreate("x")->As<Tensor>() = Floats({rank, rank + 10}, {2});
      const std::string size = std::to_string(ranks), all = std::to_string(2 * ranks);
      const Status status = RunIn(scope,
                                  "program\nblock 0 {\n  persist x : f32[2]\n  persist all : f32[" + all +
                                      "]\n  persist part : f32[2]\n  all = c_allgather(X=x) {nranks=" + size +
                                      "}\n  part = c_reducescatter(X=all) {nranks=" + size + "}\n}\n",
                                  rings);
      ASSERT_TRUE(status.ok()) << status.ToString();
      std::vector<float> expected;
      for (int r = 0; r < ranks; ++r) {
        expected.push_back(static_cast<float>(r));
        expected.push_back(static_cast<float>(r + 10));
      }
      EXPECT_EQ(ValuesOf(scope, "all"), expected);
      const auto times = static_cast<float>(ranks);
      EXPECT_EQ(ValuesOf(scope, "part"), (std::vector<float>{times * rank, times * (rank + 10)}));
    });
  }
}

// The broadcasting rank gets the sum of all gradients, the others get zero.
TEST(CollectiveOps, TheGradientOfABroadcastGoesToItsRoot) {
  OnThreads(3, [](ThreadRings& rings) {
    Scope scope;
    const int rank = RankOf(rings);
    scope.FindOrCreate("g")->As<Tensor>() = Floats({static_cast<float>(rank + 1), 2}, {2});
    const Status status = RunIn(
        scope, "program\nblock 0 {\n  persist g : f32[2]\n  g = c_broadcast_grad(X=g) {root=1}\n}\n", rings);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(ValuesOf(scope, "g"), rank == 1 ? std::vector<float>({6, 6}) : std::vector<float>({0, 0}));
  });
}

// Alternating small tensors of two types and a large one; each run reuses the buckets.
TEST(CollectiveOps, SmallTensorsShareABucketAndKeepTheirValues) {
  for (const std::size_t bucket : {std::size_t{0}, std::size_t{64}, CollectiveRings::kBucketBytes}) {
    OnThreads(3, [&](ThreadRings& rings) {
      rings.SetBucketBytes(bucket);
      Scope scope;
      const auto of = [&](float base) { return base + static_cast<float>(RankOf(rings)); };
      for (int run = 0; run < 3; ++run) {
        scope.FindOrCreate("a")->As<Tensor>() = Floats({of(1), of(2)}, {2});
        scope.FindOrCreate("b")->As<Tensor>() = Floats(std::vector<float>(40, of(5)), {40});
        scope.FindOrCreate("c")->As<Tensor>() = Floats({of(7)}, {1});
        Tensor whole(DType::kInt64, {1});
        *whole.Data<std::int64_t>() = 4;
        scope.FindOrCreate("n")->As<Tensor>() = std::move(whole);
        const Status status = RunIn(scope, R"(program
block 0 {
  persist a : f32[2]
  persist b : f32[40]
  persist c : f32[1]
  persist n : i64[1]
  a = c_allreduce_sum(X=a)
  n = c_allreduce_sum(X=n)
  b = c_allreduce_sum(X=b)
  c = c_allreduce_sum(X=c)
  a = c_sync_comm_stream(X=a)
}
)",
                                    rings);
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_EQ(ValuesOf(scope, "a"), (std::vector<float>{6, 9}));
        EXPECT_EQ(ValuesOf(scope, "b"), std::vector<float>(40, 18));
        EXPECT_EQ(ValuesOf(scope, "c"), std::vector<float>{24});
        EXPECT_EQ(*scope.Find("n")->As<Tensor>().Data<std::int64_t>(), 12);
      }
    });
  }
}

// Rank r has values at 0 and r + 1; the third case has too many of them to list separately.
TEST(CollectiveOps, SparseReductionEqualsDenseReduction) {
  for (const int ranks : {1, 2, 4}) {
    for (const std::size_t size : {std::size_t{64}, std::size_t{16}, std::size_t{5}}) {
      OnThreads(ranks, [&](ThreadRings& rings) {
        const auto rank = static_cast<std::size_t>(RankOf(rings));
        std::vector<float> own(size, 0.0f), expected(size, 0.0f);
        own[0] = 0.1f * static_cast<float>(rank + 1);
        own[rank + 1] = 2;
        for (int r = 0; r < ranks; ++r) {
          expected[0] += 0.1f * static_cast<float>(r + 1);
          expected[static_cast<std::size_t>(r) + 1] = 2;
        }
        Scope scope;
        scope.FindOrCreate("g")->As<Tensor>() = Floats(own, {static_cast<Dim>(size)});
        const std::string type = "f32[" + std::to_string(size) + "]";
        const Status status = RunIn(
            scope, "program\nblock 0 {\n  persist g : " + type + "\n  g = c_sparse_allreduce_sum(X=g)\n}\n",
            rings);
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_EQ(ValuesOf(scope, "g"), expected);
      });
    }
  }
}

// Rank r has rows 1 and r + 2, of ones; rank 1 has none.
TEST(CollectiveOps, SelectedRowsAreMergedOverAllRanks) {
  OnThreads(3, [](ThreadRings& rings) {
    Scope scope;
    const int rank = RankOf(rings);
    auto& rows = scope.FindOrCreate("g")->As<SelectedRows>();
    rows.height = 10;
    if (rank != 1) rows.rows = {rank + 2, 1};
    rows.ResetValue(DType::kFp32, {static_cast<Dim>(rows.rows.size()), 2});
    for (float& value : rows.value.Span<float>()) value = 1;
    const Status status = RunIn(
        scope, "program\nblock 0 {\n  persist g : rows<f32[10, 2]>\n  g = c_allreduce_sum(X=g)\n}\n", rings);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{1, 2, 4}));
    EXPECT_EQ(rows.height, 10);
    const auto values = rows.value.Span<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{2, 2, 1, 1, 1, 1}));
  });
}

TEST(CollectiveOps, CommInitJoinsTheListedRanks) {
  OnThreads(2, [](ThreadRings& rings) {
    Scope scope;
    const std::string text = R"(program
block 0 {
  persist nccl_id_0 : raw
  nccl_id_0 = c_gen_nccl_id() {rank=1, endpoint="b:1", other_endpoints=["a:1"]}
  () = c_comm_init(X=nccl_id_0) {nranks=2, rank=RANK}
}
)";
    const std::string rank = std::to_string(RankOf(rings)), other = std::to_string(1 - RankOf(rings));
    const auto with = [&](const std::string& number) {
      return std::string(text).replace(text.find("RANK"), 4, number);
    };
    const Status status = RunIn(scope, with(rank), rings);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(rings.joined, (std::vector<std::pair<std::string, int>>{{"a:1,b:1", 1}}));
    EXPECT_EQ(RunIn(scope, with(other), rings).id(), "E-collective-init");
  });
}

TEST(CollectiveOps, ReportMissingPrerequisites) {
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  scope.FindOrCreate("x")->As<Tensor>() = Floats({1}, {1});
  const auto sum = [](const std::string& attrs) {
    return "program\nblock 0 {\n  persist x : f32[1]\n  x = c_allreduce_sum(X=x)" + attrs + "\n}\n";
  };
  EXPECT_EQ(executor.Run(Parsed(sum("")), scope, {}, {}).status().id(), "E-collective-no-rings");
  OnThreads(1, [&](ThreadRings& rings) {
    EXPECT_EQ(RunIn(scope, sum(" {ring_id=7}"), rings).id(), "E-collective-no-ring");
    EXPECT_EQ(RunIn(scope,
                    "program\nblock 0 {\n  persist x : f32[1]\n  persist y : f32[3]\n"
                    "  y = c_allgather(X=x) {nranks=3}\n}\n",
                    rings)
                  .id(),
              "E-collective-ranks");
  });
}

// Each is rejected, with one rank and with two; no process ends, and none waits.
TEST(CollectiveOps, RefuseBadInput) {
  const std::string head =
      "program\nblock 0 {\n  persist x : f32[2]\n"
      "  persist s : i16[2]\n  persist none : f32[2]\n  persist odd : f32[3]\n"
      "  persist id : raw\n  ";
  const std::vector<std::string> bad = {
      "x = c_allreduce_sum(X=none)",
      "s = c_sparse_allreduce_sum(X=s)",
      "x = c_sparse_allreduce_sum(X=none)",
      "x = c_broadcast_grad(X=none)",
      "x = c_broadcast_grad(X=x) {root=3}",
      "s = c_allreduce_min(X=s)",
      "x = c_allreduce_prod(X=x) {ring_id=-1}",
      "s = c_allreduce_sum(X=s)",
      "x = c_allreduce_sum(X=x) {ring_id=-1}",
      "x = allreduce(X=x) {reduce_type=4}",
      "x = allreduce(X=x) {reduce_type=-1}",
      "x = broadcast(X=x) {root=2}",
      "x = c_broadcast(X=x) {root=-1}",
      "x = c_broadcast(X=none)",
      "x = c_allgather(X=x) {nranks=0}",
      "x = c_allgather(X=x) {nranks=-3}",
      "x = c_reducescatter(X=odd) {nranks=RANKS}",
      "x = c_reducescatter(X=x) {nranks=0}",
      "() = c_comm_init(X=id) {nranks=0, rank=0}",
      "() = c_comm_init(X=id) {nranks=2, rank=5}",
      "id = c_gen_nccl_id() {rank=7, endpoint=\"a:1\", other_endpoints=[\"b:1\"]}",
      "id = gen_nccl_id() {trainers=[\"a:1\"], trainer_id=3}",
      "id = gen_nccl_id() {trainers=[]:strings, trainer_id=0}",
      "id = gen_nccl_id() {trainers=[\"a:1\"], trainer_id=0, nccl_comm_num=0}",
  };
  for (const std::string& op : bad) {
    for (int ranks = 1; ranks <= 2; ++ranks) {
      OnThreads(ranks, [&](ThreadRings& rings) {
        Scope scope;
        scope.FindOrCreate("x")->As<Tensor>() = Floats({1, 2}, {2});
        scope.FindOrCreate("odd")->As<Tensor>() = Floats({1, 2, 3}, {3});
        scope.FindOrCreate("s")->As<Tensor>() = Tensor(DType::kInt16, {2});
        std::string text = op;
        if (const auto at = text.find("RANKS"); at != std::string::npos)
          text.replace(at, 5, std::to_string(ranks));
        // With one rank, each of three elements is a part.
        if (ranks == 1 && op.find("odd") != std::string::npos) return;
        EXPECT_FALSE(RunIn(scope, head + text + "\n}\n", rings).ok()) << ranks << " ranks: " << text;
      });
    }
  }
}

// An operation that this run left pending would write to another run's memory.
TEST(CollectiveOps, AFailedRunEndsPendingOperationsWithItsError) {
  OnThreads(2, [](ThreadRings& rings) {
    Scope scope;
    for (const char* name : {"x", "y"}) scope.FindOrCreate(name)->As<Tensor>() = Floats({1, 2}, {2});
    if (RankOf(rings) == 1) return;
    const Status status = RunIn(scope, R"(program
block 0 {
  persist x : f32[2]
  persist y : f32[2]
  x = c_allreduce_sum(X=x)
  y = c_allreduce_sum(X=y) {ring_id=5}
  x = c_sync_comm_stream(X=x)
}
)",
                                rings);
    EXPECT_FALSE(status.ok());
  });
}

TEST(CollectiveOps, RunningOutOfMemoryEndsPendingOperations) {
  OnThreads(2, [](ThreadRings& rings) {
    if (RankOf(rings) == 1) return;
    Scope scope;
    scope.FindOrCreate("x")->As<Tensor>() = Floats({1, 2}, {2});
    Tensor& extent = scope.FindOrCreate("extent")->As<Tensor>();
    extent = Tensor(DType::kInt64, {1});
    extent.Data<std::int64_t>()[0] = std::int64_t{1} << 44;
    const Status status = RunIn(scope, R"(program
block 0 {
  persist x : f32[2]
  persist extent : i64[1]
  var large : f32[-1]
  x = c_allreduce_sum(X=x)
  large = fill_constant(ShapeTensor=extent) {value=1.0, dtype=5}
}
)",
                                rings);
    EXPECT_EQ(status.id(), "E-run-memory") << status.ToString();
    // The group has failed: what was in progress no longer waits for rank 1.
    EXPECT_EQ((*rings.Ring(0))->Barrier({}).Wait().id(), "E-run-memory");
  });
}

TEST(RingSites, InsertedOpsTakeTheLineOfTheInputsOp) {
  const Program program = Parsed(R"(program
block 0 {
  persist x : f32[2]
  persist g : f32[2]
  persist h : f32[2]
  g = scale(X=x) at "model.py:7 in net"
  h = scale(X=g)
  h = c_allreduce_sum(X=h)
  g = c_allreduce_sum(X=g) at "train.py:3"
  x = c_allreduce_sum(X=x)
}
)");
  const RingSites sites(program.main());
  const auto where = [&](std::size_t op) { return *sites.Find(*program.main().ops()[op].op); };
  EXPECT_EQ(where(2), "model.py:7 in net");
  EXPECT_EQ(where(3), "train.py:3");
  EXPECT_EQ(where(4), "");
  EXPECT_EQ(sites.Find(*program.main().ops()[0].op), nullptr);
}

}  // namespace
}  // namespace penstock
