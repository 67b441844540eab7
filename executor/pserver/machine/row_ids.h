// The row numbers that a trainer requests, copied once out of the received message: a trainer on this host
// shares the message's memory and could change it after a check. The bounds are found while copying, so a
// check under the server's lock does not depend on how many there are. A copy of this object shares the
// numbers.
//
//   const RowIds ids = RowIds::Of(pull.ids);      // before the lock is taken
//   if (const std::optional<std::int64_t> row = ids.Outside(table_rows)) ...
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::pserver {

class RowIds {
 public:
  RowIds() = default;
  // Bytes beyond the last whole int64 are counted by bytes(), and not read.
  static RowIds Of(const Payload& payload);

  std::span<const std::int64_t> numbers() const {
    return numbers_ == nullptr ? std::span<const std::int64_t>() : std::span(*numbers_);
  }
  std::size_t bytes() const { return bytes_; }  // of the payload
  // The first number that is not in [0, rows). Takes constant time if there is none.
  std::optional<std::int64_t> Outside(std::int64_t rows) const;

 private:
  std::shared_ptr<const std::vector<std::int64_t>> numbers_;
  std::size_t bytes_ = 0;
  std::int64_t lowest_ = 0, highest_ = 0;
};

}  // namespace penstock::pserver
