// Groups over NCCL with a recording fake of its API; ranks are threads of this process. Needs no GPU.
#include "executor/collective/nccl/nccl.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <thread>

#include "executor/collective/arena/threads.h"
#include "tests/unit/collective/all_operations.h"
#include "tests/unit/collective/fake_gpu.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <nccl.h>
#define PENSTOCK_TEST_NCCL_HEADER
#endif

namespace penstock::collective {
namespace {

using Calls = std::vector<std::string>;

class NcclGroups : public testing::Test {
 protected:
  // Makes the fake, and the groups `agree` and `watch` of each rank.
  void Begin(int ranks) {
    gpus_ = std::make_unique<FakeGpus>(ranks);
    agree_ = MakeThreadGroups(ranks).value();
    watch_ = MakeThreadGroups(ranks, Nanoseconds(0)).value();
  }
  using OnGroup = std::function<void(CollectiveGroup& group)>;
  // Runs `use` with the group of each rank, or `refused` if the group could not be made.
  void OnEachRank(const OnGroup& use, const std::function<void(int rank, const Status&)>& refused = {}) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(agree_.size()); ++rank) {
      threads.emplace_back([&, rank] {
        const auto r = static_cast<std::size_t>(rank);
        Result<std::unique_ptr<CollectiveGroup>> group =
            MakeNcclGroup(gpus_->ApiOf(rank),
                          {.device = rank, .agree = std::move(agree_[r]), .watch = std::move(watch_[r])});
        if (group.ok()) {
          connecting_[r] = gpus_->Calls(rank);
          use(**group);
        } else if (refused) {
          refused(rank, group.status());
        } else {
          ADD_FAILURE() << group.status().ToString();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(gpus_->Held(), 0);
  }

  std::unique_ptr<FakeGpus> gpus_;
  std::vector<std::unique_ptr<CollectiveGroup>> agree_, watch_;
  Calls connecting_[8];
};

std::string Bytes(std::size_t count) { return std::string(count, 'x'); }

void ExpectEnd(const Status& status, std::string_view id, std::string_view text) {
  EXPECT_EQ(status.id(), id) << status.ToString();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.ToString();
}

TEST_F(NcclGroups, MatchASingleProcess) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    Begin(ranks);
    OnEachRank([](CollectiveGroup& group) {
      EXPECT_EQ(group.backend(), "nccl");
      EXPECT_EQ(FirstDifferenceOfRandom(group, 11, 60), "");
      EXPECT_EQ(group.size() == 3 ? FirstDifference(group, 2) : "", "");
    });
  }
}

TEST_F(NcclGroups, ConnectWithoutBlockingByTheIdOfRankZero) {
  Begin(2);
  OnEachRank([](CollectiveGroup&) {});
  const Calls device = {"cudaSetDevice(0)", "cudaStreamCreateWithFlags(1)", "cudaEventCreateWithFlags(2)"};
  Calls first = device;
  first.insert(first.end(), {"ncclGetUniqueId()", "ncclCommInitRankConfig(2, the fake's, 0, not blocking)"});
  EXPECT_EQ(connecting_[0], first);
  Calls second = device;
  second[0] = "cudaSetDevice(1)";
  second.push_back("ncclCommInitRankConfig(2, the fake's, 1, not blocking)");
  EXPECT_EQ(connecting_[1], second);
  EXPECT_EQ(gpus_->Calls(0), (Calls{"cudaSetDevice(0)", "ncclCommFinalize()", "ncclCommDestroy()",
                                    "cudaEventDestroy()", "cudaStreamDestroy()"}));
}

// The calls of rank 1 of 2 for one operation, without those for the device and the event.
class CallsOfOperation : public NcclGroups {
 protected:
  Calls Of(const std::function<Completion(CollectiveGroup&)>& start) {
    Begin(2);
    Calls made;
    OnEachRank([&](CollectiveGroup& group) {
      EXPECT_TRUE(start(group).Wait().ok());
      if (group.rank() == 1) made = gpus_->Calls(1);
    });
    if (made.empty()) return made;
    EXPECT_EQ(made.front(), "cudaSetDevice(1)");
    EXPECT_EQ(made.back(), "cudaEventRecord()");
    return Calls(made.begin() + 1, made.end() - 1);
  }
  static Elements In(std::string& bytes, ElementType type = ElementType::kFp32) {
    return ElementsOf(bytes, type);
  }
};

TEST_F(CallsOfOperation, AllReduceIsOneNcclCall) {
  const auto of = [this](ElementType type, Reduction reduction) {
    return Of([=](CollectiveGroup& group) {
      static thread_local std::string data;
      data.assign(16, '\0');
      return group.AllReduce(In(data, type), reduction);
    })[2];
  };
  EXPECT_EQ(of(ElementType::kFp32, Reduction::kSum), "ncclAllReduce(4, f32, sum)");
  EXPECT_EQ(of(ElementType::kFp64, Reduction::kMean), "ncclAllReduce(2, f64, avg)");
  EXPECT_EQ(of(ElementType::kFp16, Reduction::kProduct), "ncclAllReduce(8, f16, prod)");
  EXPECT_EQ(of(ElementType::kBf16, Reduction::kMax), "ncclAllReduce(8, bf16, max)");
  EXPECT_EQ(of(ElementType::kInt32, Reduction::kMin), "ncclAllReduce(4, i32, min)");
  EXPECT_EQ(of(ElementType::kInt64, Reduction::kSum), "ncclAllReduce(2, i64, sum)");
  EXPECT_EQ(of(ElementType::kUInt8, Reduction::kSum), "ncclAllReduce(16, u8, sum)");
  EXPECT_EQ(of(ElementType::kInt8, Reduction::kSum), "ncclAllReduce(16, i8, sum)");
}

TEST_F(CallsOfOperation, HostMemoryIsCopiedToAndFromTheGpu) {
  std::string data[2] = {Bytes(16), Bytes(16)};
  EXPECT_EQ(
      Of([&](CollectiveGroup& group) { return group.AllReduce(In(data[group.rank()]), Reduction::kSum); }),
      (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 16)", "ncclAllReduce(4, f32, sum)",
             "cudaMemcpyAsync(to the host, 16)"}));
  EXPECT_EQ(
      Of([&](CollectiveGroup& group) { return group.Reduce(In(data[group.rank()]), Reduction::kSum, 0); }),
      (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 16)", "ncclReduce(4, f32, sum, 0)"}));
  EXPECT_EQ(Of([&](CollectiveGroup& group) { return group.Broadcast(In(data[group.rank()]), 0); }),
            (Calls{"cudaMalloc(16)", "ncclBroadcast(4, f32, 0)", "cudaMemcpyAsync(to the host, 16)"}));
  EXPECT_EQ(Of([&](CollectiveGroup& group) { return group.Broadcast(In(data[group.rank()]), 1); }),
            (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 16)", "ncclBroadcast(4, f32, 1)"}));
  std::string parts[2] = {Bytes(8), Bytes(8)};
  EXPECT_EQ(Of([&](CollectiveGroup& group) {
              return group.ReduceScatter(In(data[group.rank()]), In(parts[group.rank()]), Reduction::kSum);
            }),
            (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 16)", "ncclReduceScatter(2, f32, sum)",
                   "cudaMemcpyAsync(to the host, 8)"}));
  EXPECT_EQ(Of([&](CollectiveGroup& group) {
              return group.AllGatherEqual(In(parts[group.rank()]), In(data[group.rank()]));
            }),
            (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 8)", "ncclAllGather(2, f32)",
                   "cudaMemcpyAsync(to the host, 16)"}));
  EXPECT_EQ(Of([&](CollectiveGroup& group) { return group.Barrier(); }), Calls());
}

