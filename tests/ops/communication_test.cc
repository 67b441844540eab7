// The communication ops: their calls to the client and the server loop, and the inputs that they reject.
#include <gtest/gtest.h>

#include "framework/ir/program.h"
#include "framework/op/kernel.h"
#include "framework/roles/views.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/server_loop.h"
#include "framework/tensor/scope.h"
#include "framework/text/printer.h"
#include "operators/all_ops.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

// Records each call.
class RecordingClient : public RpcClient {
 public:
  std::vector<std::string> calls;

  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override {
    return PushHandle{Declare("push", piece)};
  }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override {
    return PullHandle{Declare("pull", piece)};
  }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override {
    return RowsHandle{Declare("rows", piece)};
  }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) override {
    calls.push_back(StrCat("peers ", Join(pservers, " "), " by ", trainer_id));
    return PeersHandle{0};
  }
  Status Push(PushHandle piece, const Variable& value) override {
    if (const auto* rows = value.If<SelectedRows>())
      return Say("Push ", piece.index, " of ", rows->rows.size(), " rows");
    return Say("Push ", piece.index, " of ", value.If<Tensor>()->count(), " elements");
  }
  Status EndStep(PeersHandle) override { return Say("EndStep"); }
  Status Pull(PullHandle piece, Variable& out) override {
    out.As<Tensor>() = Ramp(DType::kFp32, {2}, 5, 1);
    return Say("Pull ", piece.index);
  }
  Status PullAhead(PullHandle piece, Variable&) override { return Say("PullAhead ", piece.index); }
  Status PullNext(PullHandle piece, Variable&) override { return Say("PullNext ", piece.index); }
  // Row i of slice s is [100 * handle + i, the same].
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override {
    out = Tensor(DType::kFp32, {static_cast<Dim>(ids.size()), 2});
    std::string list;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::fill_n(out.Data<float>() + 2 * i, 2, static_cast<float>(100 * piece.index + ids[i]));
      list += StrCat(" ", ids[i]);
    }
    return Say("PullRows ", piece.index, ":", list);
  }
  Status CompleteRows() override { return Say("CompleteRows"); }
  Status CompletePulls(PeersHandle) override { return Say("CompletePulls"); }
  Status SaveTable(PeersHandle, const std::string& table, const std::vector<std::string>& files) override {
    return Say("SaveTable ", table, " to ", Join(files, " "));
  }
  Status Complete() override { return Say("Complete"); }
  void Cancel() override {}

 private:
  int Declare(const char* what, const RemotePiece& piece) {
    calls.push_back(StrCat(what, " ", piece.name, " ", DTypeName(piece.dtype), piece.shape, " at ",
                           piece.pserver, " by ", piece.trainer_id));
    return static_cast<int>(calls.size()) - 1;
  }
  template <typename... Parts>
  Status Say(const Parts&... parts) {
    calls.push_back(StrCat(parts...));
    return OkStatus();
  }
};

using Calls = std::vector<std::string>;

Op SendOp() {
  return Op("send")
      .AddInput("X", {"g.block0", "g.block1"})
      .AddOutput("Out", {})
      .Set("trainer_id", 1)
      .Set("epmap", std::vector<std::string>{"a:2", "a:1"});
}

const Tensors kPieces = {{"g.block0", Ramp(DType::kFp32, {2, 3}, 0, 1)},
                         {"g.block1", Ramp(DType::kFp32, {1, 3}, 0, 1)}};

// Runs a kernel with a declared output, as a block declares the outputs of recv.
Status RunDeclared(const Op& op, const Services& services, Variable& out, const Shape& shape,
                   KernelSite site = {}) {
  const OpDef* def = AllOps().Find(op.type());
  const Argument argument{{.dtype = DType::kFp32, .shape = shape}, {.index = 0}, op.OutputName("Out")};
  KernelSetup setup(*def, op, {}, {{"Out", {argument}}}, services, site);
  const std::unique_ptr<Kernel> kernel = def->FindKernel(DeviceKind::kCpu, DType::kFp32)();
  PENSTOCK_RETURN_IF_ERROR(kernel->Prepare(setup));
  Variable* const variables[] = {&out};
  KernelRun run(variables, nullptr, nullptr);
  return kernel->Run(run);
}

