#include "executor/schedule/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/toy_ops.h"

namespace penstock {
namespace {

using test::Filled;
using test::ToyOps;
using test::ToyProgram;
using test::TwoAdds;
using test::TwoFeeds;
using test::Values;

const std::vector<std::string> kNothing;

std::vector<float> Floats(const Variable& variable) {
  const Tensor& tensor = *variable.If<Tensor>();
  return {tensor.Data<float>(), tensor.Data<float>() + tensor.count()};
}

// Writes the number of threads that it may use.
class Threads : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    threads_ = k.threads();
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    k[out_].Data<float>()[0] = static_cast<float>(threads_);
    return OkStatus();
  }

 private:
  Out<"Out"> out_;
  int threads_ = 0;
};

TEST(Executor, RunsOpsInOrderAndReturnsFetches) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out", "h"};
  auto out = executor.Run(p.program, scope, TwoFeeds(1, 1, 10), fetches);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{12, 12}));
  EXPECT_EQ(Floats((*out)[1]), (std::vector<float>{11, 11}));
}

TEST(Executor, KeepsOneSpecialisationForEachShape) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out"};
  for (const Dim rows : {1, 3, 1, 3, 3}) {
    auto out = executor.Run(p.program, scope, TwoFeeds(rows, 1, 2), fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), std::vector<float>(static_cast<std::size_t>(rows) * 2, 4));
  }
  EXPECT_EQ(executor.stats().compiled_count, 1);
  EXPECT_EQ(executor.stats().specialised_count, 2);
  EXPECT_EQ(executor.stats().fast_run_count, 3);
  EXPECT_EQ(executor.stats().late_step_count, 0);
}

TEST(Executor, AnOpWithFewElementsGetsOneThread) {
  OpRegistry ops;
  ops.Add("toy_threads")
      .Doc("Threads.", "")
      .Input("X", "", Only(DType::kFp32))
      .Output("Out", "", SameTypeAs("X"))
      .InferShape([](InferContext& c) { return c.SetShape("Out", {1}); })
      .KernelForAnyType<Cpu, Threads>()
      .NoGrad();
  ASSERT_TRUE(ops.Finish().ok());
  exec::Executor executor(ops, {.threads = 3});
  Scope scope;
  ToyProgram p;
  p.Data("x", {kUnknownDim, 2});
  p.Temporary("threads", {1});
  p.Add("toy_threads", {{"X", "x"}}, {{"Out", "threads"}});
  const std::vector<std::string> fetches = {"threads"};
  for (const auto& [rows, threads] : {std::pair<Dim, float>{1, 1}, {8000, 1}, {9000, 3}}) {
    const std::vector<exec::Feed> feeds = {{"x", Filled({rows, 2}, 0)}};
    auto out = executor.Run(p.program, scope, feeds, fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), std::vector<float>{threads}) << rows << " rows";
  }
}

TEST(Executor, AChangedProgramIsCompiledAgain) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out"};
  ASSERT_TRUE(executor.Run(p.program, scope, TwoFeeds(1, 1, 2), fetches).ok());
  p.Add("toy_add", {{"X", "out"}, {"Y", "x"}}, {{"Out", "out"}});
  auto out = executor.Run(p.program, scope, TwoFeeds(1, 1, 2), fetches);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{5, 5}));
}

TEST(Executor, PersistablesAreUpdatedInPlaceInTheRootScope) {
  exec::Executor executor(ToyOps());
  Scope root;
  Scope scope(&root);
  ToyProgram startup;
  startup.Persistable("w", {2});
  startup.Add("toy_fill", {}, {{"Out", "w"}}, 0, {{"shape", std::vector<std::int64_t>{2}}, {"value", 5.0f}});
  ASSERT_TRUE(executor.Run(startup.program, scope, {}, kNothing).ok());
  ASSERT_NE(root.FindLocal("w"), nullptr);
  EXPECT_EQ(scope.FindLocal("w"), nullptr);

  ToyProgram p;
  p.Persistable("w", {2});
  p.Data("g", {2});
  p.Add("toy_step", {{"Param", "w"}, {"Grad", "g"}}, {{"ParamOut", "w"}});
  const float* before = root.Find("w")->As<Tensor>().Data<float>();
  const std::vector<exec::Feed> feeds = {{"g", Values({1, 2})}};
  const std::vector<std::string> fetches = {"w"};
  auto out = executor.Run(p.program, scope, feeds, fetches);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_TRUE(executor.Run(p.program, scope, feeds, kNothing).ok());
  EXPECT_EQ(root.Find("w")->As<Tensor>().Data<float>(), before);
  EXPECT_EQ(Floats(*root.Find("w")), (std::vector<float>{3, 1}));
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{4, 3})) << "a fetched parameter is a copy";
}

