#include "framework/roles/views.h"

#include <gtest/gtest.h>

#include "framework/roles/attr_names.h"
#include "tests/support/allocations/allocations.h"

namespace penstock::roles {
namespace {

using Texts = std::vector<std::string>;

Op Send(Texts variables, Texts addresses) {
  return Op("send").AddInput("X", std::move(variables)).Set(attr::kEpmap, std::move(addresses));
}

TEST(Views, AnOpIsIdentifiedByItsType) {
  EXPECT_EQ(CommOf(Op("send")), Comm::kSend);
  EXPECT_EQ(CommOf(Op("listen_and_serv")), Comm::kServe);
  EXPECT_EQ(CommOf(Op("split_ids")), Comm::kSplit);
  EXPECT_EQ(CommOf(Op("mul")), Comm::kNone);
  EXPECT_EQ(CommOf(Op("nce")), Comm::kNone) << "it reads a table of its own";
  EXPECT_EQ(CommOf(Op("nce").Set(attr::kRemotePrefetch, true)), Comm::kSampler);
  EXPECT_EQ(CommOf(Op("nce_grad").Set(attr::kRemotePrefetch, true)), Comm::kSampler);
}

TEST(Views, ASendWithSectionsBelongsToTheCommunicator) {
  Op op = Send({"g"}, {"a:1", "b:1"});
  op.Set(attr::kSendVarnames, Texts{"g.block0", "g.block1"});
  op.Set(attr::kSections, std::vector<std::int64_t>{7, 6});
  op.SetRolePair("w", "g");
  const SendView send(op);
  EXPECT_TRUE(send.by_communicator());
  EXPECT_FALSE(send.counts_step());
  EXPECT_FALSE(send.tells_communicator()) << "it is for a parameter";
  EXPECT_EQ(send.sections()[1], 6);
  EXPECT_EQ(PairOf(op).grad, "g");
}

TEST(Views, ASendWithoutParameterOnlyNotifiesTheCommunicator) {
  Op op = Send({"ids"}, {"127.0.0.1:6164"});
  op.Set(attr::kSendVarnames, Texts{"emb"});
  EXPECT_TRUE(SendView(op).tells_communicator());
  EXPECT_FALSE(SendView(op).tells_start()) << "a step is over";
  op.Set(attr::kSendVarnames, Texts{"ids"});
  EXPECT_TRUE(SendView(op).tells_start()) << "of itself";
  op.Set(attr::kUseSendHandler, false);
  EXPECT_FALSE(SendView(op).tells_communicator());
  EXPECT_TRUE(SendView(op).counts_step());
}

TEST(Views, ListLengthsMustMatch) {
  EXPECT_TRUE(SendView(Send({"a", "b"}, {"x:1", "y:1"})).Validate().ok());
  EXPECT_EQ(SendView(Send({"a", "b"}, {"x:1"})).Validate().message(),
            "send has 2 variables and 1 addresses in epmap");
  Op recv("recv");
  recv.AddOutput("Out", {"w"}).Set(attr::kEpmap, Texts{"x:1"}).Set(attr::kVarnames, Texts{"v", "u"});
  EXPECT_EQ(RecvView(recv).Validate().id(), "E-contract-epmap");
  recv.Set(attr::kVarnames, Texts{"v"});
  EXPECT_TRUE(RecvView(recv).Validate().ok());
  EXPECT_EQ(RecvView(recv).remote()[0], "v");
  Op prefetch("prefetch");
  prefetch.AddInput("X", {"ids"}).AddOutput("Out", {"a", "b"}).Set(attr::kEpmap, Texts{"x:1"});
  EXPECT_EQ(PrefetchView(prefetch).Validate().message(),
            "prefetch has 1 variables of ids, 2 of rows and 1 addresses in epmap");
}

TEST(Views, TableSlicesHaveOneNameForAllReaders) {
  Op lookup("distributed_lookup_table"), sampler("nce");
  lookup.AddInput("W", {"emb"}).Set(attr::kEndpoints, Texts{"a:1"});
  sampler.AddInput("Weight", {"emb"}).Set(attr::kEpmap, Texts{"a:1"});
  for (Op* op : {&lookup, &sampler}) {
    op->Set(attr::kTableNames, Texts{"emb.block0"}).Set(attr::kHeightSections, std::vector<std::int32_t>{9});
    const LookupView view(*op);
    EXPECT_EQ(view.table(), "emb");
    EXPECT_EQ(view.addresses()[0], "a:1");
    EXPECT_EQ(view.heights()[0], 9) << "ints are read as longs";
    EXPECT_TRUE(view.Validate().ok());
  }
}

TEST(Views, ASplitStatesItsKindAndSections) {
  Op rows("split_selected_rows"), ids("split_ids");
  rows.AddInput("X", {"g"}).AddOutput("Out", {"g.block0"});
  rows.Set(attr::kHeightSections, std::vector<std::int64_t>{5});
  ids.AddInput("Ids", {"i"}).AddOutput("Out", {"i.0", "i.1"});
  EXPECT_EQ(SplitView(rows).cut(), Cut::kByRows);
  EXPECT_EQ(SplitView(rows).sections()[0], 5);
  EXPECT_EQ(SplitView(ids).cut(), Cut::kById);
  EXPECT_EQ(SplitView(ids).whole(), "i");
  EXPECT_TRUE(SplitView(ids).sections().empty());
}

TEST(Views, MissingServerAttributesHaveFluidsDefaults) {
  const Op op("listen_and_serv");
  const ServeView serve(op);
  EXPECT_EQ(serve.trainers(), 1);
  EXPECT_EQ(serve.mode(), ServeMode::kSync);
  EXPECT_EQ(serve.lr_block(), -1);
  EXPECT_EQ(serve.number(), std::nullopt);
  EXPECT_FALSE(serve.keeps_backups());
  EXPECT_TRUE(serve.blocks().empty());
}

TEST(Views, AnEntryIsSplitAtItsLastColon) {
  const auto named = ParseNamedBlock("a:b:12");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "a:b");
  EXPECT_EQ(named->block, 12);
  for (const char* bad : {"", "a", "a:", "a:x", "a:1x"}) EXPECT_FALSE(ParseNamedBlock(bad)) << bad;
}

TEST(Views, ViewsDoNotAllocate) {
  Op op = Send({"a", "b"}, {"x:1", "y:1"});
  op.Set(attr::kSections, std::vector<std::int64_t>{7, 6}).SetRolePair("w", "a");
  test::BeginCounting();
  const SendView send(op);
  const bool ok = CommOf(op) == Comm::kSend && send.Validate().ok() && send.addresses()[1] == "y:1" &&
                  send.sections()[0] == 7 && PairOf(op).param == "w" && !send.by_communicator();
  const std::int64_t allocations = test::EndCounting();
  EXPECT_TRUE(ok);
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace penstock::roles