TEST(Send, PushesEachVariableToItsServer) {
  RecordingClient client;
  const Result<Tensors> out = RunOp(AllOps(), SendOp(), kPieces, {.rpc = &client});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(client.calls, (Calls{"push g.block0 f32[2, 3] at a:2 by 1", "push g.block1 f32[1, 3] at a:1 by 1",
                                 "Push 0 of 6 elements", "Push 1 of 3 elements"}));
}

TEST(Send, RefusesInvalidAttributes) {
  RecordingClient client;
  EXPECT_EQ(RunOp(AllOps(), SendOp(), kPieces).status().id(), "E-comm-no-client");
  const Op one_server = SendOp().Set("epmap", std::vector<std::string>{"a:1"});
  EXPECT_EQ(RunOp(AllOps(), one_server, kPieces, {.rpc = &client}).status().message(),
            "send: epmap names 1 servers for 2 variables");
  const Op async = SendOp()
                       .Set("send_varnames", std::vector<std::string>{"g"})
                       .Set("sections", std::vector<std::int64_t>{3});
  EXPECT_EQ(RunOp(AllOps(), async, kPieces, {.rpc = &client}).status().id(), "E-communicator-missing");
  const Op counts = Op(async).Set("use_send_handler", false);
  EXPECT_EQ(RunOp(AllOps(), counts, kPieces, {.rpc = &client}).status().id(), "E-communicator-missing");
}

Op LookupOp() {
  return Op("distributed_lookup_table")
      .AddInput("Ids", {"i", "j"})
      .AddInput("W", {"w"})
      .AddOutput("Outputs", {"a", "b"})
      .Set("table_names", std::vector<std::string>{"w.block0", "w.block1"})
      .Set("height_sections", std::vector<std::int64_t>{3, 4})
      .Set("endpoints", std::vector<std::string>{"a:1", "a:2"})
      .Set("padding_idx", std::int64_t{6});
}

Tensors LookupInputs(std::int64_t first) {
  return {{"w", Ramp(DType::kFp32, {7, 2}, 0, 1)},
          {"i", TensorOf<std::int64_t>({3, 1}, {first, 1, 6})},
          {"j", TensorOf<std::int64_t>({1, 1}, {1})}};
}

TEST(RemoteLookup, RequestsEachRowOnceFromItsServer) {
  RecordingClient client;
  const Result<Tensors> out = RunOp(AllOps(), LookupOp(), LookupInputs(5), {.rpc = &client});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(client.calls, (Calls{"rows w.block0 f32[3, 2] at a:1 by 0", "rows w.block1 f32[4, 2] at a:2 by 0",
                                 "PullRows 0: 1", "PullRows 1: 2", "CompleteRows"}));
  const Tensor a = TensorOf<float>({3, 2}, {102, 102, 1, 1, 0, 0}), b = TensorOf<float>({1, 2}, {1, 1});
  EXPECT_TRUE(Near(out->at("a"), a, 0, 0).ok());
  EXPECT_TRUE(Near(out->at("b"), b, 0, 0).ok());
}

TEST(RemoteLookup, RefusesIdsOutsideTheTableAndSlicesThatDoNotMatch) {
  RecordingClient client;
  for (const std::int64_t id : {-1, 7}) {
    EXPECT_EQ(RunOp(AllOps(), LookupOp(), LookupInputs(id), {.rpc = &client}).status().message(),
              StrCat("distributed_lookup_table: id ", id, " is outside the table of 7 rows"));
  }
  const Op two = LookupOp().Set("height_sections", std::vector<std::int64_t>{7});
  EXPECT_EQ(RunOp(AllOps(), two, LookupInputs(1), {.rpc = &client}).status().message(),
            "distributed_lookup_table: attributes name 2 slices, 1 heights and 2 servers of a table");
  EXPECT_EQ(RunOp(AllOps(), LookupOp(), LookupInputs(1)).status().id(), "E-comm-no-client");
}

// Requests rows of a table sharded by id.
Op PrefetchOp() {
  return Op("prefetch")
      .AddInput("X", {"i", "j"})
      .AddOutput("Out", {"a", "b"})
      .Set("epmap", std::vector<std::string>{"a:1", "a:2"})
      .Set("trainer_id", 1);
}