TEST(Executor, RebindingANameIsDetected) {
  exec::Executor executor(ToyOps());
  ToyProgram p;
  p.Persistable("w", {-1});
  p.Temporary("out", {-1});
  p.Add("toy_add", {{"X", "w"}, {"Y", "w"}}, {{"Out", "out"}});
  const std::vector<std::string> fetches = {"out"};
  Scope scope;
  scope.FindOrCreate("w")->As<Tensor>() = Values({1, 2});
  ASSERT_TRUE(executor.Run(p.program, scope, {}, fetches).ok());
  auto bound = std::make_shared<Variable>();
  bound->As<Tensor>() = Values({4, 5, 6});
  scope.Bind("w", bound);
  auto out = executor.Run(p.program, scope, {}, fetches);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{8, 10, 12}));
  scope.Erase("w");
  EXPECT_EQ(executor.Run(p.program, scope, {}, fetches).status().id(), "E-run-uninitialized");
}

TEST(Executor, LaterRunsDoNotOverwriteFetchedTensors) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  const std::vector<std::string> fetches = {"out", "h"};
  std::vector<std::vector<Variable>> all;
  for (int i = 0; i < 5; ++i) {
    auto out = executor.Run(p.program, scope, TwoFeeds(1, 1, static_cast<float>(i)), fetches);
    ASSERT_TRUE(out.ok());
    all.push_back(*std::move(out));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Floats(all[static_cast<std::size_t>(i)][0])[0], static_cast<float>(i + 2));
    EXPECT_EQ(Floats(all[static_cast<std::size_t>(i)][1])[0], static_cast<float>(i + 1));
  }
}

TEST(Executor, SentTensorsAreNotOverwrittenWhileReferenced) {
  test::Sent().clear();
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p = TwoAdds();
  p.Temporary("late", {-1, 2});
  p.Temporary("later", {-1, 2});
  p.Add("toy_send", {{"X", "h"}}, {});
  // Temporaries that could have reused h's memory.
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "late"}});
  p.Add("toy_add", {{"X", "late"}, {"Y", "x"}}, {{"Out", "later"}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(executor.Run(p.program, scope, TwoFeeds(1, 1, static_cast<float>(i)), kNothing).ok());
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(test::Sent()[static_cast<std::size_t>(i)].Data<float>()[0], static_cast<float>(i + 1));
  }
  test::Sent().clear();
}

TEST(Executor, FedMemoryIsReadInPlaceAndReleased) {
  exec::Executor executor(ToyOps());
  Scope scope;
  const ToyProgram p = TwoAdds();
  std::vector<exec::Feed> feeds = TwoFeeds(1, 1, 2);
  ASSERT_TRUE(executor.Run(p.program, scope, feeds, kNothing).ok());
  EXPECT_EQ(feeds[0].tensor.buffer().use_count(), 1);
  const std::vector<std::string> fetches = {"x"};
  auto fetched = executor.Run(p.program, scope, feeds, fetches);
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_EQ(feeds[0].tensor.buffer().use_count(), 1);
  EXPECT_EQ(Floats((*fetched)[0]), (std::vector<float>{1, 1}));
}

TEST(Executor, AnOpThatWritesItsFedInputWritesACopy) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {2});
  p.Data("g", {2});
  p.Add("toy_step", {{"Param", "x"}, {"Grad", "g"}}, {{"ParamOut", "x"}});
  const std::vector<exec::Feed> feeds = {{"x", Values({5, 5})}, {"g", Values({1, 2})}};
  const std::vector<std::string> fetches = {"x"};
  auto out = executor.Run(p.program, scope, feeds, fetches);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{4, 3}));
  EXPECT_EQ(feeds[0].tensor.Data<float>()[0], 5);
}

TEST(Executor, LoDFollowsTheRows) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("twice", {-1});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "twice"}});
  const std::vector<std::string> fetches = {"twice"};
  const std::vector<LoD> offsets = {{{0, 1, 3}}, {{0, 2, 3}}, {}, {{0, 2}, {0, 2, 3}}};
  for (const LoD& lod : offsets) {
    std::vector<exec::Feed> feeds = {{"x", Values({1, 2, 3})}};
    feeds[0].tensor.set_lod(lod);
    auto out = executor.Run(p.program, scope, feeds, fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ((*out)[0].As<Tensor>().lod(), lod);
  }
}

