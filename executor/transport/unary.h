// Single calls over gRPC for the protocols of other services: a request, then a reply or an error.
// Independent of the protocol: the caller gives service, methods and bytes.
//
//   const UnaryServerOptions options{.service = "sendrecv.SendRecvService", .methods = {"GetVariable"}};
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, ListenUnary("127.0.0.1:6174", handler, options));
//   auto client = MakeUnaryClient("127.0.0.1:6174", "sendrecv.SendRecvService");
//   client->Call("GetVariable", request, 180s, [](Result<UnaryReply> reply) { ... });
//
// The calls are cleartext, use gRPC's own listening socket and prove nothing about the caller: they are for
// protocols without authentication. Messages may have gRPC's maximum size (2 GiB); their bytes are shared,
// not copied.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

// A call may succeed without a message: then its response has only trailers. An empty message is a message.
using UnaryReply = std::optional<Payload>;
using UnaryDone = std::function<void(Result<UnaryReply>)>;

class UnaryHandler {
 public:
  virtual ~UnaryHandler() = default;
  // Handles each call, from any thread, several at a time; must not wait. `done` may be called at once or
  // later, from any thread; only its first call counts, and a call whose `done` is destroyed unused fails.
  // `caller` is the address of the peer. A request whose client has given up is handled like any other.
  virtual void OnCall(const std::string& caller, const std::string& method, Payload request,
                      UnaryDone done) = 0;
};

struct UnaryServerOptions {
  std::string service;
  std::vector<std::string> methods;                // other methods return UNIMPLEMENTED
  std::function<void(const std::string&)> report;  // default: a log line
};

// Serves until the listener is destroyed: calls not answered by then fail with kUnavailable, and no call of
// the handler is running or will come. Warns once if the address is reachable from other machines, because
// anyone may call. kUnavailable E-rpc-bind, kInvalidArgument E-rpc-address.
Result<std::unique_ptr<Listener>> ListenUnary(const std::string& address, UnaryHandler& handler,
                                              const UnaryServerOptions& options);

// One connection, shared by all calls. Thread-safe.
class UnaryClient {
 public:
  virtual ~UnaryClient() = default;
  // Returns at once; `done` is called once, from any thread, and never inside Call. Waits for a server that
  // is not there yet. The request's bytes must not change until `done`.
  //
  // kUnavailable E-rpc-unavailable: the connection broke, or the server says so. kDeadlineExceeded
  // E-rpc-deadline. kCancelled E-rpc-cancelled: by Cancel. kFailedPrecondition E-rpc-refused: any other
  // error, with its code and text.
  virtual void Call(const std::string& method, const Payload& request, Nanoseconds timeout,
                    UnaryDone done) = 0;
  // Ends all calls, present and future.
  virtual void Cancel() = 0;
};

// Its destructor cancels calls in progress and waits until every `done` has returned.
std::unique_ptr<UnaryClient> MakeUnaryClient(const std::string& address, const std::string& service);

}  // namespace penstock::transport
