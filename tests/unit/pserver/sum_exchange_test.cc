#include "executor/pserver/machine/sum_exchange.h"

#include <gtest/gtest.h>

#include "tests/unit/pserver/machine_driver.h"

namespace penstock::test {
namespace {

using pserver::SumExchange;

Payload Sums(const char* text) { return Payload::Of(std::string(text)); }

TEST(SumExchange, IsCompleteWithAllChunksAndServers) {
  SumExchange exchange(2, 3, 1);
  EXPECT_TRUE(exchange.Take(0, 0, Sums("a")));
  EXPECT_FALSE(exchange.Measured());
  EXPECT_TRUE(exchange.Lacks().empty()) << "it waits for its own chunks";
  EXPECT_TRUE(exchange.Measured());
  EXPECT_EQ(exchange.Lacks(), std::vector<int>{2});
  EXPECT_FALSE(exchange.whole());
  EXPECT_TRUE(exchange.Take(2, 0, Sums("c")));
  ASSERT_TRUE(exchange.whole());
  const std::vector<Payload> sums = exchange.Begin();
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].ToText() + "|" + sums[1].ToText() + "|" + sums[2].ToText(), "a||c");
  EXPECT_FALSE(exchange.whole()) << "it has begun";
  exchange.End();
  EXPECT_EQ(exchange.over(), 1u);
}

TEST(SumExchange, ARepeatedSumCountsOnce) {
  SumExchange exchange(1, 2, 0);
  EXPECT_TRUE(exchange.Take(1, 0, Sums("first")));
  EXPECT_TRUE(exchange.Take(1, 0, Sums("again")));
  EXPECT_TRUE(exchange.Take(1, 1, Sums("next"))) << "the other server may be one step ahead";
  EXPECT_FALSE(exchange.Take(1, 2, Sums("too far")));
  EXPECT_TRUE(exchange.Measured());
  EXPECT_EQ(exchange.Begin()[1].ToText(), "first");
  EXPECT_TRUE(exchange.Take(1, 0, Sums("while it runs")));
  exchange.End();
  EXPECT_TRUE(exchange.Take(1, 0, Sums("long after")));
  EXPECT_TRUE(exchange.Measured());
  EXPECT_EQ(exchange.Begin()[1].ToText(), "next");
}

TEST(SumExchange, IsSettledWhenAllServersHaveTheSums) {
  SumExchange exchange(1, 2, 0);
  EXPECT_TRUE(exchange.settled());
  exchange.Measured();
  EXPECT_FALSE(exchange.settled());
  exchange.Taken(1, 0);
  EXPECT_FALSE(exchange.settled()) << "the other's sums are still to come";
  exchange.Take(1, 0, Sums("x"));
  exchange.Begin();
  exchange.End();
  EXPECT_TRUE(exchange.settled());
  exchange.Taken(1, 99);  // of an unknown sum
  exchange.Measured();
  EXPECT_FALSE(exchange.settled());
  exchange.Complete(1);
  EXPECT_TRUE(exchange.settled()) << "it will never tell: the step does not happen";
}

pserver::MachineConfig Clipping(int servers) {
  pserver::MachineConfig config = Config(1);
  config.servers = servers;
  config.params[0].clips = true;
  return config;
}

std::string Measured(Driver& d, int chunk) {
  return d.Do([&](pserver::Actions& out) { d.machine.MeasureDone(0, chunk, OkStatus(), out); });
}
std::string Combined(Driver& d) {
  return d.Do([&](pserver::Actions& out) { d.machine.CombineDone(OkStatus(), out); });
}

TEST(StateMachineSums, UpdatesWaitForAllSums) {
  Driver d(Clipping(2));
  d.Push(0, 0, 0);
  EXPECT_EQ(d.Merged(0), "measure c0 s0");
  EXPECT_EQ(Measured(d, 0), "");
  d.Push(0, 0, 1);
  EXPECT_EQ(d.Merged(1), "measure c1 s0");
  EXPECT_EQ(Measured(d, 1), "tell s0");
  EXPECT_TRUE(d.machine.WaitsForSums(0, 0));
  EXPECT_EQ(d.machine.sums().Lacks(), std::vector<int>{1});
  const auto told = [&] {
    return d.Do([&](pserver::Actions& out) { d.machine.TakeSums(1, 0, Sums("other"), out); });
  };
  EXPECT_EQ(told(), "combine s0 [] [other]");
  EXPECT_EQ(told(), "") << "a repeat";
  EXPECT_EQ(Combined(d), "run c0 s0; run c1 s0");
}

TEST(StateMachineSums, OneServerMeasuresAndCombinesByItself) {
  Driver d(Clipping(1));
  d.Push(0, 0, 0);
  d.Merged(0);
  Measured(d, 0);
  d.Push(0, 0, 1);
  d.Merged(1);
  EXPECT_EQ(Measured(d, 1), "combine s0 []");
  EXPECT_EQ(Combined(d), "run c0 s0; run c1 s0");
}

TEST(StateMachineSums, TheRateComesAfterTheNorms) {
  pserver::MachineConfig config = Clipping(1);
  config.has_lr_block = true;
  Driver d(config);
  d.Push(0, 0, 0);
  d.Push(0, 0, 1);
  EXPECT_EQ(d.Merged(0), "measure c0 s0");
  EXPECT_EQ(d.Merged(1), "measure c1 s0");
  Measured(d, 0);
  Measured(d, 1);
  EXPECT_EQ(Combined(d), "lr s0");
  EXPECT_EQ(d.LrRan(), "run c0 s0; run c1 s0");
}

TEST(StateMachineSums, AServerEndsWhenTheOthersHaveItsSums) {
  Driver d(Clipping(2));
  d.Push(0, 0, 0);
  d.Push(0, 0, 1);
  d.Merged(0);
  d.Merged(1);
  Measured(d, 0);
  Measured(d, 1);
  d.Do([&](pserver::Actions& out) { d.machine.TakeSums(1, 0, Sums("other"), out); });
  Combined(d);
  d.Ran(0);
  d.Ran(1);
  EXPECT_EQ(d.Complete(0), "completed t0");
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.SumsTaken(1, 0, out); }), "end ok");
}

TEST(StateMachineSums, ALostServerEndsTheJobUnlessItHasCompleted) {
  const Status why = Unavailable("E-peer-lost", "gone");
  Driver d(Clipping(2));
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.ServerGone(1, why, out); }),
            "error t0 E-peer-lost; end E-peer-lost");
  Driver completed(Clipping(2));
  EXPECT_EQ(completed.Do([&](pserver::Actions& out) {
    completed.machine.ServerCompleted(1, out);
    completed.machine.ServerGone(1, why, out);
  }),
            "");
}

TEST(StateMachineSums, AServerTooFarAheadIsAnError) {
  Driver d(Clipping(2));
  EXPECT_EQ(d.Do([&](pserver::Actions& out) { d.machine.TakeSums(1, 2, Sums("x"), out); }),
            "error t0 E-rpc-credit; end E-rpc-credit");
}

}  // namespace
}  // namespace penstock::test
