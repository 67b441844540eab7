// The transport between processes. On one host: records over a unix socket, large bodies through shared
// memory (local_link.h). Between hosts, with TLS, or by choice: one bidirectional stream of gRPC's generic
// service per connection, with messages as ByteBuffers that share the tensors' memory. Keepalive pings find a
// dead host within 15 s. A dead process is detected at once, and a slow one is never mistaken for dead.
//
// A client first proves the job's token, and verifies that the server knows it (proof.h, gate.h): handlers
// see only proven peers. Without a token the proof means nothing, and only addresses of this machine are
// served. Until the handler admits a connection (Connection::Admit), it may send 64 KB, within 5 s.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

// PEM files; empty: none.
struct TlsFiles {
  std::string cert, key;  // a server's; with `mutual`, a client's too
  std::string ca;         // clients verify servers with it and, with `mutual`, servers verify clients
  bool mutual = false;

  // Reads PENSTOCK_TLS_CERT, PENSTOCK_TLS_KEY, PENSTOCK_TLS_CA, PENSTOCK_TLS_MUTUAL (1: true).
  static Result<TlsFiles> FromEnvironment();  // kInvalidArgument E-environment
};

enum class Carrier {
  kAuto,  // a unix socket and shared memory if both processes have one host and user, else TCP
  kTcp,
};
// "" or "auto": kAuto; "tcp": kTcp. kInvalidArgument E-rpc-transport.
Result<Carrier> CarrierOf(const std::string& text);

struct GrpcTransportOptions {
  std::string token;  // the job's secret; empty: none
  TlsFiles tls;
  Nanoseconds patience = std::chrono::seconds(5);  // with peers that have not identified themselves
  std::function<void(const std::string&)> report;  // default: a line on standard error
  Carrier carrier = Carrier::kAuto;
  // The number of streams that a client opens to a server over TCP, once a body of 256 KB or more was sent or
  // received. Without TLS there may be one more.
  int streams = 2;
  std::function<void(const std::string&)> tell;  // logs the carrier of each connection; default: a log line
  std::string peer = "pserver";                  // the other side's name in log lines
};

// A connection that can never be established is closed with the reason: kFailedPrecondition E-rpc-token,
// E-rpc-token-missing, E-rpc-tls, E-rpc-protocol; kInvalidArgument E-rpc-tls-files, E-rpc-address.
std::unique_ptr<Transport> MakeGrpcTransport(GrpcTransportOptions options);

}  // namespace penstock::transport
