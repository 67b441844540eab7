#include "framework/roles/trainer_facts.h"

#include <gtest/gtest.h>

#include "framework/text/parser.h"

namespace penstock::test {
namespace {

using Kind = roles::CommOp::Kind;

std::vector<Kind> KindsOf(const roles::TrainerFacts& role) {
  std::vector<Kind> kinds;
  for (const roles::CommOp& one : role.ops) kinds.push_back(one.kind);
  return kinds;
}

Program Parsed(std::string_view text) {
  const Result<Program> program = ParseText(text, "trainer.ir");
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return *program;
}

TEST(TrainerPrograms, SlicesAreFoundBySplitAndConcatOps) {
  const Program program = Parsed(R"(program
block 0 {
  param w : f32[13, 4]
  var g : f32[13, 4]
  var g0 : f32[7, 4]
  var g1 : f32[6, 4]
  var w0 : f32[7, 4]
  var w1 : f32[6, 4]
  [g0, g1] = split_byref(X=g) {sections=[7, 6]} @dist
  s = send(X=[g0, g1]) {epmap=["b:1", "a:1"], trainer_id=0} @rpc(w, g)
  b = send_barrier(X=s) {endpoints=["a:1", "b:1"], trainer_id=1} @rpc
  [w0, w1] = recv(X=b) {epmap=["b:1", "a:1"], trainer_id=1, varnames=["x", "y"]} @rpc(w, g)
  [w0, w1] = fetch_barrier(X=b) {endpoints=["a:1", "b:1"], trainer_id=1} @rpc
  w = concat(X=[w0, w1]) {axis=0} @dist
}
)");
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  EXPECT_EQ(KindsOf(role),
            (std::vector<Kind>{Kind::kSend, Kind::kSendBarrier, Kind::kRecv, Kind::kFetchBarrier}));
  EXPECT_EQ(role.trainer_id, 1) << "Fluid's sends say 0";
  EXPECT_TRUE(role.pulls_end_at_barrier);
  EXPECT_FALSE(role.by_communicator);
  const roles::CommOp &send = role.ops[0], &recv = role.ops[2];
  EXPECT_EQ(send.whole, "g");
  EXPECT_EQ(send.param, "w");
  EXPECT_EQ(send.cut, roles::Cut::kByRows);
  EXPECT_EQ(send.pieces[1].local, "g1");
  EXPECT_EQ(send.pieces[1].pserver, "a:1");
  EXPECT_EQ(recv.whole, "w");
  EXPECT_EQ(recv.pieces[0].local, "w0");
  EXPECT_EQ(recv.pieces[0].remote, "x");
  EXPECT_EQ(role.ops[1].pieces[1].pserver, "b:1");
}

TEST(TrainerPrograms, CommunicatorSendsAndReceivesAreRead) {
  const Program program = Parsed(R"(program
block 0 {
  param w : f32[13, 4]
  var g : f32[13, 4]
  var n : i64[1]
  s = send(X=g) {epmap=["b:1", "a:1"], sections=[7l, 6l],
      send_varnames=["g.block0", "g.block1"]} @rpc(w, g)
  c = send(X=n) {epmap=["a:1", "b:1"], use_send_handler=false, merge_add=true,
      send_varnames=["n.0"]} @rpc(n, n)
  b = send_barrier(X=[s, c]) {endpoints=["a:1"], half_async=true} @rpc
  w = recv(X=b) {epmap=["b:1", "a:1"], recv_varnames=["w.block0", "w.block1"],
      do_not_run=1, trainer_id=1} @rpc(w, g)
}
)");
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  EXPECT_EQ(KindsOf(role), (std::vector<Kind>{Kind::kSend, Kind::kStep, Kind::kSendBarrier, Kind::kRecv}));
  EXPECT_TRUE(role.by_communicator);
  EXPECT_EQ(role.trainer_id, std::nullopt) << "the recv does not run, and the barrier says none";
  EXPECT_EQ(role.ops[0].cut, roles::Cut::kAtRunTime);
  EXPECT_EQ(role.ops[0].pieces[1].rows, 6);
  EXPECT_EQ(role.ops[0].pieces[1].remote, "g.block1");
  EXPECT_EQ(role.ops[0].pieces[1].local, "g");
  EXPECT_EQ(role.ops[1].pieces.size(), 2u) << "every server is told";
  EXPECT_EQ(role.ops[1].pieces[1].remote, "n.0");
  EXPECT_TRUE(role.ops[3].idle);
  EXPECT_EQ(role.ops[3].pieces[0].remote, "w.block0");
}

TEST(TrainerPrograms, CommunicatorNotificationsReachNoServer) {
  const Program program = Parsed(R"(program
block 0 {
  data ids : i64[?, 1]
  done = send(X=ids) {epmap=["127.0.0.1:6164"], send_varnames=["emb"]}
}
)");
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  EXPECT_EQ(KindsOf(role), (std::vector<Kind>{Kind::kTold}));
  EXPECT_TRUE(role.ops.front().pieces.empty());
}

TEST(TrainerPrograms, LookupsIdentifyTheTrainerIfNothingElseDoes) {
  constexpr std::string_view kLookup = R"(program
block 0 {
  param emb : f32[9, 2]
  data ids : i64[?, 1]
  var out : f32[?, 2]
  var g : rows<f32[9, 2]>
  (Outputs=out) = distributed_lookup_table(Ids=ids, W=emb) {table_names=["e0"], height_sections=[9l],
      endpoints=["a:1"], trainer_id=1}
  s = send(X=g) {epmap=["a:1"], send_varnames=["g"], sections=[9l], trainer_id=0} @rpc(emb, g)
)";
  const Program alone = Parsed(StrCat(kLookup, "}\n"));
  EXPECT_EQ(roles::ReadTrainer(alone).trainer_id, 1);
  const Program with_barrier =
      Parsed(StrCat(kLookup, "  b = send_barrier(X=s) {endpoints=[\"a:1\"], trainer_id=2} @rpc\n}\n"));
  EXPECT_EQ(roles::ReadTrainer(with_barrier).trainer_id, 2);
}

TEST(TrainerPrograms, LookupsStateTheServersOfRows) {
  const Program program = Parsed(R"(program
block 0 {
  param emb : f32[9, 2]
  data ids : i64[?, 1]
  var out : f32[?, 2]
  var i0 : i64[?, 1]
  var i1 : i64[?, 1]
  var r0 : f32[?, 2]
  var r1 : f32[?, 2]
  var rows : f32[?, 2]
  (Outputs=out) = distributed_lookup_table(Ids=ids, W=emb) {table_names=["e0", "e1"],
      height_sections=[5l, 4l], endpoints=["a:1", "b:1"]}
  [i0, i1] = split_ids(Ids=ids)
  [r0, r1] = prefetch(X=[i0, i1]) {epmap=["a:1", "b:1"]}
  rows = merge_ids(Ids=ids, Rows=[i0, i1], X=[r0, r1])
}
)");
  const roles::TrainerFacts role = roles::ReadTrainer(program);
  EXPECT_EQ(KindsOf(role), (std::vector<Kind>{Kind::kLookup, Kind::kPrefetch}));
  EXPECT_EQ(role.ops[0].whole, "emb");
  EXPECT_EQ(role.ops[0].pieces[1].remote, "e1");
  EXPECT_EQ(role.ops[0].pieces[1].rows, 4);
  EXPECT_EQ(role.ops[1].cut, roles::Cut::kById);
  EXPECT_EQ(role.ops[1].pieces[1].remote, "i1");
  ASSERT_NE(role.ops[1].cut_op, nullptr);
  ASSERT_NE(role.ops[1].merge_op, nullptr);
  EXPECT_EQ(role.ops[1].merge_op->type(), "merge_ids");
}

}  // namespace
}  // namespace penstock::test
