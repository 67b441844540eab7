// A program on several places of this process: real threads, real collective operations.
#include "executor/process/places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/process/place_threads.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/support/toy_ops.h"

namespace penstock::process {
namespace {

// w = w - (the sum of the looked-up rows of all places); the first place updates.
constexpr char kTraining[] = R"(program
block 0 {
  data ids : i64[?, 1]
  param w : f32[4, 1]
  persist lr : f32[1]
  persist seen : f32[1]
  var rows : f32[?, 1]
  var g : f32[1]
  (Out=rows) = lookup_table(W=w, Ids=ids)
  g = reduce_sum(X=rows) {reduce_all=true}
  seen = scale(X=g) {scale=2.0}
  g = c_allreduce_sum(X=g) {ring_id=0}
  g = c_sync_comm_stream(X=g) {ring_id=0}
  w = elementwise_sub(X=w, Y=g) {first_place=true} @optimize
}
)";

Program Parsed(const char* text) {
  Result<Program> program = ParseText(text, "test");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

Tensor Ids(const std::vector<std::int64_t>& ids) {
  Tensor tensor(DType::kInt64, {static_cast<Dim>(ids.size()), 1});
  std::copy(ids.begin(), ids.end(), tensor.Data<std::int64_t>());
  return tensor;
}

// The update is the first use of g, and so where all places wait for the sum, before they start the next one.
constexpr char kTwoSums[] = R"(program
block 0 {
  data ids : i64[?, 1]
  param w : f32[4, 1]
  persist seen : f32[1]
  var rows : f32[?, 1]
  var g : f32[1]
  var h : f32[1]
  (Out=rows) = lookup_table(W=w, Ids=ids)
  g = reduce_sum(X=rows) {reduce_all=true}
  h = scale(X=g) {scale=10.0}
  g = c_allreduce_sum(X=g) {ring_id=0}
  w = elementwise_sub(X=w, Y=g) {first_place=true} @optimize
  h = c_allreduce_sum(X=h) {ring_id=0}
  seen = scale(X=h) {scale=2.0}
}
)";

class OnPlaces : public testing::Test {
 protected:
  static constexpr int kCount = 3;
  OnPlaces() {
    auto made = process::Places::Make(AllOps(), {.places = kCount, .threads = 1});
    PENSTOCK_CHECK(made.ok(), made.status().ToString());
    places_ = *std::move(made);
    scopes_.push_back(std::make_unique<Scope>());
    scopes_[0]->FindOrCreate("w")->As<Tensor>() = test::Values({1, 2, 3, 4}, {4, 1});
    for (int place = 1; place < kCount; ++place) {
      scopes_.push_back(std::make_unique<Scope>(scopes_[0].get()));
      scopes_.back()->FindOrCreate("seen");
    }
  }

  // Feeds ids[r] to place r.
  Status Run(const Program& program, const std::vector<std::vector<std::int64_t>>& ids) {
    parts_.clear();
    for (std::size_t place = 0; place < ids.size(); ++place)
      parts_.push_back({.scope = scopes_[place].get(), .feeds = {{"ids", Ids(ids[place])}}});
    return places_->Run(program, fetches_, parts_, PlacesAre::kTogether);
  }
  Status Run(const std::vector<std::vector<std::int64_t>>& ids) { return Run(program_, ids); }
  float Fetched(std::size_t place, std::size_t fetch) const {
    return parts_[place].values[fetch].If<Tensor>()->Data<float>()[0];
  }

