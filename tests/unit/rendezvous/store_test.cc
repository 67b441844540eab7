// The store over real sockets, each rank with its own transport.
#include "executor/collective/rendezvous/store.h"

#include <gtest/gtest.h>

#include "tests/support/raw_socket.h"
#include "tests/unit/rendezvous/ranks.h"

namespace penstock::rendezvous {
namespace {

using std::chrono::seconds;

TEST(Store, RanksShareValuesCountersAndBarriers) {
  Job job(4);
  std::vector<std::future<Status>> ends;
  std::atomic<int> before = 0;
  for (int rank = 0; rank < 4; ++rank) {
    ends.push_back(job.Start(rank, [&](Store& store) -> Status {
      PENSTOCK_RETURN_IF_ERROR(
          store.Set(StrCat("value/", store.rank()), std::string(1'000'000, 'a' + store.rank())));
      for (int other = 0; other < 4; ++other) {
        PENSTOCK_ASSIGN_OR_RETURN(const std::string value, store.Get(StrCat("value/", other)));
        EXPECT_EQ(value, std::string(1'000'000, 'a' + other));
      }
      PENSTOCK_RETURN_IF_ERROR(store.Add("count", store.rank() + 1).status());
      for (int round = 1; round <= 3; ++round) {
        ++before;
        PENSTOCK_RETURN_IF_ERROR(store.Barrier("twice"));
        EXPECT_GE(before, 4 * round);
      }
      PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t sum, store.Add("count", 0));
      EXPECT_EQ(sum, 10);
      return OkStatus();
    }));
  }
  for (std::future<Status>& end : ends) EXPECT_EQ(end.get().ToString(), "ok");
}

TEST(Store, OneRankAlone) {
  Job job(1);
  EXPECT_EQ(job.Start(0, [](Store& store) { return store.Barrier("b"); }).get().ToString(), "ok");
}

TEST(Store, ARankMayStartBeforeRankZero) {
  Job job(2);
  std::future<Status> early = job.Start(1, Nothing);
  EXPECT_EQ(early.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(job.Start(0, Nothing).get().ToString(), "ok");
  EXPECT_EQ(early.get().ToString(), "ok");
}

TEST(Store, MissingRanksAreReportedAfter10And20And40Seconds) {
  Job job(3);
  ManualClock clock;
  job.clock = &clock;
  std::future<Status> rank0 = job.Start(0, Nothing), rank1 = job.Start(1, Nothing);
  ASSERT_TRUE(job.keeper->WaitForMessages(2));
  // Until a rank has heard rank 0, it says that rank 0 does not answer.
  for (const int rank : {0, 1}) ASSERT_TRUE(job.transports[rank]->WaitForAnswers(1));
  for (const int after : {10, 20, 40}) {
    clock.Advance(seconds(after == 10 ? 10 : after / 2));
    const std::string line =
        StrCat("waiting ", after, " s for all 3 ranks to come: rank 2 (", job.addresses[2], ") has not come");
    EXPECT_EQ(job.lines.Take(2), std::vector<std::string>(2, line));
  }
  clock.Advance(seconds(20));
  const std::string missing =
      StrCat("waited 60 s for all 3 ranks to come: rank 2 (", job.addresses[2], ") has not come");
  // Either rank may give up first, and tells the other.
  for (std::future<Status>* rank : {&rank0, &rank1}) {
    const Status end = rank->get();
    EXPECT_TRUE(end.id() == "E-rendezvous-timeout" || end.id() == "E-rendezvous-gone") << end.ToString();
    EXPECT_NE(end.message().find(missing), std::string::npos) << end.ToString();
  }
}

TEST(Store, AMissingRankZeroIsReported) {
  Job job(2);
  ManualClock clock;
  job.clock = &clock;
  StoreOptions options = job.Options(1);
  std::promise<void> waits;
  std::atomic<bool> waited = false;
  options.interrupted = [&] {
    if (!waited.exchange(true)) waits.set_value();
    return false;
  };
  std::future<Status> rank1 = job.Start(options, Nothing);
  ASSERT_EQ(waits.get_future().wait_for(seconds(30)), std::future_status::ready);
  clock.Advance(seconds(10));
  EXPECT_EQ(job.lines.Take(1),
            std::vector<std::string>{StrCat("waiting 10 s for all 2 ranks to come: rank 0 (",
                                            job.addresses[0], "), which keeps the store, does not answer")});
  clock.Advance(seconds(50));
  EXPECT_EQ(rank1.get().id(), "E-rendezvous-timeout");
}

TEST(Store, UnsetKeysAndIncompleteBarriersAreReported) {
  Job job(2);
  ManualClock clock;
  job.clock = &clock;
  std::promise<void> done;
  std::shared_future<void> end(done.get_future());
  std::future<Status> rank1 = job.Start(1, [&](Store&) {
    end.wait_for(seconds(60));
    return OkStatus();
  });
  std::future<Status> rank0 = job.Start(0, [&](Store& store) {
    std::future<Result<std::string>> get = std::async(std::launch::async, [&] { return store.Get("k"); });
    std::future<Status> barrier = std::async(std::launch::async, [&] { return store.Barrier("b"); });
    EXPECT_TRUE(job.keeper->WaitForMessages(4));
    clock.Advance(seconds(10));
    EXPECT_EQ(job.lines.Take(2),
              (std::vector<std::string>{
                  StrCat("waiting 10 s at barrier \"b\": rank 1 (", job.addresses[1], ") has not come to it"),
                  "waiting 10 s for key \"k\": no rank has set it"}));
    clock.Advance(seconds(50));
    EXPECT_EQ(barrier.get().message(), StrCat("rank 0 waited 60 s at barrier \"b\": rank 1 (",
                                              job.addresses[1], ") has not come to it"));
    EXPECT_EQ(get.get().status().message(), "rank 0 waited 60 s for key \"k\": no rank has set it");
    done.set_value();
    return OkStatus();
  });
  EXPECT_EQ(rank0.get().ToString(), "ok");
  EXPECT_EQ(rank1.get().ToString(), "ok");
}

TEST(Store, AWrongTokenIsRefused) {
  Job job(2);
  std::future<Status> rank0 = job.Start(0, Nothing);
  const Status wrong = job.Start(1, Nothing, "guess").get();
  EXPECT_EQ(wrong.id(), "E-rpc-token") << wrong.ToString();
  EXPECT_EQ(wrong.message().find(StrCat("rank 0 (", job.addresses[0], "): ")), 0u) << wrong.ToString();
  EXPECT_EQ(job.Start(1, Nothing).get().ToString(), "ok");
  EXPECT_EQ(rank0.get().ToString(), "ok");
}

TEST(Store, MismatchedRanksAreRefusedAndOthersContinue) {
  Job job(3);
  std::future<Status> rank0 = job.Start(0, Nothing), rank1 = job.Start(1, Nothing);
  ASSERT_TRUE(job.keeper->WaitForMessages(2));
  const Status twice = job.Start(1, Nothing).get();
  EXPECT_EQ(twice.message(),
            StrCat("rank 1 (", job.addresses[1], ", process ", getpid(), ") claims the number of rank 1 (",
                   job.addresses[1], "), process ", getpid()));
  EXPECT_EQ(twice.id(), "E-rendezvous-rank");
  StoreOptions few = job.Options(1);
  few.addresses.pop_back();
  const Status other = job.Start(few, Nothing).get();
  EXPECT_EQ(other.message(), StrCat("rank 1 (", job.addresses[1], ", process ", getpid(),
                                    ") is one of 2 ranks, rank 0 (", job.addresses[0], ") one of 3"));
  EXPECT_EQ(other.id(), "E-rendezvous-world");
  const std::vector<std::string> lines = job.lines.Take(2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], StrCat("refused a process: ", twice.message(), "   [E-rendezvous-rank]"));
  EXPECT_EQ(lines[1], StrCat("refused a process: ", other.message(), "   [E-rendezvous-world]"));
  EXPECT_EQ(job.Start(2, Nothing).get().ToString(), "ok");
  EXPECT_EQ(rank0.get().ToString(), "ok");
  EXPECT_EQ(rank1.get().ToString(), "ok");
}

TEST(Store, AFailingRankSendsItsReasonToTheOthers) {
  Job job(3);
  std::future<Status> rank0 = job.Start(0, [](Store& store) { return store.Barrier("b"); });
  std::future<Status> rank1 = job.Start(1, [](Store& store) { return store.Get("k").status(); });
  std::future<Status> rank2 = job.Start(2, [](Store& store) {
    store.Leave(InvalidArgument("E-shape-mul", "mul: width of X (784) must equal height of Y (512)"));
    return OkStatus();
  });
  for (std::future<Status>* rank : {&rank0, &rank1}) {
    EXPECT_EQ(rank->get().ToString(), StrCat("rank 2 (", job.addresses[2],
                                             ") is gone: mul: width of X (784) must equal height of Y (512)",
                                             "   [E-rendezvous-gone]"));
  }
  EXPECT_TRUE(rank2.get().ok());
}

TEST(Store, ADepartedRankEndsBarriers) {
  Job job(2);
  std::future<Status> rank1 = job.Start(1, [](Store& store) { return store.Set("k", "v"); });
  std::future<Status> rank0 = job.Start(0, [](Store& store) -> Status {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string value, store.Get("k"));
    EXPECT_EQ(value, "v");
    return store.Barrier("b");
  });
  EXPECT_EQ(rank1.get().ToString(), "ok");
  EXPECT_EQ(rank0.get().message(), StrCat("rank 1 (", job.addresses[1], ") has left the job"));
}

