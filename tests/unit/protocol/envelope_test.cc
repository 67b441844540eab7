#include "executor/protocol/envelope.h"

#include <gtest/gtest.h>

#include <random>

#include "executor/protocol/bodies.h"
#include "executor/transport/frame.h"
#include "framework/base/crc32c.h"

namespace penstock {
namespace {

protocol::Envelope Full() {
  return {.kind = protocol::MessageKind::kPush,
          .job = 1,
          .contract = 2,
          .incarnation = 3,
          .step = 4,
          .durable_version = 5,
          .credit = 6,
          .trainer = 7,
          .variable = 8,
          .chunk = 9,
          .part = 10};
}

TEST(Crc32c, BothImplementationsGiveTheKnownValue) {
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32cPortable(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(Crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

TEST(Envelope, EveryFieldRoundTrips) {
  const Message message = protocol::Seal(Full(), Payload::Of("the body"));
  EXPECT_EQ(message.head.size(), protocol::kEnvelopeBytes);
  const Result<protocol::Envelope> opened = protocol::Open(message);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_EQ(*opened, Full());
}

TEST(Envelope, PrecomputedChecksumsGiveTheSameBytes) {
  for (const std::string& text : {std::string(), std::string("the body"), std::string(5000, 'x')}) {
    Payload summed = Payload::Of(text);
    summed.set_crc32c(Crc32c(0, text.data(), text.size()));
    EXPECT_EQ(protocol::Seal(Full(), summed).head, protocol::Seal(Full(), Payload::Of(text)).head);
    // A reader trusts the bytes.
    Message wrong = protocol::Seal(Full(), summed);
    wrong.body = Payload::Of(text + "!");
    wrong.body.set_crc32c(*summed.crc32c());
    EXPECT_FALSE(protocol::Open(wrong).ok());
  }
}

TEST(Envelope, LocalBodiesNeedNoChecksum) {
  const Message message = protocol::Seal(Full(), Payload::Of("the body"), protocol::BodyChecksum::kLeftOut);
  EXPECT_EQ(protocol::Open(message, protocol::BodyChecksum::kLeftOut).value(), Full());
  EXPECT_EQ(protocol::Open(message).status().id(), "E-rpc-crc") << "a connection that asks for sums";
  Message damaged = message;
  damaged.head[33] = static_cast<char>(damaged.head[33] ^ 1);
  EXPECT_EQ(protocol::Open(damaged, protocol::BodyChecksum::kLeftOut).status().id(), "E-rpc-crc");
  const Message summed = protocol::Seal(Full(), Payload::Of("the body"));
  EXPECT_TRUE(protocol::Open(summed, protocol::BodyChecksum::kLeftOut).ok());
}

// The golden bytes of the wire.
TEST(Envelope, BytesAreFixedAndContainNoToken) {
  const Message message = protocol::Seal(Full(), Payload::Of("the body"));
  std::string hex;
  for (const char byte : message.head) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  EXPECT_EQ(hex.substr(0, 144),
            "504e533203000000"    // magic, kind
            "0100000000000000"    // job
            "0200000000000000"    // contract
            "0300000000000000"    // incarnation
            "0400000000000000"    // step
            "0500000000000000"    // durable version
            "0600000000000000"    // credit
            "0700000008000000"    // trainer, variable
            "090000000a000000");  // chunk, part
  EXPECT_EQ(hex.substr(152), "08000000");
}

TEST(Envelope, EveryChangedBitIsDetected) {
  const Message good = protocol::Seal(Full(), Payload::Of("body"));
  for (std::size_t byte = 0; byte < good.head.size(); ++byte) {
    if (byte >= 5 && byte < 8) continue;  // not used
    for (int bit = 0; bit < 8; ++bit) {
      Message bad = good;
      bad.head[byte] = static_cast<char>(bad.head[byte] ^ (1 << bit));
      EXPECT_FALSE(protocol::Open(bad).ok()) << "byte " << byte << ", bit " << bit;
    }
  }
  EXPECT_EQ(protocol::Open({good.head, Payload::Of("bodx")}).status().id(), "E-rpc-crc");
  EXPECT_EQ(protocol::Open({good.head, Payload::Of("body+")}).status().id(), "E-rpc-envelope");
}

TEST(Frame, FramesOfEmptyMessagesAreRefusedEarly) {
  const std::string empty(8, '\0');
  std::string frame;
  for (std::size_t i = 0; i < transport::kFrameMessagesMax; ++i) frame += empty;
  EXPECT_EQ(transport::SplitFrame(Payload::Of(frame).pieces()).value().size(), transport::kFrameMessagesMax);
  EXPECT_EQ(transport::SplitFrame(Payload::Of(frame + empty).pieces()).status().id(), "E-rpc-frame");
}

TEST(Frame, MessagesSurviveFragmentation) {
  std::vector<Message> messages;
  for (const std::size_t size : {0, 10, 4095, 4096, 100'000}) {
    messages.push_back({std::string(size % 200, 'h'), Payload::Of(std::string(size, 'b'))});
  }
  std::string whole;
  for (const Bytes& piece : transport::JoinFrame(messages))
    whole.append(reinterpret_cast<const char*>(piece.data), piece.size);
  for (const std::size_t cut : {1, 7, 64, 5000, 1'000'000}) {
    std::vector<Bytes> pieces;
    for (std::size_t at = 0; at < whole.size(); at += cut) {
      const Payload payload = Payload::Of(whole.substr(at, cut));
      pieces.insert(pieces.end(), payload.pieces().begin(), payload.pieces().end());
    }
    const Result<std::vector<Message>> back = transport::SplitFrame(pieces);
    ASSERT_TRUE(back.ok());
    ASSERT_EQ(back->size(), messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ((*back)[i].head, messages[i].head);
      EXPECT_EQ((*back)[i].body.ToText(), messages[i].body.ToText());
    }
  }
}

std::string RandomBytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Any bytes from the network: no crash, no hang, no large memory.
TEST(Fuzz, RandomBytesAreReadOrRefused) {
  std::mt19937_64 random(1);
  const std::vector<std::string> good = {
      protocol::WriteHello({"job", 2, "param w : f32[1]\n"}), protocol::WriteWelcome({1 << 20, 2, {1, 2, 3}}),
      protocol::WriteVariables({1, 2, 3}),
      protocol::WriteStatus(InvalidArgument("E-x", "message").With("line"))};
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = i % 2 == 0 ? RandomBytes(random, random() % 300) : good[random() % good.size()];
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
    (void)protocol::ReadHello(bytes);
    (void)protocol::ReadWelcome(bytes);
    (void)protocol::ReadVariables(bytes);
    EXPECT_FALSE(protocol::ReadStatus(bytes).ok());
    (void)protocol::Open({bytes, Payload::Of(RandomBytes(random, 8))});
    const Payload frame = Payload::Of(bytes);
    (void)transport::SplitFrame(frame.pieces());
  }
}

TEST(Bodies, RoundTrip) {
  const Result<protocol::HelloBody> hello =
      protocol::ReadHello(protocol::WriteHello({"job", 2, "param w : f32[1]\n", "has random seed 1\n"}));
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello->job_facts, "has random seed 1\n");
  EXPECT_EQ(hello->contract, "param w : f32[1]\n");
  const Result<protocol::WelcomeBody> welcome =
      protocol::ReadWelcome(protocol::WriteWelcome({5, 2, {1, 2, 3}}));
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->chunk_rows, (std::vector<std::uint64_t>{1, 2, 3}));
  const Status status = protocol::ReadStatus(
      protocol::WriteStatus(Unavailable("E-peer-lost", "gone").With("written at train.py:7")));
  EXPECT_EQ(status.ToString(), Unavailable("E-peer-lost", "gone").With("written at train.py:7").ToString());
  EXPECT_EQ(protocol::ReadHello(protocol::WriteHello({"job", 2, ""}) + "x").status().id(), "E-rpc-body");
  EXPECT_EQ(protocol::ReadVariables("\xff\xff\xff\xff").status().id(),
            "E-rpc-body");  // four billion numbers
}

}  // namespace
}  // namespace penstock