  const Program program_ = Parsed(kTraining);
  const std::vector<std::string> fetches_ = {"seen", "w"};
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<PlacePart> parts_;
  std::unique_ptr<process::Places> places_;
};

TEST_F(OnPlaces, EachRunsItsPartAndTheFirstUpdates) {
  ASSERT_EQ(Run({{0}, {1}, {2, 2}}).ToString(), OkStatus().ToString());
  EXPECT_EQ(Fetched(0, 0), 2);  // 2 * the sum of its own rows
  EXPECT_EQ(Fetched(1, 0), 4);
  EXPECT_EQ(Fetched(2, 0), 12);
  for (std::size_t place = 0; place < kCount; ++place)
    EXPECT_EQ(Fetched(place, 1), 1 - (1 + 2 + 6)) << "the value of the first place, for all";
  ASSERT_TRUE(Run({{0}, {1}, {2, 2}}).ok());
  EXPECT_EQ(Fetched(1, 0), 2 * (2 - 9));
}

TEST_F(OnPlaces, WaitAtTheSameStepsForOperationsInProgress) {
  const Program program = Parsed(kTwoSums);
  ASSERT_EQ(Run(program, {{0}, {1}, {2}}).ToString(), OkStatus().ToString());
  for (std::size_t place = 0; place < kCount; ++place) EXPECT_EQ(Fetched(place, 0), 2 * 10 * (1 + 2 + 3));
  EXPECT_EQ(Fetched(2, 1), 1 - (1 + 2 + 3));
}

TEST_F(OnPlaces, StepsOfOneShapeShareOneCompilationAndOnePlan) {
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(Run({{0}, {1}, {2}}).ok());
  EXPECT_EQ(places_->stats().compiled_count, 1);
  EXPECT_EQ(places_->stats().specialised_count, 1);
  EXPECT_EQ(places_->stats().frame_count, kCount);
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(Run({{0, 1}, {1, 2}, {3}}).ok());
  EXPECT_EQ(places_->stats().specialised_count, 2);
  EXPECT_EQ(places_->stats().frame_count, kCount + 2);  // the last place has met its shape
}

TEST_F(OnPlaces, AnErrorEndsAllWaitsAndKeepsThePlan) {
  ASSERT_TRUE(Run({{0}, {1}, {2}}).ok());
  for (std::size_t bad = 0; bad < kCount; ++bad) {
    std::vector<std::vector<std::int64_t>> ids = {{0}, {1}, {2}};
    ids[bad] = {77};
    const Status failed = Run(ids);
    EXPECT_NE(failed.ToString().find("77"), std::string::npos) << failed.ToString();
    EXPECT_TRUE(Run({{0}, {1}, {2}}).ok()) << bad;
  }
  EXPECT_EQ(places_->stats().compiled_count, 1);
  EXPECT_EQ(places_->stats().specialised_count, 1);
}

TEST_F(OnPlaces, AnErrorBeforeTheFirstOpEndsAllPlaces) {
  parts_ = {};
  for (int place = 0; place < kCount; ++place) {
    parts_.push_back({.scope = scopes_[static_cast<std::size_t>(place)].get(),
                      .feeds = {{"ids", place == 1 ? Tensor() : Ids({1})}}});
  }
  const Status failed = places_->Run(program_, fetches_, parts_, PlacesAre::kTogether);
  EXPECT_EQ(failed.id(), "E-feed-empty") << failed.ToString();
  EXPECT_EQ(scopes_[0]->Find("w")->As<Tensor>().Data<float>()[0], 1);
}

TEST_F(OnPlaces, APlaceWithoutAPartIsAnError) {
  EXPECT_EQ(Run({{0}, {1}}).id(), "E-collective-size");
  EXPECT_EQ(Run({}).id(), "E-collective-size");
}

TEST_F(OnPlaces, CancelEndsOnlyTheRunInProgress) {
  places_->Cancel(Cancelled("E-cancelled", "nothing is in progress"));
  ASSERT_TRUE(Run({{0}, {1}, {2}}).ok());
  std::atomic<bool> done = false;
  std::thread canceller([&] {
    while (!done) {
      places_->Cancel(Cancelled("E-cancelled", "the run was interrupted"));
      std::this_thread::yield();
    }
  });
  int cancelled = 0;
  for (int step = 0; step < 200 && cancelled < 3; ++step) {
    const Status status = Run({{0}, {1}, {2}});
    if (status.ok()) continue;
    ++cancelled;
    const bool known = status.id() == "E-cancelled" || status.id() == "E-run-cancelled";
    EXPECT_TRUE(known) << status.ToString();
  }
  done = true;
  canceller.join();
  EXPECT_TRUE(Run({{0}, {1}, {2}}).ok());
}

TEST_F(OnPlaces, PerPlaceStateIsWrittenByEachPlace) {
  EXPECT_EQ(WrittenAtEachPlace(program_), (std::set<std::string>{"rows", "g", "seen"}));
}

TEST(PlaceThreads, AreKeptBetweenRuns) {
  PlaceThreads threads;
  std::vector<std::thread::id> first(4), again(4);
  for (auto* const ids : {&first, &again}) {
    ASSERT_TRUE(
        threads.Run(4, [ids](std::size_t place) { (*ids)[place] = std::this_thread::get_id(); }).ok());
  }
  EXPECT_EQ(first, again);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(first.begin(), first.end()).size(), 4u);
}

TEST(PlaceThreads, AreLentToOneRunAtATime) {
  std::thread::id first, again, beside;
  const auto id_of_place_1 = [](const LentPlaceThreads& threads, std::thread::id& id) {
    ASSERT_TRUE(threads
                    ->Run(2,
                          [&id](std::size_t place) {
                            if (place == 1) id = std::this_thread::get_id();
                          })
                    .ok());
  };
  id_of_place_1(LentPlaceThreads(), first);
  const LentPlaceThreads held;
  id_of_place_1(held, again);
  id_of_place_1(LentPlaceThreads(), beside);
  EXPECT_EQ(first, again);
  EXPECT_NE(again, beside);
}

}  // namespace
}  // namespace penstock::process
