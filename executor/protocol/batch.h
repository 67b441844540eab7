// Several small messages of one sender to one receiver in one message of the native wire: the pushes and
// pulls of a list of keys, and the answers to them. Their meaning is that of the same messages one by one.
//
//   BatchWriter batch;
//   if (BatchWriter::Takes(event)) batch.Add(event);                       // copies the body
//   connection.Send(batch.Take(sender, ChecksumOver(connection)));         // the batch is empty again
//   ... if (IsBatch(message))
//   PENSTOCK_ASSIGN_OR_RETURN(const auto got, DecodeEvents(message));
//
// The envelope's step is the number of messages; its body has for each of them 48 bytes, little endian, and
// the message's own body, filled up to a multiple of 8 bytes:
//
//   0 kind (1)   1 zero (3)   4 size of its body (4)   8 step   16 durable version   24 credit
//   32 variable (4)   36 chunk (4)   40 part (4)   44 zero (4)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/protocol/envelope.h"
#include "executor/protocol/events.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::protocol {

inline constexpr std::size_t kBatchedBytes = std::size_t{16} << 10;  // largest body of a message in a batch
inline constexpr std::size_t kBatchBytes = std::size_t{256} << 10;   // a batch of this size is sent

class BatchWriter {
 public:
  // Pushes, pulls, and their answers, if they are small.
  static bool Takes(const Event& event);
  static bool Takes(const Reply& reply);

  // The batch takes the message, and is not full.
  void Add(const Event& event);
  void Add(const Reply& reply);
  bool empty() const { return count_ == 0; }
  bool full() const { return size_ >= kBatchBytes; }
  void Clear();

  // The batch must not be empty. As Encode in native_codec.h.
  Message Take(const Sender& sender, BodyChecksum checksum = BodyChecksum::kIncluded);

 private:
  void Add(const Envelope& envelope, const Payload& body);
  std::byte* Room(std::size_t bytes);

  std::uint64_t count_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<Buffer> buffer_;
};

template <typename T>
struct DecodedAll {
  Sender sender;
  std::vector<T> messages;
};

// By its head, which is not verified.
bool IsBatch(const Message& message);
// The messages share the memory of the batch. kDataLoss: E-rpc-envelope, E-rpc-crc, E-rpc-body.
Result<DecodedAll<Event>> DecodeEvents(const Message& batch, BodyChecksum least = BodyChecksum::kIncluded);
Result<DecodedAll<Reply>> DecodeReplies(const Message& batch, BodyChecksum least = BodyChecksum::kIncluded);

}  // namespace penstock::protocol
