#include "executor/pserver/machine/row_ids.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::test {
namespace {

// The numbers as the bytes of a message that arrived in pieces of `piece` bytes.
Payload Arrived(const std::vector<std::int64_t>& ids, std::size_t piece) {
  const std::string bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int64_t));
  Payload payload;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    payload.Append(Payload::Of(bytes.substr(at, piece)));
  return payload;
}

std::vector<std::int64_t> NumbersOf(const pserver::RowIds& ids) {
  return {ids.numbers().begin(), ids.numbers().end()};
}

TEST(RowIds, AreCopiedFromFragmentedMessages) {
  const std::vector<std::int64_t> ids = {7, 0, -3, 7, std::int64_t{1} << 40};
  for (const std::size_t piece : {3u, 8u, 100u})
    EXPECT_EQ(NumbersOf(pserver::RowIds::Of(Arrived(ids, piece))), ids);
  EXPECT_TRUE(pserver::RowIds::Of({}).numbers().empty());
}

TEST(RowIds, DoNotChangeWithTheMessage) {
  auto shared = std::make_shared<std::vector<std::int64_t>>(std::vector<std::int64_t>{1, 2});
  const pserver::RowIds ids = pserver::RowIds::Of(
      Payload(Bytes{shared, reinterpret_cast<const std::byte*>(shared->data()), 2 * sizeof(std::int64_t)}));
  (*shared)[0] = 99;
  EXPECT_EQ(NumbersOf(ids), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(ids.Outside(3), std::nullopt);
}

TEST(RowIds, ReportTheFirstRowOutOfRange) {
  const pserver::RowIds ids = pserver::RowIds::Of(Arrived({4, 9, -1}, 100));
  EXPECT_EQ(ids.Outside(5), 9);
  EXPECT_EQ(ids.Outside(10), -1);
  EXPECT_EQ(pserver::RowIds::Of(Arrived({4, 9}, 100)).Outside(10), std::nullopt);
  EXPECT_EQ(pserver::RowIds().Outside(0), std::nullopt);
}

TEST(RowIds, IgnoreATrailingPartialId) {
  const pserver::RowIds ids = pserver::RowIds::Of(Payload::Of("123456789012"));
  EXPECT_EQ(ids.bytes(), 12u);
  EXPECT_EQ(ids.numbers().size(), 1u);
}

}  // namespace
}  // namespace penstock::test
