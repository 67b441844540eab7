// Sizes beyond 32 bits without that much memory: the state machine only counts bytes, and all parts share one
// buffer.
#include <gtest/gtest.h>

#include "executor/pserver/machine/policies/sync_policy.h"
#include "executor/pserver/machine/state_machine.h"

namespace penstock {
namespace {

constexpr std::size_t kChunk = std::size_t{6} << 30;

struct OneTrainer {
  pserver::StateMachine machine{{.trainers = 1, .params = {{"w", {kChunk}}}},
                                std::make_unique<pserver::SyncPolicy>()};
  const Payload part = Payload::Of(std::string(kMaxBodyBytes, 'g'));
  pserver::Actions Push(std::size_t index) {
    pserver::Actions out;
    machine.Push({.part = static_cast<std::uint32_t>(index), .bytes = part}, out);
    return out;
  }
};

TEST(LargeChunk, EveryPartOf6GBIsCounted) {
  OneTrainer job;
  const std::size_t parts = kChunk / kMaxBodyBytes;
  for (std::size_t i = 0; i + 1 < parts; ++i) job.Push(i);
  const pserver::Actions last = job.Push(parts - 1);
  const pserver::MergeAction* merge = nullptr;
  for (const pserver::Action& action : last) {
    if (std::holds_alternative<pserver::MergeAction>(action)) merge = &std::get<pserver::MergeAction>(action);
  }
  ASSERT_NE(merge, nullptr);
  std::size_t bytes = 0;
  for (const Payload& merged : merge->parts) bytes += merged.size();
  EXPECT_EQ(bytes, kChunk);
}

TEST(LargeChunk, APartBeyondTheEndIsRefused) {
  OneTrainer job;
  const pserver::Actions out = job.Push(kChunk / kMaxBodyBytes);
  ASSERT_FALSE(out.empty());
  const auto* end = std::get_if<pserver::EndAction>(&out.back());
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->why.id(), "E-rpc-size");
}

}  // namespace
}  // namespace penstock