TEST(Prefetch, RequestsRowsByTheNameOfTheIds) {
  RecordingClient client;
  const Tensors ids = {{"i", TensorOf<std::int64_t>({2, 1}, {4, 8})}, {"j", Tensor(DType::kInt64, {0, 1})}};
  const Result<Tensors> out = RunOp(AllOps(), PrefetchOp(), ids, {.rpc = &client});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_EQ(client.calls.size(), 5u);
  EXPECT_EQ(client.calls[0].rfind("rows i f32", 0), 0u) << client.calls[0];
  EXPECT_NE(client.calls[1].find(" at a:2 by 1"), std::string::npos) << client.calls[1];
  EXPECT_EQ((Calls{client.calls.begin() + 2, client.calls.end()}),
            (Calls{"PullRows 0: 4 8", "PullRows 1:", "CompleteRows"}));
}

TEST(Prefetch, RefusesInvalidAttributesAndIds) {
  RecordingClient client;
  const Tensors ids = {{"i", TensorOf<std::int64_t>({1, 1}, {4})}, {"j", Ramp(DType::kFp32, {1, 1}, 0, 1)}};
  EXPECT_EQ(RunOp(AllOps(), PrefetchOp(), ids, {.rpc = &client}).status().message(),
            "prefetch: X (j) must be row numbers, int64");
  EXPECT_EQ(RunOp(AllOps(), PrefetchOp(), ids).status().id(), "E-comm-no-client");
  const Op one = PrefetchOp().Set("epmap", std::vector<std::string>{"a:1"});
  EXPECT_EQ(RunOp(AllOps(), one, ids, {.rpc = &client}).status().message(),
            "prefetch: epmap names 1 servers for 2 variables");
}

TEST(CheckpointNotify, SendsEachServerItsFileName) {
  RecordingClient client;
  const Op op = Op("checkpoint_notify")
                    .Set("epmap", std::vector<std::string>{"a:1", "a:2"})
                    .Set("dir", std::string("/disk"))
                    .Set("lookup_table", std::string("t"));
  ASSERT_TRUE(RunOp(AllOps(), op, {}, {.rpc = &client}).ok());
  EXPECT_EQ(client.calls, (Calls{"peers a:1 a:2 by 0", "SaveTable t to /disk/t_0 /disk/t_1"}));
  EXPECT_EQ(RunOp(AllOps(), op, {}).status().id(), "E-comm-no-client");
}

TEST(FakeInit, DeclaresALargeTableWithoutMemory) {
  const Op op =
      Op("fake_init").AddOutput("Out", {"w"}).Set("shape", std::vector<std::int64_t>{100000000000, 16});
  Variable w;
  ASSERT_TRUE(RunDeclared(op, {}, w, {}).ok());
  ASSERT_TRUE(w.Is<SelectedRows>());
  EXPECT_EQ(w.As<SelectedRows>().height, 100000000000);
  EXPECT_EQ(w.As<SelectedRows>().value.shape(), (Shape{0, 16}));
}

TEST(Recv, PullsUnderTheRemoteNameIntoItsOutput) {
  RecordingClient client;
  const Op op = Op("recv")
                    .AddOutput("Out", {"w"})
                    .Set("epmap", std::vector<std::string>{"a:1"})
                    .Set("varnames", std::vector<std::string>{"w.block0"});
  Variable w;
  ASSERT_TRUE(RunDeclared(op, {.rpc = &client}, w, {2}).ok());
  EXPECT_EQ(client.calls, (Calls{"pull w.block0 f32[2] at a:1 by 0", "Pull 0"}));
  EXPECT_EQ(w.As<Tensor>().Data<float>()[1], 6.0f);
}

TEST(Recv, BlocksUnlessTheRunAwaitsIt) {
  const Op op = Op("recv").AddOutput("Out", {"w"}).Set("epmap", std::vector<std::string>{"a:1"});
  for (const bool awaited : {false, true}) {
    RecordingClient client;
    Variable out;
    EXPECT_TRUE(RunDeclared(op, {.rpc = &client}, out, {2}, {.awaited = awaited}).ok());
    EXPECT_EQ(client.calls.back(), awaited ? "PullAhead 0" : "Pull 0");
  }
}

