// Several places of one executor: frames of one plan, which run at the same time.
#include <gtest/gtest.h>

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/roles/attr_names.h"
#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

using test::Filled;
using test::ToyProgram;
using test::Values;

constexpr int kPlaces = 3;

// w = w - met with met = x, which all places compute; total = met + x is state of each place.
ToyProgram Training() {
  ToyProgram p;
  p.Data("x", {-1});
  p.Persistable("w", {2});
  p.Persistable("total", {-1});
  p.Temporary("met", {-1});
  p.Add("toy_hook", {{"X", "x"}}, {{"Out", "met"}});
  p.Add("toy_add", {{"X", "met"}, {"Y", "x"}}, {{"Out", "total"}});
  p.Add("toy_step", {{"Param", "w"}, {"Grad", "met"}}, {{"ParamOut", "w"}}, 0,
        {{std::string(roles::attr::kFirstPlace), true}});
  return p;
}

std::vector<Feed> FeedOf(float value) { return {{"x", Filled({2}, value)}}; }

class OnPlaces : public testing::Test {
 protected:
  OnPlaces() {
    scopes_.push_back(std::make_unique<Scope>());
    scopes_[0]->FindOrCreate("w")->As<Tensor>() = Values({10, 20});
    for (int place = 1; place < kPlaces; ++place) {
      scopes_.push_back(std::make_unique<Scope>(scopes_[0].get()));
      scopes_.back()->FindOrCreate("total");
    }
  }
  ~OnPlaces() override { test::Hook() = nullptr; }

  // Runs all places at once: each waits within its step until all have begun it.
  std::vector<std::vector<Variable>> Run(float value) {
    std::vector<std::vector<Feed>> feeds;
    for (int place = 0; place < kPlaces; ++place) feeds.push_back(FeedOf(value + static_cast<float>(place)));
    auto compiled = executor_.FindCompiled(program_.program, feeds[0], fetches_);
    if (compiled == nullptr) compiled = *executor_.Compile(program_.program, feeds[0], fetches_);
    std::barrier met(kPlaces);
    test::Hook() = [&met] { met.arrive_and_wait(); };
    std::vector<std::vector<Variable>> values(kPlaces);
    std::vector<std::thread> threads;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      threads.emplace_back([&, place] {
        auto out = executor_.RunAt(static_cast<int>(place), compiled, *scopes_[place], feeds[place]);
        PENSTOCK_CHECK(out.ok(), out.status().ToString());
        values[place] = *std::move(out);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return values;
  }

  const ToyProgram program_ = Training();
  const std::vector<std::string> fetches_ = {"w", "met"};
  std::vector<std::unique_ptr<Scope>> scopes_;
  Executor executor_{test::ToyOps(), {.threads = 1, .places = {nullptr, nullptr, nullptr}}};
};

float First(const Variable& variable) { return variable.If<Tensor>()->Data<float>()[0]; }

TEST_F(OnPlaces, ShareOneCompiledBlockAndOnePlan) {
  for (int step = 0; step < 4; ++step) Run(1);
  EXPECT_EQ(executor_.stats().compiled_count, 1);
  EXPECT_EQ(executor_.stats().specialised_count, 1);
  EXPECT_EQ(executor_.stats().frame_count, kPlaces);
  EXPECT_GE(executor_.stats().fast_run_count, 2 * kPlaces);
}

TEST_F(OnPlaces, OnlyTheFirstUpdatesSharedState) {
  const auto values = Run(1);
  EXPECT_EQ(First(*scopes_[0]->Find("w")), 9);  // 10 - 1, its own value of met
  EXPECT_EQ(First(values[0][0]), 9);
  for (std::size_t place = 0; place < kPlaces; ++place) {
    EXPECT_EQ(First(values[place][1]), 1 + static_cast<float>(place));
    EXPECT_EQ(First(*scopes_[place]->Find("total")), 2 * (1 + static_cast<float>(place)));
    EXPECT_EQ(values[place][0].initialized(), place == 0) << "w has a value at the first place only";
  }
}

TEST_F(OnPlaces, KeepTheirPlansWhenTheyGetOtherRings) {
  Run(1);
  executor_.ReplaceRings({nullptr, nullptr, nullptr});
  EXPECT_EQ(First(Run(2)[2][1]), 4);
  EXPECT_EQ(executor_.stats().compiled_count, 1);
  EXPECT_EQ(executor_.stats().specialised_count, 1);
  EXPECT_EQ(executor_.stats().frame_count, 2 * kPlaces);
}

TEST_F(OnPlaces, AnErrorConcernsOnlyItsPlace) {
  const std::vector<Feed> feeds = FeedOf(1);
  const auto compiled = *executor_.Compile(program_.program, feeds, fetches_);
  Scope empty;
  const auto failed = executor_.RunAt(2, compiled, empty, feeds);
  EXPECT_EQ(failed.status().id(), "E-run-uninitialized") << failed.status().ToString();
  EXPECT_TRUE(executor_.RunAt(2, compiled, *scopes_[2], feeds).ok());
  EXPECT_EQ(First(*scopes_[0]->Find("w")), 10);
}

TEST(ConcurrentRuns, EqualShapesShareAPlan) {
  Executor executor(test::ToyOps(), {.threads = 1});
  constexpr int kRuns = 4;
  std::vector<Scope> scopes(kRuns);
  ToyProgram p;
  p.Data("x", {2});
  p.Temporary("out", {2});
  p.Add("toy_hook", {{"X", "x"}}, {{"Out", "out"}});
  const std::vector<std::string> fetches = {"out"};
  const auto compiled = *executor.Compile(p.program, FeedOf(0), fetches);
  std::barrier met(kRuns);
  test::Hook() = [&met] { met.arrive_and_wait(); };
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i) {
    threads.emplace_back([&, i] {
      auto out = executor.Run(compiled, scopes[static_cast<std::size_t>(i)], FeedOf(static_cast<float>(i)));
      PENSTOCK_CHECK(out.ok(), out.status().ToString());
      EXPECT_EQ(First((*out)[0]), static_cast<float>(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  test::Hook() = nullptr;
  EXPECT_EQ(executor.stats().specialised_count, 1);
  EXPECT_EQ(executor.stats().frame_count, kRuns);
}

}  // namespace
}  // namespace penstock::exec
