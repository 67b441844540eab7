// Rings of several places of one process.
#include "executor/process/place_rings.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace penstock::process {
namespace {

using Places = std::vector<std::unique_ptr<PlaceRings>>;

Places Make(int count) {
  Result<Places> places = MakePlaceRings(count);
  EXPECT_TRUE(places.ok()) << places.status().ToString();
  return std::move(places).value();
}

void OnAll(Places& places, const std::function<void(PlaceRings&, int)>& work) {
  std::vector<std::thread> threads;
  for (std::size_t place = 0; place < places.size(); ++place)
    threads.emplace_back([&, place] { work(*places[place], static_cast<int>(place)); });
  for (std::thread& thread : threads) thread.join();
}

Elements Of(std::array<float, 2>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), 2, ElementType::kFp32};
}

TEST(PlaceRings, PlacesAreRanksOfEveryRing) {
  Places places = Make(3);
  OnAll(places, [](PlaceRings& rings, int place) {
    for (const int ring : {0, 7}) {
      const Result<CollectiveGroup*> group = rings.Ring(ring);
      ASSERT_TRUE(group.ok()) << group.status().ToString();
      EXPECT_EQ((*group)->rank(), place);
      EXPECT_EQ((*group)->size(), 3);
      std::array<float, 2> values = {1.0f, static_cast<float>(place)};
      const Status summed = (*group)->AllReduce(Of(values), Reduction::kSum, {.label = "x"}).Wait();
      EXPECT_TRUE(summed.ok()) << summed.ToString();
      EXPECT_EQ(values[0], 3.0f);
      EXPECT_EQ(values[1], 3.0f);
      EXPECT_EQ(*rings.Ring(ring), *group);  // the same one again
    }
  });
}

TEST(PlaceRings, APlaceMayHaveItsOwnRings) {
  Places places = Make(2);
  ASSERT_TRUE(places[1]->MakeOwnRing(5).ok());
  const Result<CollectiveGroup*> group = places[1]->Ring(5);
  ASSERT_TRUE(group.ok()) << group.status().ToString();
  EXPECT_EQ((*group)->size(), 1);
}

TEST(PlaceRings, AbortEndsWaitsForAPlaceNotYetStarted) {
  Places places = Make(2);
  const Status why = InvalidArgument("E-test", "place 1 has failed");
  std::thread other([&] {
    for (const auto& place : places) place->Abort(why);
  });
  std::array<float, 2> values = {1.0f, 2.0f};
  const Result<CollectiveGroup*> group = places[0]->Ring(0);
  const Status ended =
      group.ok() ? (*group)->AllReduce(Of(values), Reduction::kSum, {.label = "x"}).Wait() : group.status();
  other.join();
  EXPECT_EQ(ended.id(), "E-test") << ended.ToString();
  EXPECT_EQ(places[1]->Ring(0).status().id(), "E-test");
}

TEST(PlaceRings, ProgramsThatJoinRanksAreRefused) {
  Places places = Make(2);
  const Status joined = places[1]->Join({"a:1", "b:1"}, 1);
  EXPECT_EQ(joined.id(), "E-collective-joined");
  EXPECT_NE(joined.message().find("cannot join a:1,b:1"), std::string::npos) << joined.ToString();
}

TEST(PlaceRings, PlaceCountMustBe1To256) {
  EXPECT_EQ(MakePlaceRings(0).status().id(), "E-collective-size");
  EXPECT_EQ(MakePlaceRings(257).status().id(), "E-collective-size");
}

}  // namespace
}  // namespace penstock::process
