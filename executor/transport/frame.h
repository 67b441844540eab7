// Packs several messages into one frame of a byte stream, so that small ones travel together. A frame has,
// for each message: u32 head size, u32 body size, head, body (little endian).
#pragma once

#include <cstddef>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

// The most messages in a frame: a frame of empty messages would unpack into ten times its size.
inline constexpr std::size_t kFrameMessagesMax = 4096;

// Returns the pieces of a frame of these messages. Heads and small bodies are copied together; large bodies
// are shared.
std::vector<Bytes> JoinFrame(const std::vector<Message>& messages);
// The number of bytes that a message adds to a frame.
std::size_t FrameBytes(const Message& message);

// Returns the messages of a frame that arrived in these pieces. Heads are copied; bodies share the pieces.
// Checks every size before it allocates. kDataLoss E-rpc-frame.
Result<std::vector<Message>> SplitFrame(const std::vector<Bytes>& pieces);

}  // namespace penstock::transport