TEST_F(CallsOfOperation, UnequalPartsAreBroadcastsOfOneGroup) {
  std::string in[2] = {Bytes(4), Bytes(12)}, out[2] = {Bytes(16), Bytes(16)};
  const std::int64_t counts[] = {1, 3};
  EXPECT_EQ(Of([&](CollectiveGroup& group) {
              return group.AllGather(In(in[group.rank()]), counts, In(out[group.rank()]));
            }),
            (Calls{"cudaMalloc(16)", "cudaMemcpyAsync(to the GPU, 12)", "ncclGroupStart()",
                   "ncclBroadcast(1, f32, 0)", "ncclBroadcast(3, f32, 1)", "ncclGroupEnd()",
                   "cudaMemcpyAsync(to the host, 16)"}));
}

TEST_F(CallsOfOperation, MessagesBothWaysAreOneGroup) {
  std::string in[2] = {Bytes(8), Bytes(4)}, out[2] = {Bytes(4), Bytes(8)};
  EXPECT_EQ(
      Of([&](CollectiveGroup& group) {
        const int other = 1 - group.rank();
        return group.SendRecv(In(in[group.rank()]), other, In(out[group.rank()]), other);
      }),
      (Calls{"cudaMalloc(264)", "cudaMemcpyAsync(to the GPU, 4)", "ncclGroupStart()", "ncclSend(1, f32, 0)",
             "ncclRecv(2, f32, 0)", "ncclGroupEnd()", "cudaMemcpyAsync(to the host, 8)"}));
}