TEST(Executor, HandlesValueDependentShapes) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("some", {-1});
  p.Temporary("twice", {-1});
  p.Temporary("all", {-1});
  p.Add("toy_positive", {{"X", "x"}}, {{"Out", "some"}});
  p.Add("toy_add", {{"X", "some"}, {"Y", "some"}}, {{"Out", "twice"}});
  p.Add("toy_add", {{"X", "x"}, {"Y", "x"}}, {{"Out", "all"}});
  const std::vector<std::string> fetches = {"twice", "all"};
  const std::vector<std::vector<float>> inputs = {{1, -1, 2}, {3, 4, 5}, {-1, -1, -1}, {1, -1, 2}};
  const std::vector<std::vector<float>> twice = {{2, 4}, {6, 8, 10}, {}, {2, 4}};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<exec::Feed> feeds = {{"x", Values(inputs[i])}};
    auto out = executor.Run(p.program, scope, feeds, fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ(Floats((*out)[0]), twice[i]);
    EXPECT_EQ((*out)[1].As<Tensor>().count(), 3);
  }
  EXPECT_EQ(executor.stats().late_step_count, 1) << "only what reads the value-dependent shape";
}

TEST(Executor, StepsOfSeveralUnplannedShapesKeepTheirKernels) {
  OpRegistry ops;
  static std::atomic<int> prepared = 0;
  class Counted : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      ++prepared;
      k.Bind(x_, out_);
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      k[out_].CopyFrom(k[x_]);
      return OkStatus();
    }

   private:
    In<"X"> x_;
    Out<"Out"> out_;
  };
  test::RegisterToyOps(ops);
  ops.Add("toy_counted")
      .Doc("Copies.", "Copies.")
      .Input("X", "any", AnyType())
      .Output("Out", "X", SameTypeAs("X"))
      .InferShape(SameShape("X", "Out"))
      .KernelForAnyType<Cpu, Counted>();
  exec::Executor executor(ops);
  Scope scope;
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("some", {-1});
  p.Temporary("copy", {-1});
  p.Add("toy_positive", {{"X", "x"}}, {{"Out", "some"}});
  p.Add("toy_counted", {{"X", "some"}}, {{"Out", "copy"}});
  const std::vector<std::string> fetches = {"copy"};
  const std::vector<std::vector<float>> inputs = {{1, -1, -1}, {2, 3, -1}, {4, 5, 6}};
  const std::vector<std::vector<float>> copies = {{1}, {2, 3}, {4, 5, 6}};
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      auto out = executor.Run(p.program, scope, std::vector<exec::Feed>{{"x", Values(inputs[i])}}, fetches);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      EXPECT_EQ(Floats((*out)[0]), copies[i]);
    }
  }
  EXPECT_EQ(prepared, 3) << "once for each number of positive elements";
}

TEST(Executor, FetchedValuesOfUnplannedShapesStayValid) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {-1});
  p.Temporary("some", {-1});
  p.Temporary("twice", {-1});
  p.Add("toy_positive", {{"X", "x"}}, {{"Out", "some"}});
  p.Add("toy_add", {{"X", "some"}, {"Y", "some"}}, {{"Out", "twice"}});
  const std::vector<std::string> fetches = {"twice"};
  std::vector<std::vector<Variable>> all;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    auto out = executor.Run(p.program, scope, std::vector<exec::Feed>{{"x", Values({value, -1})}}, fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    all.push_back(*std::move(out));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(Floats(all[i][0]), std::vector<float>{2.0f * static_cast<float>(i + 1)});
  }
}

