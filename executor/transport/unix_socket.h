// Unix sockets between processes of one host. They are SOCK_SEQPACKET, so a record arrives whole or not at
// all, and have abstract names, which are not files and end with the process.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Descriptor listener, ListenUnix(id));   // a server
//   const Descriptor socket = ConnectUnix(id);                        // a client; invalid without a listener
//
// An abstract name belongs to a network namespace: a peer that reaches it shares the kernel with the
// listener, so memory can be passed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"

namespace penstock::transport {

// Listens under the name for `id`. kUnavailable E-rpc-bind.
Result<Descriptor> ListenUnix(std::string_view id);
// A non-blocking socket, connected to a listener of this user; invalid if there is none.
Descriptor ConnectUnix(std::string_view id);
// Whether the process at the other end runs as the same user as this one.
bool IsSameUser(const Descriptor& socket);

enum class Sent { kDone, kFull, kBroken };
// Sends one record, with the descriptor `pass` if it is not negative; never waits.
Sent SendRecord(const Descriptor& socket, std::string_view record, int pass = -1);

struct Received {
  std::size_t size = 0;  // 0: the other side has ended
  bool whole = true;     // false: the record did not fit into the buffer
  Descriptor passed;
};
// Waits for the next record. nullopt: the connection broke.
std::optional<Received> ReceiveRecord(const Descriptor& socket, char* buffer, std::size_t capacity);

}  // namespace penstock::transport
