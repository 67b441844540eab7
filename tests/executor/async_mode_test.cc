// The asynchronous mode of a trainer's communicator, with a client that answers at once.
#include "executor/communicator/async_mode.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace penstock::communicator {
namespace {

// A client that counts its calls. A pulled value is the number of finished steps.
class CountingClient : public RpcClient {
 public:
  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece&) override { return PushHandle{0}; }
  Result<PullHandle> DeclarePull(const RemotePiece&) override { return PullHandle{0}; }
  Result<RowsHandle> DeclareRows(const RemotePiece&) override { return RowsHandle{0}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }
  Status Push(PushHandle, const Variable&) override {
    ++pushes;
    return OkStatus();
  }
  Status CountStep(PeersHandle pservers) override {
    EXPECT_EQ(pservers.index, 7);
    EXPECT_FALSE(counted_) << "two counts in one step of the client";
    counted_ = true;
    ++counts;
    return OkStatus();
  }
  Status EndStep(PeersHandle) override {
    counted_ = false;
    ++steps_;
    return OkStatus();
  }
  Status Pull(PullHandle, Variable& out) override {
    Tensor& tensor = out.As<Tensor>();
    tensor.Refit(DType::kFp32, {1});
    tensor.Data<float>()[0] = static_cast<float>(steps_);
    return OkStatus();
  }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return OkStatus(); }
  Status CompleteRows() override { return OkStatus(); }
  Status CompletePulls(PeersHandle) override {
    pushes_there = pushes.load();
    return OkStatus();
  }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return OkStatus();
  }
  Status Complete() override { return OkStatus(); }
  void Cancel() override {}

  int counts = 0;
  std::atomic<int> pushes = 0;
  std::atomic<int> pushes_there = 0;  // that the servers had when pulls were complete last

 private:
  bool counted_ = false;
  std::atomic<int> steps_ = 0;
};

WholeVariable Whole(const std::string& name) {
  return {.name = name, .pieces = {{.remote = {.pserver = "a:1", .name = name, .shape = {1}}, .end = 1}}};
}

Variable One() {
  Variable made;
  made.As<Tensor>() = Tensor(DType::kFp32, {1});
  made.As<Tensor>().Data<float>()[0] = 1;
  return made;
}

TEST(AsyncMode, MergedGradientsCountEachStepOnce) {
  for (const std::size_t merge_max : {1, 3}) {
    CountingClient client;
    const auto mode = MakeAsyncMode(
        client,
        {.queues = {.queue_max = 4, .merge_max = merge_max, .patience = std::chrono::milliseconds(0)}},
        {"a:1"}, 0);
    Gradient gradient{.whole = Whole("w@GRAD"), .pieces = {PushHandle{0}}};
    for (int step = 0; step < 50; ++step) {
      ASSERT_TRUE(mode->Send(gradient, One(), {}).ok());
      ASSERT_TRUE(mode->CountStep(PeersHandle{7}).ok());
    }
    ASSERT_TRUE(mode->Stop().ok());
    EXPECT_EQ(client.counts, 50);
    EXPECT_LE(client.pushes, 50);
    EXPECT_GE(client.pushes, 50 / static_cast<int>(merge_max));
  }
}

TEST(AsyncMode, FlushSendsIncompleteMerges) {
  CountingClient client;
  const auto mode = MakeAsyncMode(
      client, {.queues = {.queue_max = 9, .merge_max = 2, .patience = std::chrono::hours(1)}}, {"a:1"}, 0);
  Gradient gradient{.whole = Whole("w@GRAD"), .pieces = {PushHandle{0}}};
  ASSERT_TRUE(mode->Flush().ok()) << "nothing is queued";
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(mode->Send(gradient, One(), {}).ok());
  ASSERT_TRUE(mode->Flush().ok());
  EXPECT_EQ(client.pushes, 3) << "two rounds of two gradients, and one of the last";
  EXPECT_EQ(client.pushes_there, 3) << "it returns when the servers have them";
  ASSERT_TRUE(mode->Stop().ok());
  ASSERT_TRUE(mode->Flush().ok()) << "nothing is queued any more";
}

TEST(AsyncMode, ReceivedValuesApplyBeforeTheNextRun) {
  CountingClient client;
  const auto mode =
      MakeAsyncMode(client,
                    {.queues = {.queue_max = 1, .merge_max = 1, .patience = std::chrono::milliseconds(0)},
                     .rounds_before_receive = 0,
                     .receives_apart = false},
                    {"a:1"}, 0);
  Gradient gradient{.whole = Whole("w@GRAD"), .pieces = {PushHandle{0}}};
  Param param{.whole = Whole("w"), .pieces = {PullHandle{0}}};
  Scope scope, other;
  Tensor& w = scope.FindOrCreate("w")->As<Tensor>();
  w = Tensor(DType::kFp32, {1});
  w.Data<float>()[0] = 0;
  ASSERT_TRUE(mode->Land(param, w).ok());  // from here on it is requested
  ASSERT_TRUE(mode->Send(gradient, One(), {}).ok());
  ASSERT_TRUE(mode->BeginRun(other).ok()) << "a scope without the parameter";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (w.Data<float>()[0] == 0 && std::chrono::steady_clock::now() < end) {
    ASSERT_TRUE(mode->BeginRun(scope).ok());
    std::this_thread::yield();
  }
  EXPECT_EQ(w.Data<float>()[0], 1);
  w.Data<float>()[0] = 5;
  ASSERT_TRUE(mode->BeginRun(scope).ok());
  EXPECT_EQ(w.Data<float>()[0], 5) << "it lands once";
  ASSERT_TRUE(mode->Stop().ok());
}

TEST(AsyncMode, ParametersLackOnlyTheNewestGradients) {
  for (const bool receives_apart : {true, false}) {
    CountingClient client;
    const AsyncSettings settings{
        .queues = {.queue_max = 1, .merge_max = 1, .patience = std::chrono::milliseconds(0)},
        .rounds_before_receive = 1,
        .receives_apart = receives_apart};
    ASSERT_EQ(settings.own_gradients_missing_max(), 3);
    const auto mode = MakeAsyncMode(client, settings, {"a:1"}, 0);
    Gradient gradient{.whole = Whole("w@GRAD"), .pieces = {PushHandle{0}}};
    Param param{.whole = Whole("w"), .pieces = {PullHandle{0}}};
    Tensor w(DType::kFp32, {1});
    w.Data<float>()[0] = 0;
    for (int step = 1; step <= 500; ++step) {
      ASSERT_TRUE(mode->Send(gradient, One(), {}).ok());
      ASSERT_TRUE(mode->Land(param, w).ok());
      ASSERT_GE(w.Data<float>()[0], static_cast<float>(step - 3)) << "step " << step;
    }
    ASSERT_TRUE(mode->Stop().ok());
  }
}

}  // namespace
}  // namespace penstock::communicator
