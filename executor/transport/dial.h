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
  bool tls = false;                                // whether this side requires TLS
  bool local = false;                              // whether it uses the unix socket of a server on this host
  Follows follows = Follows::kRecords;             // on a socket that is not local
  Nanoseconds patience = std::chrono::seconds(5);  // to connect and prove
};

struct Dialed {
  Descriptor socket;   // ready for what was agreed
  std::string pass;    // to be shown by the stream
  bool local = false;  // a unix socket: continue with LocalLink
};

// Makes one attempt; `wake` (an eventfd) ends it early: kCancelled.
//
// kUnavailable: E-rpc-connect (nothing listens or answers there), E-rpc-route, E-rpc-resolve, E-rpc-full: a
// retry may succeed. kFailedPrecondition: E-rpc-token (the other side has another token, or does not know
// ours), E-rpc-token-missing (there is no token, and the server is on another machine), E-rpc-tls (only one
// side uses TLS), E-rpc-protocol: a retry is useless.
Result<Dialed> Dial(const std::string& address, const DialOptions& options, int wake);

}  // namespace penstock::transport
