// The store as a state machine: every answer, without a connection.
#include "executor/collective/rendezvous/store_table.h"

#include <gtest/gtest.h>

namespace penstock::rendezvous {
namespace {

const std::vector<std::string> kAddresses = {"a:1", "b:1", "c:1"};

Hello HelloOf(int rank) {
  return {.job = "job",
          .rank = rank,
          .ranks = 3,
          .addresses = AddressesHash(kAddresses),
          .process = 100 + rank,
          .address = kAddresses[static_cast<std::size_t>(rank)]};
}

// Answers as text: "1: answer 7 v", one after the other.
std::string Show(const StoreTable::Answers& answers) {
  std::string text;
  for (const auto& [rank, message] : answers) {
    const char* verb = message.verb == StoreVerb::kAnswer   ? "answer"
                       : message.verb == StoreVerb::kFailed ? "failed"
                                                            : "waiting";
    text += StrCat(rank, ": ", verb, " ", message.id, message.value.empty() ? "" : " ", message.value, "\n");
  }
  return text;
}

class Table : public StoreTable {
 public:
  Table() : StoreTable("job", kAddresses) {}
  std::string Come(int rank) {
    const Status entered = Enter(HelloOf(rank));
    return entered.ok() ? Show(Take(rank, WriteHello(1, HelloOf(rank)))) : entered.message();
  }
  std::string Do(int rank, StoreMessage message) { return Show(Take(rank, std::move(message))); }
  std::string Waits(int rank, std::uint64_t id) { return Do(rank, {.verb = StoreVerb::kAsk, .id = id}); }
};

TEST(StoreTable, TheLastArrivalReleasesAll) {
  Table table;
  EXPECT_EQ(table.Come(2), "");
  EXPECT_EQ(table.Waits(2, 1), "2: waiting 1 rank 0 (a:1), rank 1 (b:1) have not come\n");
  EXPECT_EQ(table.Come(0), "");
  EXPECT_EQ(table.Waits(0, 1), "0: waiting 1 rank 1 (b:1) has not come\n");
  EXPECT_EQ(table.Come(1), "0: answer 1\n1: answer 1\n2: answer 1\n");
  EXPECT_EQ(table.Waits(0, 1), "") << "its answer is on the way";
}

TEST(StoreTable, MismatchedRanksAreRefusedAndReported) {
  Table table;
  Hello hello = HelloOf(1);
  hello.job = "other";
  EXPECT_EQ(table.Enter(hello).message(),
            "rank 1 (b:1, process 101) is of job \"other\", rank 0 (a:1) of job \"job\"");
  hello = HelloOf(1);
  hello.ranks = 2;
  EXPECT_EQ(table.Enter(hello).message(),
            "rank 1 (b:1, process 101) is one of 2 ranks, rank 0 (a:1) one of 3");
  hello = HelloOf(1);
  hello.rank = 3;
  EXPECT_EQ(table.Enter(hello).message(), "rank 3 (b:1, process 101): there are 3 ranks");
  hello = HelloOf(1);
  hello.address = "d:1";
  EXPECT_EQ(table.Enter(hello).message(),
            "rank 1 (d:1, process 101) has another address than \"b:1\", which rank 0 (a:1) has for it");
  hello = HelloOf(1);
  hello.addresses = 7;
  EXPECT_EQ(table.Enter(hello).message(),
            "rank 1 (b:1, process 101) has another list of the ranks' addresses than rank 0 (a:1)");
  table.Come(0), table.Come(2);
  EXPECT_EQ(
      table.Waits(0, 1),
      "0: waiting 1 rank 1 (b:1) has not come"
      "; refused: rank 3 (b:1, process 101): there are 3 ranks"
      "; refused: rank 1 (d:1, process 101) has another address than \"b:1\", which rank 0 (a:1) has for it"
      "; refused: rank 1 (b:1, process 101) has another list of the ranks' addresses than rank 0 (a:1)\n");
}

TEST(StoreTable, ARankIsClaimedOnceEvenAfterItsProcessEnds) {
  Table table;
  table.Come(1);
  EXPECT_EQ(table.Come(1), "rank 1 (b:1, process 101) claims the number of rank 1 (b:1), process 101");
  EXPECT_EQ(Show(table.Lose(1, Unavailable("E-peer", "the connection broke"))), "");
  EXPECT_EQ(
      table.Come(1),
      "rank 1 (b:1, process 101) claims the number of rank 1 (b:1), process 101, which was there and has "
      "ended");
  EXPECT_EQ(table.Come(0), "0: failed 1 rank 1 (b:1) is gone: the connection broke\n");
}

TEST(StoreTable, AGetWaitsForItsKey) {
  Table table;
  table.Come(0), table.Come(1), table.Come(2);
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kGet, .id = 2, .key = "k"}), "");
  EXPECT_EQ(table.Do(2, {.verb = StoreVerb::kGet, .id = 2, .key = "other"}), "");
  EXPECT_EQ(table.Do(1, {.verb = StoreVerb::kSet, .id = 2, .key = "k", .value = "v"}),
            "0: answer 2 v\n1: answer 2\n");
  EXPECT_EQ(Show(table.Lose(1, Unavailable("E-peer", "the connection broke"))),
            "2: failed 2 rank 1 (b:1) is gone: the connection broke\n");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kGet, .id = 3, .key = "k"}), "0: answer 3 v\n");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kGet, .id = 4, .key = "l"}),
            "0: failed 4 rank 1 (b:1) is gone: the connection broke\n");
}

