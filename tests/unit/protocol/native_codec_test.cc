#include "executor/protocol/native_codec.h"

#include <gtest/gtest.h>

#include "executor/protocol/envelope.h"

namespace penstock::protocol {
namespace {

constexpr Sender kSender{.job = 11, .contract = 12, .incarnation = 13, .trainer = 14, .durable_version = 15};

// The fixed assignment of meanings to fields of the envelope, as in the first version of the wire.
Message Wire(Envelope envelope, const std::string& body = "") {
  envelope.job = 11;
  envelope.contract = 12;
  envelope.incarnation = 13;
  envelope.trainer = 14;
  envelope.durable_version = 15;
  return Seal(envelope, body.empty() ? Payload() : Payload::Of(body));
}

std::string BytesOf(const Message& message) { return message.head + message.body.ToText(); }

// The bytes are those of the wire, and parse back to the same message.
void Expect(const Event& event, const Message& wire) {
  EXPECT_EQ(BytesOf(Encode(kSender, event)), BytesOf(wire));
  const Result<Decoded<Event>> read = DecodeEvent(wire);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->sender, kSender);
  EXPECT_EQ(read->message.index(), event.index());
  EXPECT_EQ(BytesOf(Encode(kSender, read->message)), BytesOf(wire));
}

void Expect(const Reply& reply, const Message& wire) {
  EXPECT_EQ(BytesOf(Encode(kSender, reply)), BytesOf(wire));
  const Result<Decoded<Reply>> read = DecodeReply(wire);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->sender, kSender);
  EXPECT_EQ(read->message.index(), reply.index());
  EXPECT_EQ(BytesOf(Encode(kSender, read->message)), BytesOf(wire));
}

TEST(NativeCodec, EventsEncodeAsSpecified) {
  const HelloBody hello{.job = "j", .trainers = 2, .contract = "param w : f32[2]\n", .job_facts = "f"};
  Expect(Event(Hello{.step = 1, .body = hello}),
         Wire({.kind = MessageKind::kHello, .step = 1}, WriteHello(hello)));
  Expect(Event(Push{.at = {1, 2}, .step = 3, .part = 4, .rows = 5, .bytes = Payload::Of("bytes")}),
         Wire({.kind = MessageKind::kPush, .step = 3, .credit = 5, .variable = 1, .chunk = 2, .part = 4},
              "bytes"));
  Expect(Event(EndStep{.step = 3, .variables = {4, 5}}),
         Wire({.kind = MessageKind::kEndStep, .step = 3}, WriteVariables({4, 5})));
  Expect(Event(CountStep{.step = 3}), Wire({.kind = MessageKind::kCountStep, .step = 3}));
  Expect(Event(Pull{.at = {1, 2}, .version = 3}),
         Wire({.kind = MessageKind::kPull, .step = 3, .variable = 1, .chunk = 2}));
  Expect(Event(PullRows{.at = {1, 2}, .version = 3, .request = 4, .ids = Payload::Of("12345678")}),
         Wire({.kind = MessageKind::kPullRows, .step = 3, .variable = 1, .chunk = 2, .part = 4}, "12345678"));
  Expect(Event(PullChanged{.variable = 1, .version = 3}),
         Wire({.kind = MessageKind::kPullChanged, .step = 3, .variable = 1}));
  Expect(Event(Save{.version = 3, .request = 4, .body = {.table = "t", .file = "f"}}),
         Wire({.kind = MessageKind::kSave, .step = 3, .part = 4}, WriteSave({.table = "t", .file = "f"})));
  Expect(Event(Ask{.about = ChunkRef{1, 2}, .step = 3, .waits_for = "w"}),
         Wire({.kind = MessageKind::kAsk, .step = 3, .variable = 1, .chunk = 2}, "w"));
  Expect(Event(Ask{.about = {}, .step = 0, .waits_for = ""}),
         Wire({.kind = MessageKind::kAsk, .variable = 0xffffffff}));
  Expect(Event(Complete{}), Wire({.kind = MessageKind::kComplete}));
  Expect(Event(RequestCut{.step = 3}), Wire({.kind = MessageKind::kRequestCut, .step = 3}));
  const Status why = Unavailable("E-x", "gone");
  Expect(Event(Failure{why}), Wire({.kind = MessageKind::kError}, WriteStatus(why)));
  Expect(Event(ServerHello{.server = 2, .body = hello}),
         Wire({.kind = MessageKind::kServerHello, .variable = 2}, WriteHello(hello)));
  Expect(Event(Sums{.step = 3, .bytes = Payload::Of("bytes")}),
         Wire({.kind = MessageKind::kSums, .step = 3}, "bytes"));
  const KeyBody key{.name = "w", .dtype = 5, .shape = {2, 3}, .rows = true, .turns = true, .whole = false};
  Expect(Event(DeclareKey{.request = 4, .body = key}),
         Wire({.kind = MessageKind::kDeclareKey, .part = 4}, WriteKey(key)));
  const Result<KeyBody> table =
      ReadKey(WriteKey({.name = "t", .shape = {1, 3}, .rows = true, .table = "constant 0 0 seed 0"}));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->table, "constant 0 0 seed 0");
  Expect(Event(SetOptimizer{.number = 3, .keeps_state = 1, .text = "sgd {}"}),
         Wire({.kind = MessageKind::kSetOptimizer, .step = 3, .part = 1}, "sgd {}"));
  Expect(Event(Barrier{.number = 3}), Wire({.kind = MessageKind::kBarrier, .step = 3}));
}

