// The gate of a server: it listens, lets each connection prove the job's token (proof.h), and passes on the
// sockets that did. A connection without proof costs a descriptor and some hundred bytes, for a few seconds.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Gate> gate, Gate::Open("10.0.0.1:6174", options));
//   PENSTOCK_RETURN_IF_ERROR(gate->Start({.grpc = [&](Descriptor socket) { ... }}));
//   ... a stream opens:     const std::optional<std::string> id = gate->Claim(pass);
//   ... its hello is good:  gate->Admit(*id);
//   ... it ends:            gate->Leave(*id);
//
// With GateOptions::local it also listens on a unix socket, whose name its challenges contain. Processes of
// this host and user come in there, with the same proof and limits.
//
// gRPC does not listen itself, because gRPC 1.51 closes its listening socket permanently when accept fails
// once (no descriptors left), reads from any peer, and limits neither connections nor their time. The gate
// keeps the number of connections below the process's descriptors; if these run out anyway, connections wait
// in the kernel's queue.
//
// Thread-safe, except for Start and Stop.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "executor/transport/address.h"
#include "executor/transport/descriptor.h"
#include "executor/transport/proof.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/line_limiter.h"

namespace penstock::transport {

// The total bytes that a connection may send before it is admitted.
inline constexpr std::size_t kStrangerBytesMax = std::size_t{64} << 10;

struct GateOptions {
  std::string token;
  bool tls = false;  // whether the server uses TLS after the proof
  // The time limit for the proof, and again until the hello is accepted.
  Nanoseconds patience = std::chrono::seconds(5);
  std::function<void(const std::string&)> report;  // lines for the user; unknown peers can cause only few
  bool local = false;  // whether to offer a unix socket to processes of this host; never with TLS
};

class Gate {
 public:
  // Listens without answering yet. kUnavailable E-rpc-bind: the address is in use or does not belong to this
  // machine. kFailedPrecondition E-rpc-token-missing: without a token the address must be local.
  static Result<std::unique_ptr<Gate>> Open(const std::string& address, GateOptions options);
  ~Gate() { Stop(); }

  // Functions that receive the connections that have proved the token; called on a thread of the gate.
  struct Ways {
    std::function<void(Descriptor)> grpc;
    // Connections already claimed, with their id: those from the unix socket, and streams for bodies
    // (tcp_stream.h).
    std::function<void(Descriptor, const std::string&id)> local = {}, bodies = {};
  };
  Status Start(Ways ways);
  void Stop();

  // Claims the connection with this pass for its stream, and returns its id; nullopt if no such connection
  // has entered, or it is claimed already.
  std::optional<std::string> Claim(std::string_view pass);
  // Lifts the time limit.
  void Admit(const std::string& id);
  // Tells that the stream has ended; its connection is closed a little later.
  void Leave(const std::string& id);

 private:
  struct Waiting {  // a connection that has not entered
    Descriptor socket;
    std::string who;
    Nanoseconds since;
    Nonces nonces;
    std::string answer;
    bool proved = false;
    bool local = false;  // it uses the unix socket
    Follows follows = Follows::kRecords;
  };
  struct Guest {
    Descriptor handle;  // a duplicate of its socket, used to end the connection
    std::string who;
    std::string pass;
    Nanoseconds since;
    bool claimed = false, admitted = false, leaving = false, ended = false;
  };

  Gate(std::string address, GateOptions options);
  Status Listen(const std::vector<SocketAddress>& addresses);
  void ListenLocally();
  void Run();
  void Wait();
  void Accept(const Descriptor& listener);
  bool OnAcceptError(int error);
  void AcceptLocal();
  void Greet(Descriptor socket, std::string who, bool local);
  bool Read(Waiting& waiting);  // false: refused
  bool CheckAnswer(Waiting& waiting);
  void Sweep();
  bool TryEnter(Waiting& waiting);  // false: it must wait longer
  void SweepGuests();
  void Evict();
  void Refuse(const std::string& who, std::string_view why);
  void Wake();

  const std::string address_;
  const GateOptions options_;
  const std::size_t waiting_max_, guests_max_, newcomers_max_;
  LineLimiter strangers_;
  Ways ways_;
  std::vector<Descriptor> listeners_;
  Descriptor local_listener_;
  std::string server_id_;  // the prefix of every nonce
  Descriptor wake_;
  std::deque<Waiting> waiting_;
  std::optional<Nanoseconds> short_since_;  // out of descriptors since

  std::mutex mutex_;
  bool stop_ = false;
  std::map<std::string, Guest, std::less<>> guests_;  // by id; the gate's thread alone erases
  std::thread thread_;
};

}  // namespace penstock::transport
