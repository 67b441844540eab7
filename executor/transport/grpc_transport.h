// The transport between processes. On one host: records over a unix socket, large bodies by shared memory
// (local_link.h). Between hosts, with TLS and by choice: one bidirectional stream of gRPC's generic service
// per connection, messages as ByteBuffers that share the tensors' memory. Keepalive pings find a dead host
// within 15 s; a dead process is found at once, and a slow one never is.
//
// Who connects proves the job's token first, and learns that the server knows it (proof.h, gate.h):
// handlers see only what comes from those who did. Without a token the proof is worth nothing, and only
// addresses of this machine are served. Until the handler admits a connection (Connection::Admit) it may
// send 64 KB, for 5 s.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

// Files in PEM; empty: there is none.
struct TlsFiles {
  std::string cert, key;  // a server's; with `mutual`, a client's too
  std::string ca;         // what clients check servers with; with `mutual`, servers clients too
  bool mutual = false;

  // PENSTOCK_TLS_CERT, PENSTOCK_TLS_KEY, PENSTOCK_TLS_CA, PENSTOCK_TLS_MUTUAL (1: true).
  static TlsFiles FromEnvironment();
};

enum class Carrier {
  kAuto,  // a unix socket and shared memory where both processes are of one host and user, else TCP
  kTcp,
};
// "" and "auto", "tcp". kInvalidArgument E-rpc-transport.
Result<Carrier> CarrierOf(const std::string& text);

struct GrpcTransportOptions {
  std::string token;  // the job's secret; empty: none
  TlsFiles tls;
  Nanoseconds patience = std::chrono::seconds(5);  // with those who have not said who they are
  std::function<void(const std::string&)> report;  // default: a line on standard error
  Carrier carrier = Carrier::kAuto;
  // That a client opens to a server over TCP, once a body of 256 KB or more has come or gone. Without TLS
  // there is one more at most.
  int streams = 2;
  std::function<void(const std::string&)> tell;  // how each connection is carried; default: a log line
  std::string peer = "pserver";                  // what lines call the other side of a connection
};

// A connection that cannot come about for a reason that will not go away by itself is closed with it:
// kFailedPrecondition E-rpc-token, E-rpc-token-missing, E-rpc-tls, E-rpc-protocol; kInvalidArgument
// E-rpc-tls-files, E-rpc-address.
std::unique_ptr<Transport> MakeGrpcTransport(GrpcTransportOptions options);

}  // namespace penstock::transport
