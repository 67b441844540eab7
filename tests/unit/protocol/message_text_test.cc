#include "executor/protocol/message_text.h"

#include <gtest/gtest.h>

namespace penstock::protocol {
namespace {

TEST(MessageText, NamesTheMessageAndItsPlace) {
  EXPECT_EQ(TextOf(Event(Push{.at = {3, 1}, .step = 7, .part = 2, .bytes = Payload::Of("abcd")})),
            "Push variable=3 chunk=1 step=7 part=2 bytes=4");
  EXPECT_EQ(TextOf(Event(Barrier{.number = 2})), "Barrier variable=0 chunk=0 step=2 part=0 bytes=0");
  EXPECT_EQ(TextOf(Reply(BarrierPassed{.number = 2})),
            "BarrierPassed variable=0 chunk=0 step=2 part=0 bytes=0");
  EXPECT_EQ(TextOf(Reply(Pulled{.at = {3, 1}, .version = 7, .bytes = Payload::Of("ab")})),
            "Pulled variable=3 chunk=1 step=7 part=0 bytes=2");
  const std::string declared = TextOf(Event(DeclareKey{.request = 4, .body = {.name = "w", .shape = {2}}}));
  EXPECT_EQ(declared.substr(0, 11), "DeclareKey ");
  EXPECT_NE(declared.find(" part=4 "), std::string::npos);
  EXPECT_NE(declared.find(" key=\"w\""), std::string::npos) << declared;
}

TEST(MessageText, PushesAndPullsAreOfTheSecondLevel) {
  EXPECT_EQ(LevelOf(Event(Push{.bytes = {}})), 2);
  EXPECT_EQ(LevelOf(Event(Pull{})), 2);
  EXPECT_EQ(LevelOf(Reply(Pulled{.bytes = {}})), 2);
  EXPECT_EQ(LevelOf(Reply(Pushed{})), 2);
  EXPECT_EQ(LevelOf(Event(DeclareKey{})), 1);
  EXPECT_EQ(LevelOf(Reply(Welcome{})), 1);
}

}  // namespace
}  // namespace penstock::protocol