TEST(Store, CancelEndsPendingAndLaterCalls) {
  Job job(2);
  std::future<Status> rank1 = job.Start(1, [](Store& store) { return store.Get("end").status(); });
  std::future<Status> rank0 = job.Start(0, [&](Store& store) {
    std::future<Status> barrier = std::async(std::launch::async, [&] { return store.Barrier("b"); });
    EXPECT_TRUE(job.keeper->WaitForMessages(3));
    store.Cancel();
    EXPECT_EQ(barrier.get().id(), "E-rendezvous-cancelled");
    EXPECT_EQ(store.Add("count", 1).status().id(), "E-rendezvous-cancelled");
    store.Leave(Cancelled("E-rendezvous-cancelled", "the rendezvous was cancelled"));
    return OkStatus();
  });
  EXPECT_TRUE(rank0.get().ok());
  EXPECT_EQ(rank1.get().id(), "E-rendezvous-gone");
}

TEST(Store, AnInterruptedCallEnds) {
  Job job(2);
  StoreOptions options = job.Options(0);
  std::atomic<bool> interrupted = false;
  options.interrupted = [&] { return interrupted.load(); };
  std::future<Status> rank0 = job.Start(options, Nothing);
  ASSERT_TRUE(job.keeper->WaitForMessages(1));
  interrupted = true;
  EXPECT_EQ(rank0.get().id(), "E-rendezvous-cancelled");
}

