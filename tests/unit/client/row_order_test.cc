// Rows in the order of their shards: how a session sends them, and puts answers in the order of the ids.
#include "executor/client/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "executor/protocol/row_shards.h"
#include "framework/base/crc32c.h"
#include "tests/unit/client/sharded_trainer.h"

namespace penstock::test {
namespace {

constexpr std::uint32_t kShards = 3;

std::vector<std::int64_t> DrawnIds(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 40) - 20;
  return ids;
}

TEST(RowOrder, EachShardHasItsRowsInTheirOrder) {
  for (const std::size_t count : {0, 1, 500}) {
    const std::vector<std::int64_t> ids = DrawnIds(count);
    const client::RowOrder order(ids, kShards);
    ASSERT_EQ(order.size(), count);
    EXPECT_EQ(order.begin(0), 0u);
    EXPECT_EQ(order.begin(kShards), count);
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      const auto places =
          order.places().subspan(order.begin(shard), order.begin(shard + 1) - order.begin(shard));
      EXPECT_TRUE(std::ranges::is_sorted(places));
      for (const std::size_t place : places) EXPECT_EQ(protocol::ShardOf(ids[place], kShards), shard);
      EXPECT_TRUE(count < 500 || places.size() > 80) << places.size();
    }
  }
}

// A transport may give a body in pieces that end within a row.
TEST(RowOrder, RowsOfAPartReturnToTheirPlaces) {
  const std::vector<std::int64_t> ids = DrawnIds(50);
  const client::RowOrder order(ids, kShards);
  std::string sorted, wanted(ids.size() * kRowBytes, '?');
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < kRowBytes; ++j) sorted.push_back(static_cast<char>(i * 5 + j));
    std::memcpy(wanted.data() + order.places()[i] * kRowBytes, sorted.data() + i * kRowBytes, kRowBytes);
  }
  std::string out(wanted.size(), '?');
  for (std::size_t begin = 0; begin < sorted.size(); begin += 100) {
    Payload part;
    for (std::size_t at = begin; at < std::min(begin + 100, sorted.size()); at += 7)
      part.Append(Payload::Of(
          sorted.substr(at, std::min<std::size_t>(7, std::min(begin + 100, sorted.size()) - at))));
    client::ScatterRows(part, begin, kRowBytes, order.places(), reinterpret_cast<std::byte*>(out.data()));
  }
  EXPECT_EQ(out, wanted);
}

TEST(RowOrder, ALookupAsksEachShardAndKeepsTheOrderOfIds) {
  for (const bool before_welcome : {false, true}) {
    ShardedTrainer trainer;
    const std::vector<std::int64_t> ids = DrawnIds(200);
    Tensor out;
    if (!before_welcome) trainer.Welcome({kShards, 1});
    ASSERT_TRUE(trainer.PullRows(ids, out).ok());
    EXPECT_FALSE(trainer.session.RowsDone());
    if (before_welcome) trainer.Welcome({kShards, 1});
    const auto requests = trainer.Sent<protocol::PullRows>();
    ASSERT_EQ(requests.size(), kShards);
    std::size_t asked = 0;
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) {  // in any order
      const std::vector<std::int64_t> of_shard = IdsIn(request->ids);
      asked += of_shard.size();
      std::string rows;
      for (const std::int64_t id : of_shard) {
        EXPECT_EQ(protocol::ShardOf(id, kShards), request->at.chunk);
        rows.append(reinterpret_cast<const char*>(RowOf(id).data()), kRowBytes);
      }
      EXPECT_FALSE(trainer.session.RowsDone());
      for (std::uint32_t part = 0; part * std::size_t{100} < rows.size(); ++part) {
        trainer.Deliver(protocol::Rows{.request = request->request,
                                       .part = part,
                                       .bytes = Payload::Of(rows.substr(part * std::size_t{100}, 100))});
      }
    }
    EXPECT_EQ(asked, ids.size());
    EXPECT_TRUE(trainer.session.RowsDone());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::span<float> row = out.Span<float>().subspan(i * 3, 3);
      EXPECT_TRUE(std::ranges::equal(row, RowOf(ids[i]))) << i;
    }
    ASSERT_TRUE(trainer.PullRows({}, out).ok());
    EXPECT_TRUE(trainer.session.RowsDone()) << "no id, no request";
  }
}

