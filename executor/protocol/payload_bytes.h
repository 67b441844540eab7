// Counts the bytes of tensors and ids in a message, which both sides report as sent and received.
//
//   notes.Sent(PayloadBytes(event));
#pragma once

#include <cstdint>
#include <variant>

#include "executor/protocol/events.h"

namespace penstock::protocol {

// `message` is an Event or a Reply.
template <typename... Messages>
std::uint64_t PayloadBytes(const std::variant<Messages...>& message) {
  return std::visit(
      [](const auto& one) -> std::uint64_t {
        if constexpr (requires { one.bytes.size(); }) {
          return one.bytes.size();
        } else if constexpr (requires { one.ids.size(); }) {
          return one.ids.size();
        } else {
          return 0;
        }
      },
      message);
}

}  // namespace penstock::protocol
