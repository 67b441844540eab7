// Numbers the messages between a trainer and a server, and the operations of a group of ranks, so that the
// traces of all sides give each the same number. All know its parts already, so the wire carries no number.
//
//   const FlowBase base("10.0.0.1:6174", trainer);                          // of a connection
//   event.flow = base.Of(FlowKind::kPush, Fnv1a64("w@GRAD"), chunk, step);
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/hash.h"

namespace penstock::trace {

enum class FlowKind : std::uint8_t { kPush = 1, kPull = 2, kRows = 3, kChanged = 4, kCollective = 5 };

class FlowBase {
 public:
  // `server` is the address in the programs; or it names a group of ranks, and `trainer` is 0.
  FlowBase(std::string_view server, std::uint64_t trainer) : base_(Mixed(Fnv1a64(server), trainer)) {}

  // Never 0.
  //   name  hash of the variable's name in the contract
  //   part  the chunk, or the number of a request for rows
  std::uint64_t Of(FlowKind kind, std::uint64_t name, std::uint64_t part, std::uint64_t step) const {
    const std::uint64_t what = Mixed(name, part << 3 | static_cast<std::uint64_t>(kind));
    return Mixed(Mixed(base_, what), step) | 1;
  }

 private:
  // The finaliser of splitmix64: every bit of the input changes half of the output's bits.
  static constexpr std::uint64_t Mixed(std::uint64_t seed, std::uint64_t word) {
    std::uint64_t x = seed * 0x9e3779b97f4a7c15 + word + 0x632be59bd9b4e019;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }

  std::uint64_t base_;
};

}  // namespace penstock::trace