TEST(NativeCodec, CutsOfKeysHaveTheirFields) {
  const std::vector<KeyPushes> pushes = {{4, 10}, {6, 5}};
  Expect(Event(CutKeys{.step = 10, .pushes = pushes}),
         Wire({.kind = MessageKind::kCutKeys, .step = 10}, WriteKeyPushes(pushes)));
  EXPECT_EQ(ReadKeyPushes(WriteKeyPushes(pushes)).value(), pushes);
  EXPECT_EQ(ReadKeyPushes(WriteKeyPushes(pushes) + "x").status().id(), "E-rpc-body");
  Expect(Event(CountGone{.request = 4}), Wire({.kind = MessageKind::kCountGone, .part = 4}));
  Expect(Reply(KeysCut{.step = 10}), Wire({.kind = MessageKind::kKeysCut, .step = 10}));
  Expect(Reply(GoneCounted{.request = 4, .workers = 1}),
         Wire({.kind = MessageKind::kGoneCounted, .step = 1, .part = 4}));
  const WelcomeBody of_keys{.part_bytes = 8, .window = 2, .chunk_rows = {}, .cut_every = 5};
  EXPECT_EQ(ReadWelcome(WriteWelcome(of_keys)).value().cut_every, 5U);
}

TEST(NativeCodec, APushOfAKeyCarriesTheMostPushesOfAnyKey) {
  Sender sender = kSender;
  sender.durable_version = 0;  // a worker has none
  const auto read = DecodeEvent(Encode(sender, Event(Push{.at = {1, 0}, .bytes = {}, .largest = 9})));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(std::get<Push>(read->message).largest, 9u);
}

