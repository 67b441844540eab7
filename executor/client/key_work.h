// What a KeyClient has begun: a push, a pull, a request for rows, or several of them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/client/key_client.h"
#include "framework/tensor/half.h"

namespace penstock::client {

// Those of several rows that lie in a piece of a table.
class RowsOfPiece {
 public:
  // The piece of server `server` of a table of any ids: an id's server is the id modulo their number.
  static RowsOfPiece OfServer(std::span<const std::int64_t> ids, std::size_t server, std::size_t servers) {
    RowsOfPiece rows;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (static_cast<std::uint64_t>(ids[i]) % servers != server) continue;
      rows.ids_.push_back(ids[i]);
      rows.places_.push_back(i);
    }
    return rows;
  }
  RowsOfPiece(std::span<const std::int64_t> rows, Dim begin, Dim end) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] < begin || rows[i] >= end) continue;
      ids_.push_back(rows[i] - begin);
      places_.push_back(i);
    }
  }
  const std::vector<std::int64_t>& ids() const { return ids_; }  // in the piece
  const std::vector<std::size_t>& places() const { return places_; }

  // All ids, then their values; `values` has all rows.
  penstock::Bytes Bytes(const Tensor& values, std::size_t row_bytes) const {
    if (ids_.empty()) return {};
    const std::size_t id_bytes = ids_.size() * sizeof(std::int64_t),
                      size = id_bytes + ids_.size() * row_bytes;
    auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
    std::memcpy(bytes.get(), ids_.data(), id_bytes);
    std::byte* to = bytes.get() + id_bytes;
    for (const std::size_t place : places_) {
      std::memcpy(to, values.raw() + place * row_bytes, row_bytes);
      to += row_bytes;
    }
    const std::byte* const data = bytes.get();
    return {std::move(bytes), data, size};
  }

 private:
  RowsOfPiece() = default;

  std::vector<std::int64_t> ids_;
  std::vector<std::size_t> places_;
};

struct KeyClient::Work {
  enum class Kind { kPush, kPull, kRows, kAll };
  Work(Kind the_kind, int the_key, std::uint64_t the_version)
      : kind(the_kind), key(the_key), version(the_version) {}

  const Kind kind;
  const int key;
  std::uint64_t version;  // of a push: the step behind it
  Tensor out, stored;     // of a pull: the caller's memory, and that memory or one in the type of servers
  struct Rows {
    Rows(Link* from, RowsOfPiece rows) : link(from), of(std::move(rows)) {}
    Link* link;
    RowsOfPiece of;
    Link::Requests requests;
    Tensor values;
  };
  std::shared_ptr<Work> leader;                       // of a pull: an earlier one, whose answer it gets
  std::vector<std::optional<Link::Updates>> updates;  // of a pull, by piece
  std::vector<Rows> rows;                             // by piece
  std::vector<Ticket> all;                            // of several
  std::size_t seen = 0;                               // so many of them are done
  bool done = false;
  Status status;

  static void Convert(const float* from, Half* to, std::int64_t count) {
    std::transform(from, from + count, to, HalfOf);
  }
  // Puts what has come into the caller's memory.
  void Land() {
    if (kind == Kind::kPull && stored.raw() != out.raw())
      Convert(stored.Data<float>(), out.Data<Half>(), out.count());
    for (const Rows& asked : rows) {
      const auto width = static_cast<std::size_t>(out.shape().RowWidth());
      const std::size_t size = width * SizeOf(out.dtype());
      for (std::size_t i = 0; i < asked.of.places().size(); ++i) {
        std::byte* const to = out.raw() + asked.of.places()[i] * size;
        if (asked.values.dtype() == out.dtype()) {
          std::memcpy(to, asked.values.raw() + i * size, size);
        } else {
          Convert(asked.values.Data<float>() + i * width, reinterpret_cast<Half*>(to),
                  static_cast<std::int64_t>(width));
        }
      }
    }
  }
};

}  // namespace penstock::client
