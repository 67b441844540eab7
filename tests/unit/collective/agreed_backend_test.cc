// The agreement on one operation, over a backend that the test scripts; and what it costs in shared memory.
#include "executor/collective/group/agreed_backend.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "executor/collective/arena/arena_backend.h"
#include "executor/collective/arena/pages.h"
#include "executor/collective/group/queued_group.h"

namespace penstock::collective {
namespace {

// Rank 1 of 3. The other ranks start what `others` says; a message that comes is `theirs`.
struct Script {
  std::vector<Signature> others;
  Signature theirs;
  Status failure;                    // known before the operation
  std::vector<std::string> calls;    // of the backend, in order
  RankNames names = {{10, 11, 12}};  // of ranks 0, 1 and 2
};

class ScriptedBackend : public Backend {
 public:
  explicit ScriptedBackend(Script& script) : script_(script) {}

  int rank() const override { return 1; }
  int size() const override { return 3; }
  std::string_view name() const override { return "scripted"; }
  bool adds_in_rank_order() const override { return true; }
  const RankNames& names() const override { return script_.names; }
  Status Failure() const override { return script_.failure; }
  Status Run(const Operation& op, Agreement& agreement) override {
    script_.calls.push_back("send ahead");
    if (op.kind == OperationKind::kMessage) {
      PENSTOCK_RETURN_IF_ERROR(agreement.Accept(script_.theirs, SignatureOfReceived(op, rank())));
    } else {
      PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
    }
    script_.calls.push_back("write results");
    return OkStatus();
  }
  Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) override {
    script_.calls.push_back("exchange");
    all_ = {script_.others[0], mine, script_.others[1]};
    return std::span<const Signature>(all_);
  }
  Status FailWith(const Status& why, FoundBy found) override {
    script_.calls.push_back(found == FoundBy::kAllRanks ? "fail: all know" : "fail: this rank knows");
    return why;
  }
  void Abort(const Status&) override {}

 private:
  Script& script_;
  std::vector<Signature> all_;
};

const Operation kBarrierOne{.kind = OperationKind::kBarrier, .number = 1};

Status RunScripted(Script& script, const Operation& op) {
  return AgreedBackend(std::make_unique<ScriptedBackend>(script)).Run(op);
}

TEST(Agreements, PrecedeTheResults) {
  Script script{.others = {SignatureOf(kBarrierOne), SignatureOf(kBarrierOne)}};
  EXPECT_TRUE(RunScripted(script, kBarrierOne).ok());
  EXPECT_EQ(script.calls, (std::vector<std::string>{"send ahead", "exchange", "write results"}));
}

TEST(Agreements, NameTheRanksThatStartedDifferentOperations) {
  Operation second = kBarrierOne;
  second.number = 2;
  Script script{.others = {SignatureOf(kBarrierOne), SignatureOf(second)}};
  const Status status = RunScripted(script, kBarrierOne);
  EXPECT_EQ(status.id(), "E-collective-mismatch");
  EXPECT_EQ(status.message(),
            "ranks 10 and 12 started different operations: rank 10 barrier 1, rank 12 barrier 2");
  EXPECT_EQ(status.details().size(), 3u);
  EXPECT_EQ(script.calls, (std::vector<std::string>{"send ahead", "exchange", "fail: all know"}));
}

TEST(Agreements, OfAMessageAreTheReceiversAlone) {
  const Operation receives{
      .kind = OperationKind::kMessage, .from = 2, .out = {.data = nullptr, .count = 0, .type = {}}};
  Operation sends{.kind = OperationKind::kMessage, .to = 1};
  sends.in.type = ElementType::kFp32;
  Script script{.theirs = SignatureOfSent(sends, 2)};
  const Status status = RunScripted(script, receives);
  EXPECT_EQ(status.id(), "E-collective-mismatch");
  EXPECT_EQ(status.message().substr(0, 38), "rank 12 sends message from rank 12 to ") << status.ToString();
  EXPECT_NE(status.message().find(", rank 11 receives message from rank 12 to rank 11"), std::string::npos)
      << status.ToString();
  EXPECT_EQ(script.calls, (std::vector<std::string>{"send ahead", "fail: this rank knows"}));

  script.theirs = SignatureOfReceived(receives, 1);
  script.calls.clear();
  EXPECT_TRUE(RunScripted(script, receives).ok());
  EXPECT_EQ(script.calls, (std::vector<std::string>{"send ahead", "write results"}));
}

TEST(Agreements, DoNotBeginAfterAFailure) {
  Script script{.failure = Unavailable("E-collective-peer-lost", "rank 12 is gone")};
  EXPECT_EQ(RunScripted(script, kBarrierOne).id(), "E-collective-peer-lost");
  EXPECT_TRUE(script.calls.empty());
}

// The meetings of `ranks` ranks of shared memory in one all_reduce.
std::uint32_t MeetingsOfAllReduce(int ranks, std::int64_t count) {
  const Pages pages = Pages::OfThisProcess(Arena::Bytes(ranks)).value();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      QueuedGroup group(std::make_unique<ArenaBackend>(
          ArenaOptions{.name = "test", .rank = rank, .ranks = ranks, .memory = pages.data(), .gone = [](int) {
                         return false;
                       }}));
      std::vector<float> values(static_cast<std::size_t>(count));
      const Elements data{reinterpret_cast<std::byte*>(values.data()), count, ElementType::kFp32};
      EXPECT_TRUE(group.AllReduce(data, Reduction::kSum, {.blocking = true}).Wait().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return Arena(pages.data(), ranks).line(0).arrived.value.load();
}

TEST(Agreements, NeedNoMeetingOfTheirOwnInSharedMemory) {
  const auto of_block = static_cast<std::int64_t>(Arena::BlockBytes(3) / sizeof(float));
  EXPECT_EQ(MeetingsOfAllReduce(3, 1), 1u);
  EXPECT_EQ(MeetingsOfAllReduce(3, 4 * of_block), 5u);  // one for each block, and one for the last results
}

}  // namespace
}  // namespace penstock::collective