TEST(Store, SilentConnectionsDoNotBlockRanks) {
  Job job(2);
  ASSERT_TRUE(test::AllowDescriptors(2000));
  std::future<Status> rank0 = job.Start(0, Nothing);
  ASSERT_TRUE(job.keeper->WaitForMessages(1));
  std::vector<test::RawSocket> idle;
  for (int i = 0; i < 300; ++i) idle.emplace_back(job.addresses[0]);
  EXPECT_EQ(job.Start(1, Nothing).get().ToString(), "ok");
  EXPECT_EQ(rank0.get().ToString(), "ok");
}

class Ended : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message) override {}
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override { ended_.set_value(); }
  bool Wait() { return ended_.get_future().wait_for(seconds(30)) == std::future_status::ready; }

 private:
  std::promise<void> ended_;
};

TEST(Store, InvalidMessagesCloseTheConnection) {
  Job job(2);
  std::future<Status> rank0 = job.Start(0, Nothing);
  ASSERT_TRUE(job.keeper->WaitForMessages(1));
  const auto transport = transport::MakeGrpcTransport({.token = "secret", .tell = [](auto&) {}});
  const std::vector<Message> nonsense = {
      {},
      {.head = std::string(40, 'x'), .body = {}},
      Encode({.verb = StoreVerb::kSet, .id = 1, .key = "k", .value = "v"}),
      Encode({.verb = StoreVerb::kHello, .id = 1, .number = -1, .key = "job", .value = "2\n0\n0\na"}),
      Encode({.verb = StoreVerb::kHello, .id = 1, .key = "job", .value = "many"}),
  };
  for (const Message& message : nonsense) {
    Ended handler;
    const auto connection = transport->Connect(job.addresses[0], handler);
    connection->Send(message);
    EXPECT_TRUE(handler.Wait());
  }
  EXPECT_EQ(job.Start(1, Nothing).get().ToString(), "ok");
  EXPECT_EQ(rank0.get().ToString(), "ok");
}

TEST(Store, KeysAndValuesAreBounded) {
  Job job(1);
  const Status end =
      job.Start(0,
                [](Store& store) {
                  EXPECT_EQ(store.Get("").status().id(), "E-rendezvous-limit");
                  EXPECT_EQ(store.Add(std::string(513, 'k'), 1).status().id(), "E-rendezvous-limit");
                  EXPECT_EQ(store.Set("k", std::string(kValueBytesMax + 1, 'v')).message(),
                            "the value of key \"k\" has 4194305 bytes; it may have 4194304");
                  PENSTOCK_RETURN_IF_ERROR(store.Set("k", std::string(kValueBytesMax, 'v')));
                  return store.Get("k").status();
                })
          .get();
  EXPECT_EQ(end.ToString(), "ok");
}

TEST(Store, ARankOutOfRangeIsRefusedLocally) {
  Job job(2);
  EXPECT_EQ(job.Start(job.Options(2), Nothing).get().ToString(),
            "rank 2 is out of range; there are 2 ranks   [E-rendezvous-facts]");
}

}  // namespace
}  // namespace penstock::rendezvous
