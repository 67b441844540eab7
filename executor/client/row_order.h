// Rows of a table in the order of their shards (executor/protocol/row_shards.h), by counting: the time is
// linear in the rows, whatever the number of shards.
//
//   const std::vector<std::int64_t> ids = {7, 1, 4, 7};
//   const RowOrder order(ids, 4);
//   order.places().subspan(order.begin(2), order.begin(3) - order.begin(2));   // where those of shard 2 are
//
// ScatterRows puts rows in that order back to their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::client {

class RowOrder {
 public:
  // Rows of a shard keep their order.
  RowOrder(std::span<const std::int64_t> ids, std::uint32_t shards);

  std::size_t size() const { return places_.size(); }
  // The number of rows in the shards before this one; `shard` may be the number of shards.
  std::size_t begin(std::uint32_t shard) const { return begins_[shard]; }
  // Where each row was, shard after shard.
  std::span<const std::size_t> places() const { return places_; }

 private:
  std::vector<std::size_t> begins_, places_;
};

// Copies bytes of rows in a RowOrder, of which the first is byte `begin` of them all, to where the rows were.
void ScatterRows(const Payload& rows, std::size_t begin, std::size_t row_bytes,
                 std::span<const std::size_t> places, std::byte* to);

}  // namespace penstock::client
