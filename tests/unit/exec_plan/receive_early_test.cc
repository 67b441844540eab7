// A trainer's step asks for its parameters as early as it may, and never earlier.
#include "executor/plan/receive_early.h"

#include <gtest/gtest.h>

#include "framework/roles/views.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"

namespace penstock::exec {
namespace {

constexpr char kVars[] =
    "program\nblock 0 {\n  param w : f32[4, 2]\n  param v : f32[2]\n  var x : f32[?, 2]\n  var w0 : f32[2, "
    "2]\n"
    "  var w1 : f32[2, 2]\n  var a : f32[4, 2]\n  var gw : f32[4, 2]\n  var gv : f32[2]\n";
constexpr char kSendW[] = "  send(X=gw) {epmap=[\"a:1\"]} @rpc(w, gw)\n";
constexpr char kSendV[] = "  send(X=gv) {epmap=[\"a:1\"]} @rpc(v, gv)\n";
constexpr char kSendBarrier[] = "  send_barrier() {endpoints=[\"a:1\"]} @rpc\n";
constexpr char kRecvW[] = "  w = recv() {epmap=[\"a:1\"]} @rpc(w, gw)\n";
constexpr char kRecvV[] = "  v = recv() {epmap=[\"a:1\"]} @rpc(v, gv)\n";
constexpr char kFetchBarrier[] = "  [v, w] = fetch_barrier() {endpoints=[\"a:1\"]} @rpc\n";

// All ops, and some that stand for the computation of a step.
const OpRegistry& Ops() {
  static const OpRegistry* const ops = [] {
    auto* const made = new OpRegistry;
    RegisterAllOps(*made);
    for (const char* type : {"back_v", "back_w", "other", "reader", "loop"}) {
      OpDef& op = made->Add(type).Doc("A test's.", "");
      op.Input("X", "", AnyType(), Repeated()).Output("Out", "", SameTypeAs("X"));
      if (StrCat(type) == "loop") op.RequiredAttr("sub_block", AttrKind::kBlock, "");
      op.InferShape(OutputsAsDeclared()).NotBuilt("a test's").NoGrad();
    }
    PENSTOCK_CHECK(made->Finish().ok(), "the declarations are complete");
    return made;
  }();
  return *ops;
}

// "back_w send send_barrier recv*": the types of the instructions in their order; a star marks a recv that
// asks for the next version.
std::string OrderOf(const std::string& ops) {
  const Result<Program> program =
      ParseText(StrCat(kVars, ops, ops.find("block 1") < ops.size() ? "" : "}\n"), "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  auto compiled = CompileBlock(Ops(), *program, {});
  PENSTOCK_CHECK(compiled.ok(), compiled.status().ToString());
  const std::shared_ptr<const CompiledBlock> block = ReceiveEarly(*std::move(compiled));
  std::vector<std::string> types;
  for (const Instruction& instruction : block->instructions) {
    const bool moved = roles::RecvView(*instruction.op).next_version();
    types.push_back(StrCat(instruction.op->type(), moved ? "*" : ""));
  }
  return Join(types, " ");
}

TEST(ReceiveEarly, RequestsAParameterAfterItsGradientIsSent) {
  EXPECT_EQ(OrderOf(StrCat("  gv = back_v(X=v)\n", kSendV, "  gw = back_w(X=w)\n", kSendW, kSendBarrier,
                           kRecvW, kRecvV, kFetchBarrier)),
            "back_v send recv* back_w send recv* send_barrier fetch_barrier");
}

TEST(ReceiveEarly, WaitsForTheLastUse) {
  EXPECT_EQ(OrderOf(StrCat("  gv = back_v(X=v)\n", kSendV, "  gw = back_w(X=[w, v])\n", kSendW,
                           "  a = other(X=a)\n", kSendBarrier, kRecvV, kRecvW, kFetchBarrier)),
            "back_v send back_w recv* send recv* other send_barrier fetch_barrier");
  EXPECT_EQ(OrderOf(StrCat("  gv = back_v(X=v)\n", kSendV, "  v = other(X=a)\n", kSendBarrier, kRecvV,
                           kFetchBarrier)),
            "back_v send other recv* send_barrier fetch_barrier");
}

TEST(ReceiveEarly, WaitsForBlocksThatUseIt) {
  EXPECT_EQ(OrderOf(StrCat("  gv = back_v(X=v)\n", kSendV, "  a = loop(X=a) {sub_block=^1}\n", kSendBarrier,
                           kRecvV, kFetchBarrier, "}\nblock 1 in 0 {\n  a = other(X=v)\n}\n")),
            "back_v send loop recv* send_barrier fetch_barrier");
}

TEST(ReceiveEarly, SlicesWaitForTheReadersOfTheWhole) {
  EXPECT_EQ(OrderOf(StrCat("  gw = back_w(X=x)\n", kSendW, "  a = reader(X=w)\n  a = other(X=a)\n",
                           kSendBarrier, "  [w0, w1] = recv() {epmap=[\"a:1\", \"a:1\"]} @rpc(w, gw)\n",
                           kFetchBarrier, "  w = concat(X=[w0, w1])\n")),
            "back_w send reader recv* other send_barrier fetch_barrier concat");
}

TEST(ReceiveEarly, ReadersOfTheNewValueDoNotDelayIt) {
  EXPECT_EQ(OrderOf(StrCat("  gv = back_v(X=v)\n", kSendV, "  a = other(X=a)\n", kSendBarrier, kRecvV,
                           kFetchBarrier, "  a = reader(X=v)\n")),
            "back_v send recv* other send_barrier fetch_barrier reader");
}

// It would ask for a version that no step has begun.
TEST(ReceiveEarly, ProgramsCannotRequestTheNextVersion) {
  const Result<Program> program =
      ParseText(StrCat(kVars, "  v = recv() {epmap=[\"a:1\"], next_version=true} @rpc(v, gv)\n}\n"), "in");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const auto compiled = CompileBlock(Ops(), *program, {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().id(), "E-op-attr");
}

TEST(ReceiveEarly, DoesNotMoveInUnprovenCases) {
  const std::string unsent = StrCat("  gw = back_w(X=w)\n", kSendW, kSendBarrier, kRecvV, kFetchBarrier);
  EXPECT_EQ(OrderOf(unsent), "back_w send send_barrier recv fetch_barrier") << "v has no gradient";
  const std::string unnamed =
      StrCat(kSendV, kSendBarrier, "  v = recv() {epmap=[\"a:1\"]} @rpc\n", kFetchBarrier);
  EXPECT_EQ(OrderOf(unnamed), "send send_barrier recv fetch_barrier") << "it does not say its parameter";
  EXPECT_EQ(OrderOf(StrCat(kSendV, kRecvV, kFetchBarrier)), "send recv fetch_barrier") << "no step ends";
  EXPECT_EQ(OrderOf(StrCat(kSendV, kSendBarrier, kRecvV)), "send send_barrier recv");
  EXPECT_EQ(OrderOf(StrCat(kSendV, kSendBarrier, kRecvV, kFetchBarrier, kSendBarrier)),
            "send send_barrier recv fetch_barrier send_barrier")
      << "two steps";
  EXPECT_EQ(OrderOf(StrCat(kSendV, kSendBarrier, "  v = other(X=a)\n", kRecvV, kFetchBarrier)),
            "send send_barrier other recv fetch_barrier")
      << "written after the step's end";
  EXPECT_EQ(OrderOf(StrCat(kSendV, "  send_barrier() {endpoints=[\"a:1\"], half_async=true} @rpc\n", kRecvV,
                           kFetchBarrier)),
            "send send_barrier recv fetch_barrier");
  EXPECT_EQ(
      OrderOf(StrCat(kSendV, kSendBarrier,
                     "  v = recv() {epmap=[\"a:1\"], recv_varnames=[\"v\"]} @rpc(v, gv)\n", kFetchBarrier)),
      "send send_barrier recv fetch_barrier")
      << "the communicator receives";
}

}  // namespace
}  // namespace penstock::exec