TEST(RowOrder, EachShardGetsItsRowsOfAGradient) {
  for (const bool before_welcome : {false, true}) {
    for (const std::size_t count : {0, 200}) {
      ShardedTrainer trainer;
      const std::vector<std::int64_t> drawn = DrawnIds(count);
      SelectedRows gradient{
          .rows = drawn, .height = 100, .value = Tensor(DType::kFp32, {static_cast<Dim>(count), 3})};
      for (std::int64_t& id : gradient.rows) id += 20;  // a row of the piece
      for (std::size_t i = 0; i < count; ++i) gradient.value.Span<float>()[i * 3] = static_cast<float>(i);
      if (!before_welcome) trainer.Welcome({1, kShards});
      ASSERT_TRUE(trainer.PushRows(gradient).ok());
      if (before_welcome) trainer.Welcome({1, kShards});
      std::vector<std::string> of_shard(kShards);
      std::vector<std::uint64_t> rows(kShards, 0);
      for (const protocol::Push& push : trainer.Sent<protocol::Push>()) {
        EXPECT_EQ(push.part, of_shard[push.at.chunk].size() / 100);
        of_shard[push.at.chunk] += push.bytes.ToText();
        rows[push.at.chunk] = push.rows;
        trainer.Deliver(
            protocol::Pushed{.at = push.at, .step = push.step, .part = push.part, .welcome_below = 2});
      }
      std::size_t sent = 0;
      for (std::uint32_t shard = 0; shard < kShards; ++shard) {
        ASSERT_EQ(of_shard[shard].size(), rows[shard] * (sizeof(std::int64_t) + kRowBytes));
        const std::size_t id_bytes = rows[shard] * sizeof(std::int64_t);
        const std::vector<std::int64_t> ids = IdsIn(Payload::Of(of_shard[shard].substr(0, id_bytes)));
        float last = -1;
        for (std::size_t i = 0; i < ids.size(); ++i, ++sent) {
          EXPECT_EQ(protocol::ShardOf(ids[i], kShards), shard);
          float place = 0;
          std::memcpy(&place, of_shard[shard].data() + id_bytes + i * kRowBytes, sizeof place);
          EXPECT_EQ(gradient.rows[static_cast<std::size_t>(place)], ids[i]);
          EXPECT_GT(place, last) << "rows of a shard keep their order";
          last = place;
        }
      }
      EXPECT_EQ(sent, count);
      EXPECT_TRUE(trainer.session.EarlierPushesDone(1)) << "each shard has acknowledged it";
    }
  }
}

TEST(RowOrder, EachPartOfAShardCarriesItsChecksum) {
  const client::VariableCut cut{.chunks = kShards,
                                .chunk_rows = 100,
                                .bytes_per_chunk = 100 * kRowBytes,
                                .bytes = 100 * kRowBytes,
                                .part_bytes = 100,
                                .rows = true,
                                .shards = kShards,
                                .row_bytes = kRowBytes};
  const SelectedRows rows{.rows = DrawnIds(200), .height = 100, .value = Tensor(DType::kFp32, {200, 3})};
  client::PushBytes sorted = client::CopyOfRows(rows, kShards);
  client::AddChecksums(cut, sorted);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    EXPECT_GT(sorted.PartsOf(cut, shard), 5u);
    for (std::uint32_t part = 0; part < sorted.PartsOf(cut, shard); ++part) {
      const Payload payload = sorted.PartOf(cut, shard, part);
      EXPECT_EQ(payload.crc32c(), Crc32c(0, payload.ToText().data(), payload.size()));
    }
  }
}

TEST(RowOrder, AWelcomeWithInvalidShardsIsRefused) {
  for (const std::vector<std::uint32_t>& shards :
       {std::vector<std::uint32_t>{1, 0}, std::vector<std::uint32_t>{1, protocol::kShardsMax + 1},
        std::vector<std::uint32_t>{2}}) {
    ShardedTrainer trainer;
    trainer.Welcome(shards);
    EXPECT_EQ(trainer.session.status().id(), "E-rpc-welcome");
  }
}

}  // namespace
}  // namespace penstock::test
