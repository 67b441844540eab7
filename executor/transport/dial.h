// The client's end of a gate: connects to a server and proves the job's token (proof.h).
#pragma once

#include <chrono>
#include <string>

#include "executor/transport/descriptor.h"
#include "executor/transport/proof.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::transport {

struct DialOptions {
  std::string token;
  bool tls = false;                     // whether this side wants TLS
  bool local = false;                   // whether it takes the unix socket of a server on this host
  Follows follows = Follows::kRecords;  // on a socket that is not local
  Nanoseconds patience = std::chrono::seconds(5);  // to connect and prove
};

struct Dialed {
  Descriptor socket;   // what was said follows
  std::string pass;    // the stream shows it
  bool local = false;  // a unix socket: LocalLink comes next
};

// One attempt; `wake` (an eventfd) ends it early: kCancelled.
//
// kUnavailable: E-rpc-connect (nobody listens there, or nobody answers), E-rpc-route, E-rpc-resolve,
// E-rpc-full: it may be different later. kFailedPrecondition: E-rpc-token (the other side has another token,
// or does not know ours), E-rpc-token-missing (there is none, and the server is on another machine),
// E-rpc-tls (one side alone speaks TLS), E-rpc-protocol: it will not.
Result<Dialed> Dial(const std::string& address, const DialOptions& options, int wake);

}  // namespace penstock::transport
