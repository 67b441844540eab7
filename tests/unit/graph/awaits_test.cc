// Where a run waits for operations in progress, as derived from effects and slots; runs no kernel.
#include "executor/graph/awaits.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"

namespace penstock::exec {
namespace {

const OpRegistry& AwaitingOps() {
  static const OpRegistry* const ops = [] {
    auto* made = new OpRegistry;
    for (const char* type : {"c_allreduce_sum", "c_sync_comm_stream", "c_sync_calc_stream"}) {
      made->Add(type)
          .Doc("Of a ring.", "")
          .Input("X", "", AnyType())
          .Output("Out", "", AnyType())
          .Attr("ring_id", 0, "")
          .Affects({Effect::kRing})
          .NoGrad();
    }
    made->Add("compute").Doc("Computes.", "").Input("X", "", AnyType()).Output("Out", "", AnyType()).NoGrad();
    made->Add("send")
        .Doc("Sends.", "")
        .Input("X", "", AnyType(), Optional() | Repeated())
        .Attr("epmap", std::vector<std::string>(), "")
        .Affects({Effect::kStep})
        .NoGrad();
    made->Add("recv")
        .Doc("Receives.", "")
        .Output("Out", "", AnyType(), Repeated())
        .Attr("epmap", std::vector<std::string>(), "")
        .Attr("do_not_run", 0, "")
        .Attr("recv_varnames", std::vector<std::string>(), "")
        .Affects({Effect::kStep})
        .NoGrad();
    made->Add("fetch_barrier").Doc("Waits.", "").Affects({Effect::kStep}).NoGrad();
    made->Add("loop").Doc("Runs a block.", "").Attr("sub_block", BlockRef{}, "").NoGrad();
    PENSTOCK_CHECK(made->Finish().ok(), "the declarations are right");
    return made;
  }();
  return *ops;
}

// "2:pulls 3:ring 0 end:ring 1"
std::string AwaitsOf(const std::string& ops) {
  std::string text = "program\nblock 0 {\n";
  for (const char* name : {"g", "h", "w", "v"}) text += StrCat("  persist ", name, " : f32[2]\n");
  const bool has_block = ops.find("block 1") != std::string::npos;
  const Result<Program> program = ParseText(StrCat(text, ops, has_block ? "" : "}\n"), "in");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  const auto block = CompileBlock(AwaitingOps(), *program, {});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  std::vector<std::string> said;
  for (const Await& await : FindAwaits(**block)) {
    const bool at_end = await.step == static_cast<int>((*block)->instructions.size());
    said.push_back(StrCat(
        at_end ? "end" : std::to_string(await.step),
        await.operation.kind == Operation::Kind::kPulls ? ":pulls" : StrCat(":ring ", await.operation.ring)));
  }
  return Join(said, " ");
}

TEST(Awaits, TheFirstUseOfAVariableAwaitsItsOperation) {
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n"), "end:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  h = compute(X=h)\n  h = compute(X=g)\n"), "2:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  g = compute(X=h)\n"), "1:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=h)\n  h = compute(X=w)\n"), "1:ring 0");
}

TEST(Awaits, AwaitingARingAwaitsAllItsOperations) {
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  h = c_allreduce_sum(X=h)\n  w = compute(X=h)\n"
                     "  v = compute(X=g)\n"),
            "2:ring 0");
  EXPECT_EQ(
      AwaitsOf("  g = c_allreduce_sum(X=g)\n  h = c_allreduce_sum(X=h) {ring_id=1}\n  w = compute(X=h)\n"
               "  v = compute(X=g)\n"),
      "2:ring 1 3:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  g = c_allreduce_sum(X=g)\n"), "1:ring 0 end:ring 0");
}

TEST(Awaits, StreamSyncOpsAwaitTheirRing) {
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  g = c_sync_comm_stream(X=g)\n  h = compute(X=g)\n"), "");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  h = c_sync_comm_stream(X=h)\n  h = compute(X=g)\n"), "");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  g = c_sync_calc_stream(X=g)\n"), "end:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  g = c_sync_comm_stream(X=g) {ring_id=1}\n"),
            "end:ring 0");
  EXPECT_EQ(AwaitsOf("  g = c_allreduce_sum(X=g)\n  h = c_sync_comm_stream(X=g) {ring_id=1}\n"), "1:ring 0");
}

TEST(Awaits, PullsAreAwaitedByTheFirstUseOrStepEnd) {
  EXPECT_EQ(AwaitsOf("  w = recv()\n  v = recv()\n  g = compute(X=h)\n  g = compute(X=w)\n"), "3:pulls");
  EXPECT_EQ(AwaitsOf("  w = recv()\n  send(X=g)\n"), "1:pulls");
  EXPECT_EQ(AwaitsOf("  w = recv()\n  v = recv()\n"), "end:pulls");
  EXPECT_EQ(AwaitsOf("  w = recv()\n  w = recv()\n"), "1:pulls end:pulls");
  EXPECT_EQ(AwaitsOf("  w = recv()\n  fetch_barrier()\n  g = compute(X=w)\n"), "");
}

TEST(Awaits, CommunicatorReceivesNeedNoAwait) {
  EXPECT_EQ(AwaitsOf("  w = recv() {do_not_run=1}\n  g = compute(X=w)\n"), "");
  EXPECT_EQ(AwaitsOf("  w = recv() {recv_varnames=[\"w.block0\"]}\n  g = compute(X=w)\n"), "");
}

TEST(Awaits, AnOpThatRunsBlocksMayUseAnything) {
  EXPECT_EQ(AwaitsOf("  w = recv()\n  g = c_allreduce_sum(X=g)\n  loop() {sub_block=^1}\n}\n"
                     "block 1 in 0 {\n}\n"),
            "2:pulls 2:ring 0");
}

}  // namespace
}  // namespace penstock::exec