TEST_F(NcclGroups, MismatchedOperationsFailBeforeNcclIsCalled) {
  Begin(3);
  OnEachRank([&](CollectiveGroup& group) {
    std::string data = Bytes(group.rank() == 1 ? 8 : 4);
    const Status status = group.AllReduce(ElementsOf(data, ElementType::kFp32), Reduction::kSum).Wait();
    ExpectEnd(status, "E-collective-mismatch",
              "rank 0 all_reduce 1 (sum of 1 f32, 4 bytes), rank 1 all_reduce 1 (sum of 2 f32, 8 bytes)");
    EXPECT_EQ(gpus_->Calls(group.rank()), (Calls{"ncclCommAbort()", "cudaStreamSynchronize()"}));
  });
}

TEST_F(NcclGroups, BothEndsReportAMessageSizeMismatch) {
  Begin(2);
  OnEachRank([](CollectiveGroup& group) {
    std::string data = Bytes(group.rank() == 0 ? 1'000'000 : 10);
    const Elements elements = ElementsOf(data, ElementType::kUInt8);
    const Status status = (group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait();
    ExpectEnd(status, "E-collective-mismatch",
              "rank 0 sends message from rank 0 to rank 1 (1000000 u8, 1000000 bytes), rank 1 receives "
              "message from rank 0 to rank 1 (10 u8");
  });
}

TEST_F(NcclGroups, AnAsynchronousErrorEndsTheGroupsOfAllRanks) {
  Begin(3);
  gpus_->Hang();
  OnEachRank([&](CollectiveGroup& group) {
    EXPECT_TRUE(group.Barrier().Wait().ok());  // all are connected
    std::string data = Bytes(4), more = Bytes(4);
    const Completion reduced =
        group.AllReduce(ElementsOf(data, ElementType::kFp32), Reduction::kSum, {.label = "w@GRAD"});
    const Completion next = group.Barrier();
    if (group.rank() == 1) gpus_->FailLater(1, kNcclRemoteError);
    for (const Completion& each : {reduced, next, group.Barrier()}) {
      ExpectEnd(each.Wait(), "E-collective-peer-lost",
                "all_reduce 2 (sum of 1 f32, 4 bytes; w@GRAD) of rank 1: ");
      ExpectEnd(each.Wait(), "E-collective-peer-lost", "failed: a fake error (6): no more is known");
    }
    EXPECT_EQ(reduced.Wait().code(), StatusCode::kUnavailable);
    const Calls calls = gpus_->Calls(group.rank());
    EXPECT_EQ(Calls(calls.end() - 2, calls.end()), (Calls{"ncclCommAbort()", "cudaStreamSynchronize()"}));
  });
}

TEST_F(NcclGroups, ARankThatAbortsWhileNcclRunsEndsTheOthers) {
  Begin(3);
  gpus_->Hang();
  OnEachRank([](CollectiveGroup& group) {
    EXPECT_TRUE(group.Barrier().Wait().ok());  // all are connected
    std::string data = Bytes(4);
    const Completion reduced = group.AllReduce(ElementsOf(data, ElementType::kFp32), Reduction::kSum);
    if (group.rank() == 2) group.Abort(Unavailable("E-test", "it was stopped"));
    const std::string_view id = group.rank() == 2 ? "E-test" : "E-collective-peer-left";
    ExpectEnd(reduced.Wait(), id, "it was stopped");
  });
}

TEST_F(NcclGroups, ARankThatLeavesInOrderDoesNotEndTheOthers) {
  Begin(3);
  OnEachRank([&](CollectiveGroup& group) {
    EXPECT_TRUE(group.Barrier().Wait().ok());
    if (group.rank() == 2) return;
    poll(nullptr, 0, 50);  // rank 2 is starting
    std::string data = Bytes(4);
    const Elements elements = ElementsOf(data, ElementType::kFp32);
    EXPECT_TRUE((group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait().ok());
  });
}

TEST_F(NcclGroups, AllRanksReportFailedCalls) {
  for (const auto& [name, id] :
       {std::pair("ncclAllReduce", "E-collective-nccl"), std::pair("cudaMalloc", "E-collective-nccl"),
        std::pair("cudaMemcpyAsync", "E-collective-nccl"),
        std::pair("cudaEventRecord", "E-collective-nccl")}) {
    Begin(2);
    gpus_->Fail(0, name, 1);
    OnEachRank([&](CollectiveGroup& group) {
      std::string data = Bytes(4);
      Status status = group.AllReduce(ElementsOf(data, ElementType::kFp32), Reduction::kSum).Wait();
      if (status.ok()) status = group.Barrier().Wait();  // rank 0 failed after NCCL had finished
      ExpectEnd(status, group.rank() == 0 ? id : "E-collective-peer-left",
                StrCat("all_reduce 1 (sum of 1 f32, 4 bytes) of rank 0: ", name, " failed"));
    });
  }
}

TEST_F(NcclGroups, AFailedGroupOfCallsIsStillEnded) {
  Begin(2);
  gpus_->Fail(0, "ncclSend", 4);
  OnEachRank([&](CollectiveGroup& group) {
    EXPECT_TRUE(group.Barrier().Wait().ok());  // all are connected
    std::string data = Bytes(4);
    const Elements elements = ElementsOf(data, ElementType::kFp32);
    EXPECT_FALSE((group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait().ok());
    if (group.rank() != 0) return;
    const Calls calls = gpus_->Calls(0);
    EXPECT_NE(std::find(calls.begin(), calls.end(), "ncclGroupEnd()"), calls.end());
  });
}

TEST_F(NcclGroups, AllRanksNameTheRankWithoutAGpu) {
  Begin(3);
  gpus_->Fail(1, "cudaSetDevice", 100);
  OnEachRank([](CollectiveGroup&) { ADD_FAILURE() << "a group"; },
             [](int, const Status& status) {
               ExpectEnd(status, "E-collective-nccl",
                         "rank 1: cudaSetDevice failed on device 1: a fake error of CUDA");
             });
}

TEST_F(NcclGroups, AFailureWhileConnectingEndsAllRanks) {
  Begin(2);
  gpus_->Fail(1, "ncclCommInitRankConfig", 3);
  OnEachRank([](CollectiveGroup&) { ADD_FAILURE() << "a group"; },
             [](int rank, const Status& status) {
               ExpectEnd(status, rank == 1 ? "E-collective-nccl" : "E-collective-peer-left",
                         "rank 1: ncclCommInitRankConfig failed: a fake error (3)");
             });
}

TEST(NcclGroup, RequiresTwoGroupsOfTheSameRanks) {
  FakeGpus gpus(2);
  auto two = MakeThreadGroups(2).value(), one = MakeThreadGroups(1).value();
  EXPECT_EQ(MakeNcclGroup(gpus.ApiOf(0), {.agree = std::move(two[0]), .watch = nullptr}).status().id(),
            "E-collective-size");
  EXPECT_EQ(
      MakeNcclGroup(gpus.ApiOf(0), {.agree = std::move(two[1]), .watch = std::move(one[0])}).status().id(),
      "E-collective-size");
}

TEST(GpuApi, LoadsInstalledLibraries) {
  const Result<const GpuApi*> api = LoadGpuApi();
  if (!api.ok()) {
    EXPECT_EQ(api.status().id(), "E-collective-nccl");
    GTEST_SKIP() << api.status().ToString();
  }
  int version = 0;
  EXPECT_EQ((*api)->nccl.get_version(&version), kNcclSuccess);
  EXPECT_GE(version, kNcclOldestVersion);
  const Result<int> gpus = CountGpus(**api);
  EXPECT_EQ(gpus.status().id(), gpus.ok() ? "" : "E-collective-nccl");
}

#ifdef PENSTOCK_TEST_NCCL_HEADER
constexpr bool Same(auto ours, auto theirs) { return static_cast<int>(ours) == static_cast<int>(theirs); }

TEST(GpuApi, ConstantsMatchNcclsHeader) {
  static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
  static_assert(Same(kNcclInt8, ncclInt8) && Same(kNcclUint8, ncclUint8) && Same(kNcclInt32, ncclInt32) &&
                Same(kNcclInt64, ncclInt64) && Same(kNcclFloat16, ncclFloat16) &&
                Same(kNcclFloat32, ncclFloat32) && Same(kNcclFloat64, ncclFloat64) &&
                Same(kNcclBfloat16, ncclBfloat16));
  static_assert(Same(kNcclSum, ncclSum) && Same(kNcclProd, ncclProd) && Same(kNcclMax, ncclMax) &&
                Same(kNcclMin, ncclMin) && Same(kNcclAvg, ncclAvg));
  static_assert(Same(kNcclSuccess, ncclSuccess) && Same(kNcclSystemError, ncclSystemError) &&
                Same(kNcclRemoteError, ncclRemoteError) && Same(kNcclInProgress, ncclInProgress));
  static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic) &&
                offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version) &&
                offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(NcclConfig().magic, theirs.magic);
  static_assert(Same(kCudaNotReady, cudaErrorNotReady) && Same(kCudaHostToDevice, cudaMemcpyHostToDevice) &&
                Same(kCudaDeviceToHost, cudaMemcpyDeviceToHost) &&
                Same(kCudaStreamNonBlocking, cudaStreamNonBlocking) &&
                Same(kCudaEventDisableTiming, cudaEventDisableTiming));
}
#endif

}  // namespace
}  // namespace penstock::collective
