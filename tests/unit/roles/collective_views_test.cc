#include "framework/roles/collective_views.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::roles {
namespace {

using Texts = std::vector<std::string>;

TEST(CollectiveViews, DescribeCollectiveOperations) {
  Op sum("c_allreduce_sum");
  sum.AddInput("X", {"g"}).AddOutput("Out", {"s"}).Set("ring_id", 2);
  EXPECT_EQ(CollectiveView(sum).kind(), CollectiveKind::kAllReduce);
  EXPECT_EQ(CollectiveView(sum).variable(), "g");
  EXPECT_EQ(CollectiveView(sum).result(), "s");
  EXPECT_EQ(CollectiveView(sum).ring(), 2);
  const Op broadcast = Op("c_broadcast").Set("root", 3);
  EXPECT_EQ(CollectiveView(broadcast).kind(), CollectiveKind::kBroadcast);
  EXPECT_EQ(CollectiveView(broadcast).root(), 3);
  EXPECT_EQ(CollectiveView(broadcast).ring(), 0);
  EXPECT_EQ(CollectiveView(Op("allreduce")).kind(), CollectiveKind::kAllReduce);
  EXPECT_EQ(CollectiveView(Op("c_sync_comm_stream")).kind(), CollectiveKind::kNone);
}

TEST(CollectiveViews, DescribeGroupInitialization) {
  const Op all = Op("gen_nccl_id").Set("trainers", Texts{"a:1", "b:1"}).Set("trainer_id", 1);
  EXPECT_EQ(AllRingsView(all).addresses().size(), 2u);
  EXPECT_EQ(AllRingsView(all).rank(), 1);
  EXPECT_EQ(AllRingsView(all).rings(), 1);
  EXPECT_FALSE(AllRingsView(all).hierarchical());
  Op id("c_gen_nccl_id");
  id.AddOutput("Out", {"id"}).Set("rank", 1).Set("endpoint", "b:1").Set("other_endpoints", Texts{"a:1"});
  EXPECT_EQ(RingIdView(id).id(), "id");
  EXPECT_EQ(RingIdView(id).address(), "b:1");
  EXPECT_EQ(RingIdView(id).others()[0], "a:1");
  const Op devices = Op("c_comm_init_all").Set("devices", std::vector<std::int32_t>{4, 5}).Set("ring_id", 1);
  EXPECT_EQ(RingView(devices).devices()[1], 5);
  EXPECT_EQ(RingView(devices).ring(), 1);
}

}  // namespace
}  // namespace penstock::roles
