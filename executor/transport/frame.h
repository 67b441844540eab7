// Packs several messages into one frame of a byte stream, so that small ones travel together: for each u32
// head size, u32 body size, head, body (little endian).
#pragma once

#include <cstddef>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

// Limits a frame, so that one of empty messages is not unpacked into ten times its size.
inline constexpr std::size_t kFrameMessagesMax = 4096;

// The pieces of a frame of these messages. Heads and small bodies are copied together; large bodies are
// shared.
std::vector<Bytes> JoinFrame(const std::vector<Message>& messages);
// The number of bytes that a message adds to a frame.
std::size_t FrameBytes(const Message& message);

// The messages of a frame that arrived in these pieces. Heads are copied, bodies share the pieces. Checks
// every size before it allocates: kDataLoss E-rpc-frame.
Result<std::vector<Message>> SplitFrame(const std::vector<Bytes>& pieces);

}  // namespace penstock::transport
