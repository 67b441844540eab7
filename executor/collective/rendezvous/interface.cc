#include "executor/collective/rendezvous/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "executor/transport/address.h"

namespace penstock::rendezvous {
namespace {

// A list of interface names in the syntax that NCCL documents.
class NameList {
 public:
  explicit NameList(std::string_view text) {
    excludes_ = StartsWith(text, "^");
    if (excludes_) text.remove_prefix(1);
    exact_ = StartsWith(text, "=");
    if (exact_) text.remove_prefix(1);
    for (const std::string& name : Split(text, ',')) {
      if (!StripSpace(name).empty()) names_.emplace_back(StripSpace(name));
    }
  }
  bool Takes(std::string_view name) const {
    const bool listed = std::any_of(names_.begin(), names_.end(), [&](const std::string& part) {
      return exact_ ? name == part : StartsWith(name, part);
    });
    return listed != excludes_;
  }

 private:
  bool excludes_ = false, exact_ = false;
  std::vector<std::string> names_;
};

bool IsLastResort(const Interface& interface) {
  return interface.loopback || StartsWith(interface.name, "docker");
}

}  // namespace

Result<std::vector<Interface>> InterfacesOfThisMachine() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0)
    return Unavailable("E-rendezvous-interfaces", "network interfaces: ", std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::vector<Interface> all;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != family || (at->ifa_flags & IFF_UP) == 0)
        continue;
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      char host[NI_MAXHOST];
      if (getnameinfo(at->ifa_addr, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) continue;
      // A link-local address can be used only together with its interface's name.
      if (std::strchr(host, '%') != nullptr) continue;
      all.push_back({.name = at->ifa_name, .address = host, .loopback = (at->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return all;
}

Result<std::string> ChooseHost(std::span<const Interface> interfaces, const Environment& environment) {
  const bool own = !environment("PENSTOCK_IFNAME").empty();
  const char* variable = own ? "PENSTOCK_IFNAME" : "NCCL_SOCKET_IFNAME";
  const std::string text = environment(variable);
  const NameList names(text);
  for (const bool last_resort : {false, true}) {
    for (const Interface& interface : interfaces) {
      const bool takes = text.empty() ? IsLastResort(interface) == last_resort : names.Takes(interface.name);
      if (takes) return interface.address;
    }
  }
  std::vector<std::string> there;
  for (const Interface& interface : interfaces)
    there.push_back(StrCat(interface.name, " (", interface.address, ")"));
  const std::string have = there.empty() ? std::string("none") : Join(there, ", ");
  if (text.empty()) return InvalidArgument("E-rendezvous-interface", "no network interface is up");
  return InvalidArgument("E-rendezvous-interface", variable, "=", text,
                         " fits no network interface; there is ", have);
}

Result<std::string> AddressOf(const std::string& endpoint, std::span<const Interface> interfaces,
                              const Environment& environment) {
  const std::string host = transport::HostOf(endpoint);
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos)
    return InvalidArgument("E-rendezvous-facts", "address ", Quote(endpoint), " is not host:port");
  if (!host.empty() && host != "0.0.0.0" && host != "::") return endpoint;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string chosen, ChooseHost(interfaces, environment));
  const bool is_v6 = chosen.find(':') != std::string::npos;
  return StrCat(is_v6 ? "[" : "", chosen, is_v6 ? "]" : "", endpoint.substr(colon));
}

}  // namespace penstock::rendezvous