TEST(Recv, AMovedRecvRequestsTheNextVersion) {
  RecordingClient client;
  Variable w;
  Op op = Op("recv").AddOutput("Out", {"w"}).Set("epmap", std::vector<std::string>{"a:1"});
  roles::RecvView::AskForNext(op);
  ASSERT_TRUE(RunDeclared(op, {.rpc = &client}, w, {2}).ok());
  EXPECT_EQ(client.calls, (Calls{"pull w f32[2] at a:1 by 0", "PullNext 0"}));
}

TEST(Recv, DoesNothingWithDoNotRun) {
  const Op op = Op("recv").AddOutput("Out", {"w"}).Set("do_not_run", 1);
  Variable w;
  EXPECT_TRUE(RunDeclared(op, {}, w, {2}).ok());
  EXPECT_FALSE(w.initialized());
}

TEST(Rings, CollectiveGradientsUseTheSameRing) {
  const auto grad_of = [](const char* type) {
    Op op(type);
    op.AddInput("X", {"x"}).AddOutput("Out", {"y"}).Set("ring_id", 3).Set("nranks", 2);
    return MakeGradOps(AllOps(), op, {"x"});
  };
  const std::map<std::string, std::string> gradients = {{"c_allreduce_sum", "c_allreduce_sum"},
                                                        {"c_allgather", "c_reducescatter"},
                                                        {"c_reducescatter", "c_allgather"}};
  for (const auto& [type, gradient] : gradients) {
    const Result<std::vector<Op>> made = grad_of(type.c_str());
    ASSERT_TRUE(made.ok() && made->size() == 1) << type;
    EXPECT_EQ(PrintOp(made->front()), StrCat("x@GRAD = ", gradient, "(X=y@GRAD) {ring_id=3, nranks=2}"));
  }
  EXPECT_EQ(grad_of("c_sync_calc_stream").status().message(),
            "c_sync_calc_stream: it has no gradient; set stop_gradient of y");
}

TEST(Barriers, EndTheStepAndWaitForPulls) {
  RecordingClient client;
  for (const char* type : {"send_barrier", "fetch_barrier"}) {
    const Op op = Op(type).Set("endpoints", std::vector<std::string>{"a:1", "a:2"}).Set("trainer_id", 3);
    ASSERT_TRUE(RunOp(AllOps(), op, {}, {.rpc = &client}).ok());
  }
  EXPECT_EQ(client.calls, (Calls{"peers a:1 a:2 by 3", "EndStep", "peers a:1 a:2 by 3", "CompletePulls"}));
}

class RecordingServer : public ServerLoop {
 public:
  const Program* program = nullptr;
  const Scope* scope = nullptr;
  std::string endpoint;
  Status Serve(const Program& served, const Op& op, Scope& held) override {
    program = &served;
    scope = &held;
    endpoint = *op.Get<std::string>("endpoint");
    return OkStatus();
  }
  void Cancel() override {}
};

TEST(ListenAndServ, PassesItsProgramOpAndScopeToTheServer) {
  RecordingServer server;
  Program program;
  Scope scope;
  const Op op = Op("listen_and_serv").Set("endpoint", "a:1");
  const OpDef* def = AllOps().Find("listen_and_serv");
  KernelSetup setup(*def, op, {}, {}, {.server = &server}, {.program = &program, .block = 0});
  const std::unique_ptr<Kernel> kernel = def->FindKernel(DeviceKind::kCpu, DType::kFp32)();
  ASSERT_TRUE(kernel->Prepare(setup).ok());
  KernelRun run(nullptr, nullptr, &scope);
  ASSERT_TRUE(kernel->Run(run).ok());
  EXPECT_EQ(server.program, &program);
  EXPECT_EQ(server.scope, &scope);
  EXPECT_EQ(server.endpoint, "a:1");
}

TEST(ListenAndServ, RefusesToServeWithoutAServer) {
  EXPECT_EQ(RunOp(AllOps(), Op("listen_and_serv"), {}).status().id(), "E-comm-no-server");
}

}  // namespace
}  // namespace penstock::test
