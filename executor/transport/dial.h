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
  bool local = false;                              // whether to use the unix socket of a server on this host
  Follows follows = Follows::kRecords;             // what follows on a socket that is not local
  Nanoseconds patience = std::chrono::seconds(5);  // to connect and prove
};

struct Dialed {
  Descriptor socket;   // ready for the agreed stream
  std::string pass;    // the stream must show it
  bool local = false;  // a unix socket: continue with LocalLink
};

// Makes one attempt. `wake` (an eventfd) ends it early: kCancelled.
//
// kUnavailable, a retry may succeed: E-rpc-connect (nothing listens or answers there), E-rpc-route,
// E-rpc-resolve, E-rpc-full. kFailedPrecondition, a retry is useless: E-rpc-token (the other side has another
// token), E-rpc-token-missing (there is no token, and the server is on another machine), E-rpc-tls (only one
// side uses TLS), E-wire-differs (the server speaks Fluid's wire), E-rpc-protocol.
Result<Dialed> Dial(const std::string& address, const DialOptions& options, int wake);

// For a client of another protocol that gets no answer: kFailedPrecondition E-wire-differs if a server of the
// native wire listens at the address, which greets every connection. Waits for at most `patience`; ok if it
// cannot tell.
Status RequireNotNative(const std::string& address, Nanoseconds patience);

}  // namespace penstock::transport