TEST(Executor, ASavedModelsOwnFeedAndFetchOpsNameItsInputsAndOutputs) {
  ToyProgram p;
  p.Temporary("x", {-1, 2});
  p.Temporary("y", {-1, 2});
  p.Temporary("h", {-1, 2});
  p.Temporary("out", {-1, 2});
  p.program.MutableBlock(0).SetVar({.name = "feed", .kind = VarKind::kFeed, .persistable = true});
  p.program.MutableBlock(0).SetVar({.name = "fetch", .kind = VarKind::kFetch, .persistable = true});
  p.Add("feed", {{"X", "feed"}}, {{"Out", "x"}}, 0, {{"col", 0}});
  p.Add("feed", {{"X", "feed"}}, {{"Out", "y"}}, 0, {{"col", 1}});
  p.Add("toy_add", {{"X", "x"}, {"Y", "y"}}, {{"Out", "h"}});
  p.Add("toy_add", {{"X", "h"}, {"Y", "x"}}, {{"Out", "out"}});
  p.Add("fetch", {{"X", "out"}}, {{"Out", "fetch"}}, 0, {{"col", 1}});
  p.Add("fetch", {{"X", "h"}}, {{"Out", "fetch"}}, 0, {{"col", 0}});
  exec::Executor executor(ToyOps());
  Scope scope;
  auto out = executor.Run(p.program, scope, TwoFeeds(1, 1, 10), kNothing);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_EQ(out->size(), 2u);
  EXPECT_EQ(Floats((*out)[0])[0], 11);
  EXPECT_EQ(Floats((*out)[1])[0], 12);
  EXPECT_EQ(
      executor.Run(p.program, scope, std::vector<exec::Feed>{TwoFeeds(1, 1, 10)[0]}, kNothing).status().id(),
      "E-feed-missing");
}

TEST(Executor, CancelStopsARunBetweenTwoOpsAndNotTheNextRun) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {2});
  p.Temporary("a", {2});
  p.Persistable("b", {2});
  p.Add("toy_hook", {{"X", "x"}}, {{"Out", "a"}});
  p.Add("toy_add", {{"X", "a"}, {"Y", "a"}}, {{"Out", "b"}});
  const std::vector<exec::Feed> feeds = {{"x", Values({1, 2})}};
  test::Hook() = [&] { std::thread([&] { executor.Cancel(); }).join(); };
  auto out = executor.Run(p.program, scope, feeds, kNothing);
  EXPECT_EQ(out.status().code(), StatusCode::kCancelled);
  EXPECT_FALSE(scope.Find("b")->initialized());
  test::Hook() = nullptr;
  EXPECT_TRUE(executor.Run(p.program, scope, feeds, kNothing).ok());
}

TEST(Executor, CancelDuringCompilationStopsBeforeTheFirstOp) {
  exec::Executor executor(ToyOps());
  Scope scope;
  ToyProgram p;
  p.Data("x", {2});
  p.Persistable("a", {2});
  p.Add("toy_hook", {{"X", "x"}}, {{"Out", "a"}});
  test::PrepareHook() = [&] { executor.Cancel(); };
  auto out = executor.Run(p.program, scope, std::vector<exec::Feed>{{"x", Values({1, 2})}}, kNothing);
  test::PrepareHook() = nullptr;
  EXPECT_EQ(out.status().id(), "E-run-cancelled");
  EXPECT_FALSE(scope.Find("a")->initialized());
}

// Block 1: w = w - merged, with merged = g0 + g1 declared outside and half declared inside.
ToyProgram ServerProgram() {
  ToyProgram p;
  p.Persistable("w", {100});
  p.Persistable("merged", {100});
  p.Temporary("g0", {100});
  p.Temporary("g1", {100});
  p.program.AddBlock(0);
  p.Temporary("inner", {100}, 1);
  p.Add("toy_add", {{"X", "g0"}, {"Y", "g1"}}, {{"Out", "merged"}}, 1);
  p.Add("toy_hook", {{"X", "merged"}}, {{"Out", "inner"}}, 1);
  p.Add("toy_step", {{"Param", "w"}, {"Grad", "inner"}}, {{"ParamOut", "w"}}, 1);
  return p;
}

TEST(RunBlock, UpdatesAViewOfSomeRowsThroughTheScope) {
  exec::Executor executor(ToyOps());
  const ToyProgram p = ServerProgram();
  Scope server;
  server.FindOrCreate("w")->As<Tensor>() = Values({10, 20, 30, 40});
  for (int chunk = 0; chunk < 2; ++chunk) {
    Scope scope(&server);
    auto rows = std::make_shared<Variable>();
    rows->As<Tensor>() = server.Find("w")->As<Tensor>().Rows(2 * chunk, 2 * chunk + 2);
    scope.Bind("w", rows);
    scope.FindOrCreate("g0")->As<Tensor>() = Values({1, 2});
    scope.FindOrCreate("g1")->As<Tensor>() = Values({3, 4});
    const Status status = executor.RunBlock(p.program, 1, scope);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_NE(scope.FindLocal("merged"), nullptr) << "declared outside the block: made in the scope";
    EXPECT_EQ(scope.FindLocal("inner"), nullptr) << "declared by the block: a temporary";
  }
  EXPECT_EQ(Floats(*server.Find("w")), (std::vector<float>{6, 14, 26, 34}));
  EXPECT_EQ(executor.stats().compiled_count, 1);
  EXPECT_EQ(executor.stats().specialised_count, 1);
}