TEST(StoreTable, BarriersAreReusable) {
  Table table;
  table.Come(0), table.Come(1), table.Come(2);
  for (std::uint64_t id = 2; id < 10; id += 2) {
    EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kBarrier, .id = id, .key = "b"}), "");
    EXPECT_EQ(table.Do(2, {.verb = StoreVerb::kBarrier, .id = id, .key = "b"}), "");
    EXPECT_EQ(table.Waits(0, id), StrCat("0: waiting ", id, " rank 1 (b:1) has not come to it\n"));
    EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kBarrier, .id = id + 1, .key = "b"}),
              StrCat("0: failed ", id + 1, " rank 0 (a:1) is at barrier \"b\" already\n"));
    EXPECT_EQ(table.Do(1, {.verb = StoreVerb::kBarrier, .id = id, .key = "b"}),
              StrCat("0: answer ", id, "\n1: answer ", id, "\n2: answer ", id, "\n"));
  }
}

TEST(StoreTable, ACancelledRequestLeavesTheBarrier) {
  Table table;
  table.Come(0), table.Come(1), table.Come(2);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(table.Do(rank, {.verb = StoreVerb::kBarrier, .id = 2, .key = "b"}), "");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kForget, .id = 2}), "");
  EXPECT_EQ(table.Do(2, {.verb = StoreVerb::kBarrier, .id = 2, .key = "b"}), "");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kBarrier, .id = 3, .key = "b"}),
            "0: answer 3\n1: answer 2\n2: answer 2\n");
}

TEST(StoreTable, AnOrderlyDepartureEndsBarriersButNotKeyWaits) {
  Table table;
  table.Come(0), table.Come(1), table.Come(2);
  table.Do(0, {.verb = StoreVerb::kBarrier, .id = 2, .key = "b"});
  table.Do(1, {.verb = StoreVerb::kGet, .id = 2, .key = "k"});
  EXPECT_EQ(table.Do(2, WriteFailed(StoreVerb::kLeave, 0, OkStatus())),
            "0: failed 2 rank 2 (c:1) has left the job\n");
  EXPECT_EQ(Show(table.Lose(2, Unavailable("E-peer", "the connection broke"))), "") << "it had left before";
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kSet, .id = 3, .key = "k", .value = "v"}),
            "1: answer 2 v\n0: answer 3\n");
  EXPECT_EQ(table.present(), 2);
}

TEST(StoreTable, AFullStoreAcceptsOnlyReplacements) {
  Table table;
  table.Come(0), table.Come(1), table.Come(2);
  const std::string large(kValueBytesMax, 'v');
  for (std::size_t i = 0; i < kStoreBytesMax / kValueBytesMax; ++i)
    ASSERT_EQ(table.Do(0, {.verb = StoreVerb::kSet, .id = 2, .key = StrCat(i), .value = large}),
              "0: answer 2\n");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kSet, .id = 2, .key = "0", .value = large}), "0: answer 2\n");
  EXPECT_EQ(table.Do(0, {.verb = StoreVerb::kSet, .id = 2, .key = "more", .value = "v"}),
            "0: failed 2 the store is full: it holds 64 keys with 268435456 bytes, at most 65536 keys with "
            "268435456\n");
}

TEST(StoreTable, AReportNamesEightRanks) {
  StoreTable table("job", std::vector<std::string>(1000, "a:1"));
  Hello hello = HelloOf(0);
  hello.ranks = 1000;
  hello.addresses = AddressesHash(std::vector<std::string>(1000, "a:1"));
  ASSERT_TRUE(table.Enter(hello).ok());
  table.Take(0, WriteHello(1, hello));
  EXPECT_EQ(
      Show(table.Take(0, {.verb = StoreVerb::kAsk, .id = 1})),
      "0: waiting 1 rank 1 (a:1), rank 2 (a:1), rank 3 (a:1), rank 4 (a:1), rank 5 (a:1), rank 6 (a:1), "
      "rank 7 (a:1), rank 8 (a:1) and 991 more have not come\n");
}

TEST(StoreMessage, RoundTripsAndRefusesChangedBytes) {
  const StoreMessage sent{.verb = StoreVerb::kSet, .id = 7, .number = -3, .key = "k", .value = "value"};
  const Result<StoreMessage> got = Decode(Encode(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->id, 7u);
  EXPECT_EQ(got->number, -3);
  EXPECT_EQ(got->key, "k");
  EXPECT_EQ(got->value, "value");
  Message changed = Encode(sent);
  changed.body = Payload::Of("walue");
  EXPECT_EQ(Decode(changed).status().id(), "E-rendezvous-message");
  for (std::size_t size = 0; size < 28; ++size) {
    Message cut = Encode(sent);
    cut.head.resize(size);
    EXPECT_FALSE(Decode(cut).ok());
  }
  Message verb = Encode(sent);
  verb.head[4] = 11;
  EXPECT_FALSE(Decode(verb).ok());
  EXPECT_FALSE(Decode(Encode({.key = std::string(kKeyBytesMax + 1, 'k')})).ok());
}

TEST(StoreMessage, AnErrorOfAPeerWithAnUnknownCodeIsUnavailable) {
  EXPECT_EQ(ReadFailed({.number = 999, .key = "E-x", .value = "why"}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReadFailed({.number = 0, .key = "E-x", .value = "why"}).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(ReadFailed({.verb = StoreVerb::kLeave}).ok());
}

// A rank may send anything, including a number that is not a code in a wider type either.
TEST(StoreMessage, AnInvalidCodeIsUnavailable) {
  const StoreMessage bad = WriteFailed(StoreVerb::kFailed, 1, InvalidArgument("E-test", "x"));
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{99}, std::int64_t{-1}, (std::int64_t{1} << 32) + 3}) {
    StoreMessage other = bad;
    other.number = number;
    EXPECT_EQ(ReadFailed(other).code(), StatusCode::kUnavailable) << number;
  }
  EXPECT_EQ(ReadFailed(bad).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::rendezvous
