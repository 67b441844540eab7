// Addresses "host:port" as sockets need them.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace penstock::transport {

struct SocketAddress {
  sockaddr_storage storage;
  socklen_t size;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool IsLoopback() const;     // 127.0.0.0/8, ::1
  std::string ToText() const;  // "127.0.0.1:6174", "[::1]:6174"
};

// All that the name stands for, at least one; may ask a name server and wait for it. `to_listen`: an empty
// host stands for every address of this machine.
// kInvalidArgument E-rpc-address: not host:port. kUnavailable E-rpc-resolve: the name is not known (now).
Result<std::vector<SocketAddress>> Resolve(const std::string& address, bool to_listen);

bool AllLoopback(const std::vector<SocketAddress>& addresses);

// "10.0.0.1", "::1", "ps0" of an address.
std::string HostOf(const std::string& address);

}  // namespace penstock::transport