TEST(RunBlock, IsThreadSafeForDifferentScopes) {
  exec::Executor executor(ToyOps(), {.threads = 1});
  const ToyProgram p = ServerProgram();
  constexpr int kThreads = 4, kRuns = 200;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t) {
    auto& scope = scopes.emplace_back(std::make_unique<Scope>());
    scope->FindOrCreate("w")->As<Tensor>() = Values(std::vector<float>(100, 0));
    scope->FindOrCreate("g0")->As<Tensor>() = Values(std::vector<float>(100, static_cast<float>(t)));
    scope->FindOrCreate("g1")->As<Tensor>() = Values(std::vector<float>(100, 1));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        if (!executor.RunBlock(p.program, 1, *scopes[static_cast<std::size_t>(t)]).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (int t = 0; t < kThreads; ++t) {
    const float expected = -static_cast<float>(kRuns * (t + 1));
    EXPECT_EQ(Floats(*scopes[static_cast<std::size_t>(t)]->Find("w")), std::vector<float>(100, expected));
  }
}

TEST(PreparedBlock, CachesVariablesAcrossScopes) {
  exec::Executor executor(ToyOps(), {.threads = 1, .specialisations_max = 2});
  const ToyProgram p = ServerProgram();
  constexpr int kChunks = 20, kRuns = 3;
  std::vector<std::unique_ptr<Scope>> scopes;
  std::vector<std::unique_ptr<PreparedBlock>> blocks;
  for (int c = 0; c < kChunks; ++c) {
    auto& scope = scopes.emplace_back(std::make_unique<Scope>());
    scope->FindOrCreate("w")->As<Tensor>() = Values({static_cast<float>(100 * c), 0});
    scope->FindOrCreate("g0")->As<Tensor>() = Values({1, 2});
    scope->FindOrCreate("g1")->As<Tensor>() = Values({3, 4});
    auto prepared = executor.PrepareBlock(p.program, 1, {});
    ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
    blocks.push_back(*std::move(prepared));
  }
  for (int run = 0; run < kRuns; ++run) {
    for (std::size_t c = 0; c < kChunks; ++c) {
      const Status status = blocks[c]->Run(*scopes[c]);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
  }
  for (std::size_t c = 0; c < kChunks; ++c) {
    EXPECT_EQ(Floats(*scopes[c]->Find("w")),
              (std::vector<float>{static_cast<float>(100 * c) - 4 * kRuns, -6 * kRuns}));
  }
  EXPECT_EQ(executor.stats().fast_run_count, kChunks * (kRuns - 1));
}

TEST(PreparedBlock, LooksUpVariablesAgainWhenTheScopeHasChanged) {
  exec::Executor executor(ToyOps(), {.threads = 1});
  const ToyProgram p = ServerProgram();
  auto prepared = executor.PrepareBlock(p.program, 1, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  Scope scope;
  for (const char* name : {"w", "g0", "g1"}) scope.FindOrCreate(name)->As<Tensor>() = Values({1, 2});
  ASSERT_TRUE((*prepared)->Run(scope).ok());
  scope.Erase("g1");
  EXPECT_EQ((*prepared)->Run(scope).id(), "E-run-uninitialized");
  scope.FindOrCreate("g1")->As<Tensor>() = Values({10, 20});
  ASSERT_TRUE((*prepared)->Run(scope).ok());
  EXPECT_EQ(Floats(*scope.Find("w")), (std::vector<float>{1 - 2 - 11, 2 - 4 - 22}));
}

TEST(RunBlock, NestedBlocksRunInTheSameScope) {
  ToyProgram p = ServerProgram();
  p.Add("toy_blocks", {{"X", "g0"}}, {}, 0, {{"sub_block", BlockRef{1}}});
  exec::Executor executor(ToyOps());
  Scope scope;
  scope.FindOrCreate("w")->As<Tensor>() = Values({10, 20});
  scope.FindOrCreate("g0")->As<Tensor>() = Values({1, 2});
  scope.FindOrCreate("g1")->As<Tensor>() = Values({3, 4});
  auto out = executor.Run(p.program, scope, {}, kNothing);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats(*scope.Find("w")), (std::vector<float>{6, 14}));
}

}  // namespace
}  // namespace penstock
