// Converts addresses "host:port" for sockets.
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

// Returns all addresses of the name, at least one. May query a name server and block. With `to_listen`, an
// empty host stands for every address of this machine. kInvalidArgument E-rpc-address: not host:port.
// kUnavailable E-rpc-resolve: the name cannot be resolved at the moment.
Result<std::vector<SocketAddress>> Resolve(const std::string& address, bool to_listen);

bool AllLoopback(const std::vector<SocketAddress>& addresses);

// The host part of an address: "10.0.0.1", "::1", "ps0".
std::string HostOf(const std::string& address);

}  // namespace penstock::transport
