// Single calls over gRPC: a server and its clients in this process, over real connections.
#include "executor/transport/unary.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/free_port.h"
#include "tests/support/raw_socket.h"

namespace penstock::transport {
namespace {

using namespace std::chrono_literals;

constexpr char kService[] = "test.Calls";

class Handler : public UnaryHandler {
 public:
  using Answer = std::function<void(const std::string& method, Payload request, UnaryDone done)>;
  explicit Handler(Answer answer) : answer_(std::move(answer)) {}
  void OnCall(const std::string& /*caller*/, const std::string& method, Payload request,
              UnaryDone done) override {
    answer_(method, std::move(request), std::move(done));
  }

 private:
  const Answer answer_;
};

std::string Address() { return StrCat("127.0.0.1:", test::FreePort()); }

std::unique_ptr<Listener> Listen(const std::string& address, UnaryHandler& handler) {
  Result<std::unique_ptr<Listener>> listener =
      ListenUnary(address, handler,
                  {.service = kService, .methods = {"Echo", "Other"}, .report = [](const std::string& line) {
                     ADD_FAILURE() << "reported: " << line;
                   }});
  EXPECT_TRUE(listener.ok()) << listener.status().ToString();
  return *std::move(listener);
}

std::future<Result<UnaryReply>> Call(UnaryClient& client, const std::string& method, const Payload& request,
                                     Nanoseconds timeout = 60s) {
  auto promise = std::make_shared<std::promise<Result<UnaryReply>>>();
  client.Call(method, request, timeout,
              [promise](Result<UnaryReply> reply) { promise->set_value(std::move(reply)); });
  return promise->get_future();
}

Handler Echo() {
  return Handler(
      [](const std::string&, Payload request, UnaryDone done) { done(UnaryReply(std::move(request))); });
}

TEST(Unary, ACallReturnsItsReply) {
  Handler handler([](const std::string& method, const Payload& request, const UnaryDone& done) {
    done(UnaryReply(Payload::Of(method + " " + request.ToText())));
  });
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  const Result<UnaryReply> reply = Call(*client, "Other", Payload::Of("hello")).get();
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ((*reply)->ToText(), "Other hello");
}

TEST(Unary, AnAbsentMessageDiffersFromAnEmptyOne) {
  Handler handler([](const std::string&, const Payload& request, const UnaryDone& done) {
    done(request.size() == 0 ? UnaryReply() : UnaryReply(Payload()));
  });
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  const Result<UnaryReply> none = Call(*client, "Echo", Payload()).get();
  ASSERT_TRUE(none.ok()) << none.status().ToString();
  EXPECT_FALSE(none->has_value());
  const Result<UnaryReply> empty = Call(*client, "Echo", Payload::Of("x")).get();
  ASSERT_TRUE(empty.ok()) << empty.status().ToString();
  ASSERT_TRUE(empty->has_value());
  EXPECT_EQ((*empty)->size(), 0u);
}

TEST(Unary, ALargeRequestRoundTrips) {
  Handler handler = Echo();
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  std::string bytes(48 << 20, 'a');
  for (std::size_t i = 0; i < bytes.size(); i += 997) bytes[i] = static_cast<char>(i);
  const Result<UnaryReply> reply = Call(*client, "Echo", Payload::Of(bytes)).get();
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ((*reply)->ToText(), bytes);
}

TEST(Unary, ADelayedReplyDoesNotBlockOtherCalls) {
  std::mutex mutex;
  std::vector<UnaryDone> waiting;
  std::promise<void> three;
  Handler handler([&](const std::string& method, Payload request, UnaryDone done) {
    if (method == "Echo") return done(UnaryReply(std::move(request)));
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(done));
    if (waiting.size() == 3) three.set_value();
  });
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  std::vector<std::future<Result<UnaryReply>>> late;
  for (int i = 0; i < 3; ++i) late.push_back(Call(*client, "Other", Payload::Of("x")));
  three.get_future().wait();
  EXPECT_TRUE(Call(*client, "Echo", Payload::Of("now")).get().ok());
  for (UnaryDone& done : waiting) {
    done(UnaryReply(Payload::Of("first")));
    done(UnaryReply(Payload::Of("second")));  // does nothing
  }
  for (auto& reply : late) EXPECT_EQ((*reply.get())->ToText(), "first");
}

TEST(Unary, AnErrorArrivesWithItsText) {
  Handler handler([](const std::string&, const Payload&, const UnaryDone& done) {
    done(InternalError("E-test-no", "no such variable"));
  });
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  const Result<UnaryReply> refused = Call(*client, "Echo", Payload::Of("x")).get();
  EXPECT_EQ(refused.status().id(), "E-rpc-refused");
  EXPECT_NE(refused.status().message().find("code 13: no such variable   [E-test-no]"), std::string::npos)
      << refused.status().ToString();
}

TEST(Unary, AnUnknownMethodAndAnUnansweredCallAreErrors) {
  Handler handler([](const std::string&, const Payload&, const UnaryDone&) {});
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  const Result<UnaryReply> unknown = Call(*client, "Nothing", Payload::Of("x")).get();
  EXPECT_NE(unknown.status().message().find("code 12"), std::string::npos) << unknown.status().ToString();
  const Result<UnaryReply> dropped = Call(*client, "Echo", Payload::Of("x")).get();
  EXPECT_NE(dropped.status().message().find("E-rpc-unanswered"), std::string::npos)
      << dropped.status().ToString();
  const auto stranger = MakeUnaryClient(address, "other.Service");
  EXPECT_EQ(Call(*stranger, "Echo", Payload::Of("x")).get().status().id(), "E-rpc-refused");
}

TEST(Unary, CallsWaitForALateServer) {
  Handler handler = Echo();
  const std::string address = Address();
  const auto client = MakeUnaryClient(address, kService);
  std::future<Result<UnaryReply>> reply = Call(*client, "Echo", Payload::Of("x"));
  const auto server = Listen(address, handler);
  EXPECT_TRUE(reply.get().ok());
}

TEST(Unary, ACallEndsAtItsDeadline) {
  const auto client = MakeUnaryClient(Address(), kService);
  EXPECT_EQ(Call(*client, "Echo", Payload::Of("x"), 50ms).get().status().id(), "E-rpc-deadline");
}

TEST(Unary, StopAndCancelEndPendingCalls) {
  std::vector<UnaryDone> waiting;
  std::promise<void> there, there_again;
  Handler handler([&](const std::string& method, const Payload&, UnaryDone done) {
    waiting.push_back(std::move(done));
    (method == "Echo" ? there : there_again).set_value();
  });
  const std::string address = Address();
  auto server = Listen(address, handler);
  const auto client = MakeUnaryClient(address, kService);
  std::future<Result<UnaryReply>> cancelled = Call(*client, "Echo", Payload::Of("x"));
  there.get_future().wait();
  client->Cancel();
  EXPECT_EQ(cancelled.get().status().id(), "E-rpc-cancelled");
  EXPECT_EQ(Call(*client, "Echo", Payload::Of("x")).get().status().id(), "E-rpc-cancelled");

  const auto other = MakeUnaryClient(address, kService);
  std::future<Result<UnaryReply>> stopped = Call(*other, "Other", Payload::Of("x"));
  there_again.get_future().wait();
  server.reset();
  EXPECT_EQ(stopped.get().status().id(), "E-rpc-unavailable");
  for (UnaryDone& done : waiting) done(UnaryReply());  // no caller waits any more
}

TEST(Unary, TwoServersOnOneAddressAreAnError) {
  Handler handler = Echo();
  const std::string address = Address();
  const auto server = Listen(address, handler);
  const Result<std::unique_ptr<Listener>> second =
      ListenUnary(address, handler, {.service = kService, .methods = {}});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().id(), "E-rpc-bind");
}

// Like Fluid's trainers when they check whether a server runs.
TEST(Unary, AConnectionThatOnlyOpensAndClosesIsIgnored) {
  Handler handler = Echo();
  const std::string address = Address();
  const auto server = Listen(address, handler);  // a report fails the test
  for (int i = 0; i < 20; ++i) {
    test::RawSocket socket(address);
    EXPECT_TRUE(socket.connected());
  }
  const auto client = MakeUnaryClient(address, kService);
  EXPECT_TRUE(Call(*client, "Echo", Payload::Of("x")).get().ok());
}

TEST(Unary, AnExternallyReachableAddressIsWarnedOf) {
  Handler handler = Echo();
  std::vector<std::string> lines;
  const Result<std::unique_ptr<Listener>> server =
      ListenUnary(StrCat("0.0.0.0:", test::FreePort()), handler,
                  {.service = kService, .methods = {}, .report = [&](const std::string& line) {
                     lines.push_back(line);
                   }});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("no authentication"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace penstock::transport
