// Single calls over gRPC, as a service of somebody else's protocol has them: a request, then a reply or an
// error. It knows no protocol: service, methods and bytes are the caller's.
//
//   const UnaryServerOptions options{.service = "sendrecv.SendRecvService", .methods = {"GetVariable"}};
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, ListenUnary("127.0.0.1:6174", handler, options));
//   auto client = MakeUnaryClient("127.0.0.1:6174", "sendrecv.SendRecvService");
//   client->Call("GetVariable", request, 180s, [](Result<UnaryReply> reply) { ... });
//
// Cleartext, by gRPC's own listening socket, with no proof of who calls: for the protocols that have none.
// Messages may be as large as gRPC takes them (2 GiB); their bytes are shared, not copied.
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

// A call may succeed without any message: then its response has trailers only. An empty message is a message.
using UnaryReply = std::optional<Payload>;
using UnaryDone = std::function<void(Result<UnaryReply>)>;

class UnaryHandler {
 public:
  virtual ~UnaryHandler() = default;
  // Gets each call, from any thread, several at a time; must not wait. `done` may be called at once or later,
  // from any thread; calls after the first do nothing, and a call whose `done` is dropped unanswered fails.
  // `caller` is the address of the other side. A request whose client has given up is handled like any other.
  virtual void OnCall(const std::string& caller, const std::string& method, Payload request,
                      UnaryDone done) = 0;
};

struct UnaryServerOptions {
  std::string service;
  std::vector<std::string> methods;                // others are UNIMPLEMENTED
  std::function<void(const std::string&)> report;  // default: a log line
};

// Serves until the listener is destroyed: calls that are not answered by then fail with kUnavailable, and no
// call of the handler is running or will come. On an address that is not this machine's alone one warning
// says that anybody may call. kUnavailable E-rpc-bind, kInvalidArgument E-rpc-address.
Result<std::unique_ptr<Listener>> ListenUnary(const std::string& address, UnaryHandler& handler,
                                              const UnaryServerOptions& options);

// One connection, shared by all calls. Thread-safe.
class UnaryClient {
 public:
  virtual ~UnaryClient() = default;
  // Returns at once; `done` is called once, from any thread, and never inside Call. A server that is not
  // there is waited for. The request's bytes stay as they are until `done`.
  //
  // kUnavailable E-rpc-unavailable: the connection broke, or the server says so. kDeadlineExceeded
  // E-rpc-deadline. kCancelled E-rpc-cancelled: by Cancel. kFailedPrecondition E-rpc-refused: any other
  // answer, with its code and text.
  virtual void Call(const std::string& method, const Payload& request, Nanoseconds timeout,
                    UnaryDone done) = 0;
  // Ends all calls, now and later.
  virtual void Cancel() = 0;
};

// Destroying it cancels what is under way and waits until every `done` has returned.
std::unique_ptr<UnaryClient> MakeUnaryClient(const std::string& address, const std::string& service);

}  // namespace penstock::transport
