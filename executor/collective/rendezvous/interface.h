// The address at which other ranks reach this process if its endpoint has none: the first address of the
// network interface that the environment selects.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Interface> all, InterfacesOfThisMachine());
//   PENSTOCK_ASSIGN_OR_RETURN(std::string host, ChooseHost(all, ProcessEnvironment()));    // "10.0.0.2"
//
// PENSTOCK_IFNAME, or else NCCL_SOCKET_IFNAME, in NCCL's syntax: a list of name prefixes, "eth,ib". A list
// that begins with "^" excludes interfaces; "=" (or "^=") compares whole names. Without a list any interface
// qualifies; loopback and docker's only if there is no other.
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

// The interfaces that are up, one entry per address, IPv4 first; without link-local addresses.
// kUnavailable E-rendezvous-interfaces: the system cannot list them.
Result<std::vector<Interface>> InterfacesOfThisMachine();

// kInvalidArgument E-rendezvous-interface: no interface matches; the message lists them.
Result<std::string> ChooseHost(std::span<const Interface> interfaces, const Environment& environment);

// `endpoint` with a host: its own, or the chosen one if it has none or stands for every address of the
// machine ("", "0.0.0.0", "[::]").
Result<std::string> AddressOf(const std::string& endpoint, std::span<const Interface> interfaces,
                              const Environment& environment);

}  // namespace penstock::rendezvous
