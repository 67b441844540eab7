// The address at which other ranks reach this process, where its endpoint does not say: the first address of
// the network interface that the environment chooses.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Interface> all, InterfacesOfThisMachine());
//   PENSTOCK_ASSIGN_OR_RETURN(std::string host, ChooseHost(all, ProcessEnvironment()));    // "10.0.0.2"
//
// PENSTOCK_IFNAME, or else NCCL_SOCKET_IFNAME, in NCCL's words: a list of prefixes of names, "eth,ib". A list
// that begins with "^" is of interfaces that are not taken; "=" (or "^=") compares whole names. Without a
// list any interface will do; loopback and docker's only if there is no other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/collective/rendezvous/environment.h"
#include "framework/base/status.h"

namespace penstock::rendezvous {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.2", "fd00::2"
  bool loopback = false;
};

// Those that are up, an entry for each address, those of IPv4 first; link-local addresses are left out.
// kUnavailable E-rendezvous-interfaces: the system does not say.
Result<std::vector<Interface>> InterfacesOfThisMachine();

// kInvalidArgument E-rendezvous-interface: none fits; says which there are.
Result<std::string> ChooseHost(std::span<const Interface> interfaces, const Environment& environment);

// `endpoint` with a host: that of it, or the chosen one where it has none or means every address of a
// machine ("", "0.0.0.0", "[::]").
Result<std::string> AddressOf(const std::string& endpoint, std::span<const Interface> interfaces,
                              const Environment& environment);

}  // namespace penstock::rendezvous