TEST(NativeCodec, RepliesEncodeAsSpecified) {
  const WelcomeBody welcome{.part_bytes = 8, .window = 2, .chunk_rows = {3, 4}};
  Expect(Reply(Welcome{.steps_ended = 1, .first_step = 7, .body = welcome}),
         Wire({.kind = MessageKind::kWelcome, .step = 1, .credit = 7}, WriteWelcome(welcome)));
  const WelcomeBody again{
      .part_bytes = 8, .window = 2, .chunk_rows = {3}, .by_turn = {}, .incarnation = 2, .version = 5};
  Expect(Reply(Welcome{.steps_ended = 5, .body = again}),
         Wire({.kind = MessageKind::kWelcome, .step = 5}, WriteWelcome(again)));
  const WelcomeBody read = ReadWelcome(WriteWelcome(again)).value();
  EXPECT_EQ(read.incarnation, 2U);
  EXPECT_EQ(read.version, 5U);
  EXPECT_TRUE(read.shards.empty());
  const WelcomeBody sharded{.part_bytes = 8, .window = 2, .chunk_rows = {3, 4}, .shards = {1, 7}};
  EXPECT_EQ(ReadWelcome(WriteWelcome(sharded)).value().shards, (std::vector<std::uint32_t>{1, 7}));
  Expect(Reply(Pushed{.at = {1, 2}, .step = 3, .part = 4, .welcome_below = 5}),
         Wire({.kind = MessageKind::kPushed, .step = 3, .credit = 5, .variable = 1, .chunk = 2, .part = 4}));
  Expect(Reply(StepEnded{.step = 3}), Wire({.kind = MessageKind::kStepEnded, .step = 3}));
  Expect(
      Reply(Pulled{.at = {1, 2}, .version = 3, .part = 4, .welcome_below = 5, .bytes = Payload::Of("bytes")}),
      Wire({.kind = MessageKind::kPulled, .step = 3, .credit = 5, .variable = 1, .chunk = 2, .part = 4},
           "bytes"));
  Expect(Reply(Gone{.at = {1, 2}, .version = 3, .welcome_below = 5}),
         Wire({.kind = MessageKind::kGone, .step = 3, .credit = 5, .variable = 1, .chunk = 2}));
  Expect(Reply(Rows{.variable = 1, .request = 6, .version = 3, .part = 4, .bytes = Payload::Of("bytes")}),
         Wire({.kind = MessageKind::kRows, .step = 3, .credit = 6, .variable = 1, .part = 4}, "bytes"));
  Expect(Reply(RowsGone{.variable = 1, .request = 6, .version = 3}),
         Wire({.kind = MessageKind::kRowsGone, .step = 3, .credit = 6, .variable = 1}));
  Expect(Reply(Credit{.at = {1, 2}, .welcome_below = 5}),
         Wire({.kind = MessageKind::kCredit, .credit = 5, .variable = 1, .chunk = 2}));
  const Status why = InvalidArgument("E-x", "no");
  Expect(Reply(Saved{.request = 6, .status = OkStatus()}), Wire({.kind = MessageKind::kSaved, .part = 6}));
  Expect(Reply(Saved{.request = 6, .status = why}),
         Wire({.kind = MessageKind::kSaved, .part = 6}, WriteStatus(why)));
  Expect(
      Reply(Answer{.at = {1, 2}, .step = 3, .welcome_below = 5, .lacking = "trainer 1"}),
      Wire({.kind = MessageKind::kAnswer, .step = 3, .credit = 5, .variable = 1, .chunk = 2}, "trainer 1"));
  Expect(Reply(StepCounted{.step = 7}), Wire({.kind = MessageKind::kStepCounted, .step = 7}));
  Expect(
      Reply(PulledNewest{.at = {.variable = 2, .chunk = 1},
                         .version = 5,
                         .updates = 11,
                         .part = 3,
                         .bytes = Payload::Of("xyz")}),
      Wire(
          {.kind = MessageKind::kPulledNewest, .step = 5, .credit = 11, .variable = 2, .chunk = 1, .part = 3},
          "xyz"));
  Expect(
      Reply(ChangedRows{
          .variable = 2, .version = 5, .updates = 11, .rows = 7, .part = 3, .bytes = Payload::Of("xyz")}),
      Wire({.kind = MessageKind::kChangedRows, .step = 5, .credit = 7, .variable = 2, .chunk = 11, .part = 3},
           "xyz"));
  Expect(Reply(Left{.trainer = 1, .steps = 3}), Wire({.kind = MessageKind::kLeft, .step = 3, .credit = 1}));
  Expect(Reply(Completed{}), Wire({.kind = MessageKind::kCompleted}));
  Expect(Reply(Durable{}), Wire({.kind = MessageKind::kDurable}));
  Expect(Reply(Failure{why}), Wire({.kind = MessageKind::kError}, WriteStatus(why)));
  Expect(Reply(ServerWelcome{}), Wire({.kind = MessageKind::kServerWelcome}));
  Expect(Reply(SumsTaken{.step = 3}), Wire({.kind = MessageKind::kSumsTaken, .step = 3}));
  for (const KeyDeclaredBody& body :
       {KeyDeclaredBody{.status = {}, .chunk_rows = 7, .pushes = 8, .shards = 3},
        KeyDeclaredBody{.status = why}}) {
    Expect(Reply(KeyDeclared{.request = 4, .variable = 2, .welcome_below = 5, .body = body}),
           Wire({.kind = MessageKind::kKeyDeclared, .credit = 5, .variable = 2, .part = 4},
                WriteKeyDeclared(body)));
  }
  Expect(Reply(OptimizerSet{.number = 3, .status = why}),
         Wire({.kind = MessageKind::kOptimizerSet, .step = 3}, WriteStatus(why)));
  Expect(Reply(BarrierPassed{.number = 3}), Wire({.kind = MessageKind::kBarrierPassed, .step = 3}));
}

TEST(NativeCodec, ReadsTheHeadOfAVersionBeforeItsBody) {
  const Pulled part{.at = {1, 2}, .version = 3, .part = 4, .welcome_below = 5, .bytes = Payload::Of("bytes")};
  const std::string head = Encode(kSender, Reply(part)).head;
  const std::optional<Decoded<Pulled>> read = DecodePulledHead(head);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->sender, kSender);
  EXPECT_EQ(read->message.at, part.at);
  EXPECT_EQ(read->message.version, 3u);
  EXPECT_EQ(read->message.part, 4u);
  EXPECT_EQ(read->message.bytes.size(), 0u);
  EXPECT_FALSE(DecodePulledHead(Encode(kSender, Reply(Gone{})).head).has_value());
  EXPECT_FALSE(DecodePulledHead(head.substr(1)).has_value());
}

TEST(NativeCodec, RefusesMessagesOfTheWrongDirection) {
  EXPECT_EQ(DecodeEvent(Wire({.kind = MessageKind::kPulled})).status().id(), "E-rpc-envelope");
  EXPECT_EQ(DecodeReply(Wire({.kind = MessageKind::kPush})).status().id(), "E-rpc-envelope");
  EXPECT_EQ(DecodeEvent(Wire({.kind = MessageKind::kEndStep}, "odd")).status().id(), "E-rpc-body");
  Message bad = Wire({.kind = MessageKind::kPull});
  bad.head[40] = 'x';
  EXPECT_EQ(DecodeEvent(bad).status().id(), "E-rpc-crc");
}

}  // namespace
}  // namespace penstock::protocol
