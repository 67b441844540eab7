#include "executor/protocol/batch.h"

#include <gtest/gtest.h>

#include <limits>

#include "executor/protocol/native_codec.h"

namespace penstock::protocol {
namespace {

constexpr Sender kWorker{.job = 11, .contract = 12, .incarnation = 13, .trainer = 14};

std::string WholeOf(const Message& message) { return message.head + message.body.ToText(); }

// Each message, encoded by itself.
template <typename T>
std::vector<std::string> WholesOf(const std::vector<T>& messages) {
  std::vector<std::string> texts;
  for (const T& each : messages) texts.push_back(WholeOf(Encode(kWorker, each)));
  return texts;
}

template <typename T>
Message BatchOf(const std::vector<T>& messages) {
  BatchWriter batch;
  for (const T& each : messages) {
    EXPECT_TRUE(BatchWriter::Takes(each));
    batch.Add(each);
  }
  return batch.Take(kWorker);
}

const std::vector<Event>& SomeEvents() {
  static const std::vector<Event> events = {
      Push{.at = {1, 2}, .step = 3, .part = 4, .rows = 5, .bytes = Payload::Of("bytes"), .largest = 6},
      Pull{.at = {1, 2}, .version = 3}, Push{.at = {7, 0}, .step = 1, .bytes = {}},
      Push{.at = {7, 0}, .step = 2, .bytes = Payload::Of("codes"), .largest = 1, .threshold = 0.5f}};
  return events;
}

TEST(Batch, HasTheSameMessages) {
  const Message batch = BatchOf(SomeEvents());
  ASSERT_TRUE(IsBatch(batch));
  EXPECT_FALSE(IsBatch(Encode(kWorker, SomeEvents()[0])));
  const auto read = DecodeEvents(batch);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->sender, kWorker);
  EXPECT_EQ(WholesOf(read->messages), WholesOf(SomeEvents()));
  const auto& compressed = std::get<Push>(read->messages[3]);
  EXPECT_EQ(compressed.threshold, 0.5f);
  EXPECT_EQ(compressed.rows, 0u);
}

TEST(Batch, HasAnswersOfAllSizesUpToItsLimit) {
  std::vector<Reply> replies = {
      Pushed{.at = {1, 2}, .step = 3, .part = 4, .welcome_below = 5},
      PulledNewest{.at = {1, 2}, .version = 3, .updates = 4, .part = 5, .bytes = Payload::Of("new")},
      Credit{.at = {1, 2}, .welcome_below = 5}};
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{5000}, kBatchedBytes})
    replies.emplace_back(Pulled{.at = {9, 0}, .version = 1, .bytes = Payload::Of(std::string(size, 'x'))});
  const Message batch = BatchOf(replies);
  const auto read = DecodeReplies(batch);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(WholesOf(read->messages), WholesOf(replies));
  // Values lie at addresses that their elements may have, and in the memory of the batch.
  const Bytes& value = std::get<Pulled>(read->messages.back()).bytes.pieces().front();
  EXPECT_EQ((value.data - batch.body.pieces().front().data) % 8, 0);
  EXPECT_EQ(value.size, kBatchedBytes);
}

TEST(Batch, TakesNothingThatIsLargeOrNoPartOfAList) {
  EXPECT_FALSE(BatchWriter::Takes(Event(Push{.bytes = Payload::Of(std::string(kBatchedBytes + 1, 'x'))})));
  EXPECT_FALSE(BatchWriter::Takes(Event(Hello{})));
  EXPECT_FALSE(BatchWriter::Takes(Event(Barrier{})));
  EXPECT_FALSE(BatchWriter::Takes(Reply(Welcome{})));
}

TEST(Batch, IsFullAtItsSizeAndThenEmptyAgain) {
  BatchWriter batch;
  std::size_t count = 0;
  for (; !batch.full(); ++count)
    batch.Add(
        Event(Push{.at = {0, 0}, .step = count, .bytes = Payload::Of(std::string(kBatchedBytes, 'x'))}));
  EXPECT_EQ(count, kBatchBytes / kBatchedBytes);
  EXPECT_EQ(DecodeEvents(batch.Take(kWorker)).value().messages.size(), count);
  EXPECT_TRUE(batch.empty());
}

// The envelope is valid: only what is in the body is damaged.
Message Damaged(std::uint64_t count, std::string body) {
  return Seal({.kind = MessageKind::kBatch, .step = count}, Payload::Of(std::move(body)));
}

TEST(Batch, RefusesWhatIsDamaged) {
  const std::string body = BatchOf(SomeEvents()).body.ToText();
  const auto id = [](const Message& message) { return DecodeEvents(message).status().id(); };
  EXPECT_EQ(id(Damaged(4, body)), "");
  EXPECT_EQ(id(Damaged(3, body)), "E-rpc-body");
  EXPECT_EQ(id(Damaged(5, body)), "E-rpc-body");
  EXPECT_EQ(id(Damaged(std::uint64_t{1} << 60, body)), "E-rpc-body");
  EXPECT_EQ(id(Damaged(4, body + std::string(8, '\0'))), "E-rpc-body");
  for (std::size_t size = 0; size < body.size(); ++size)
    EXPECT_EQ(id(Damaged(4, body.substr(0, size))), "E-rpc-body") << size;
  std::string other = body;
  other[0] = static_cast<char>(MessageKind::kBarrier);
  EXPECT_EQ(id(Damaged(4, other)), "E-rpc-body");
  other[0] = static_cast<char>(MessageKind::kPulled);  // of the other direction
  EXPECT_EQ(id(Damaged(4, other)), "E-rpc-body");
  other = body;
  other.replace(4, 4, "\xff\xff\xff\xff");  // the size of the first one
  EXPECT_EQ(id(Damaged(4, other)), "E-rpc-body");
  EXPECT_EQ(id(Encode(kWorker, SomeEvents()[0])), "E-rpc-body");
  EXPECT_EQ(DecodeEvent(BatchOf(SomeEvents())).status().id(), "E-rpc-envelope");
}

TEST(Batch, RefusesAThresholdThatCannotBe) {
  for (const float threshold : {-1.0f, std::numeric_limits<float>::infinity()}) {
    const Message push = Encode(kWorker, Event(Push{.at = {1, 0}, .bytes = {}, .threshold = threshold}));
    EXPECT_EQ(DecodeEvent(push).status().id(), "E-rpc-compressed") << threshold;
  }
}

}  // namespace
}  // namespace penstock::protocol
