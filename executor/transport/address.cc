#include "executor/transport/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace penstock::transport {

bool SocketAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &storage, sizeof(in));
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  if (storage.ss_family != AF_INET6) return false;
  sockaddr_in6 in;
  std::memcpy(&in, &storage, sizeof(in));
  return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && in.sin6_addr.s6_addr[12] == 127);
}

std::string SocketAddress::ToText() const {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(get(), size, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return storage.ss_family == AF_INET6 ? StrCat("[", host, "]:", port) : StrCat(host, ":", port);
}

std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

Result<std::vector<SocketAddress>> Resolve(const std::string& address, bool to_listen) {
  const std::size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  const std::string host = HostOf(address);
  if (!digits || std::stoi(port) > 65535 || (host.empty() && !to_listen))
    return InvalidArgument("E-rpc-address", "address ", Quote(address), " is not host:port");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, [](addrinfo* list) {
    if (list != nullptr) freeaddrinfo(list);
  });
  if (error != 0)
    return Unavailable("E-rpc-resolve", "host name ", Quote(host), " is not known: ", gai_strerror(error));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SocketAddress& to = addresses.emplace_back();
    std::memset(&to.storage, 0, sizeof(to.storage));
    std::memcpy(&to.storage, at->ai_addr, at->ai_addrlen);
    to.size = at->ai_addrlen;
  }
  return addresses;
}

bool AllLoopback(const std::vector<SocketAddress>& addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const SocketAddress& a) { return a.IsLoopback(); });
}

}  // namespace penstock::transport
