#include "framework/runtime/completion.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace penstock {
namespace {

TEST(Completion, IsDoneWithoutAPromise) {
  EXPECT_TRUE(Completion().done());
  EXPECT_TRUE(Completion().Wait().ok());
  EXPECT_EQ(Completion::Of(DataLoss("E-test", "bad")).Wait().id(), "E-test");
}

TEST(Completion, GivesItsResultToAllWaitsAndCallbacksOnce) {
  const Promise promise;
  const Completion completion = promise.completion();
  std::string calls;
  completion.Then([&](const Status& status) { calls += StrCat("a", status.id()); });
  completion.Then([&](const Status& status) { calls += StrCat("b", status.id()); });
  EXPECT_FALSE(completion.done());
  EXPECT_FALSE(completion.WaitFor(std::chrono::milliseconds(1)).has_value());
  promise.Finish(DataLoss("E-test", "bad"));
  EXPECT_EQ(completion.Wait().id(), "E-test");
  EXPECT_EQ(completion.WaitFor(Nanoseconds(0))->id(), "E-test");
  completion.Then([&](const Status&) { calls += "c"; });
  EXPECT_EQ(calls, "aE-testbE-testc");
}

// The waiting thread may own the promise, and destroy it as soon as it is finished.
TEST(Completion, OutlivesItsPromise) {
  for (int i = 0; i < 200; ++i) {
    auto promise = std::make_unique<const Promise>();
    const Completion completion = promise->completion();
    std::thread other([promise = promise.get()] { promise->Finish(OkStatus()); });
    EXPECT_TRUE(completion.Wait().ok());
    promise.reset();
    other.join();
  }
}

}  // namespace
}  // namespace penstock
