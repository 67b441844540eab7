// The gate of a server: it listens, lets each connection prove the job's token (proof.h), and hands on the
// sockets of those who did. What has not proved costs a descriptor and some hundred bytes, for a few seconds.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Gate> gate, Gate::Open("10.0.0.1:6174", options));
//   PENSTOCK_RETURN_IF_ERROR(gate->Start({.grpc = [&](Descriptor socket) { ... }}));
//   ... a stream opens:     const std::optional<std::string> id = gate->Claim(pass);
//   ... its hello is good:  gate->Admit(*id);
//   ... it is over:         gate->Leave(*id);
//
// With GateOptions::local it also listens on a unix socket, whose name its challenges carry. Processes of
// this host and user come in there, by the same proof and within the same bounds.
//
// gRPC 1.51 gives its listening socket up for good when accept fails once (no descriptors left), reads what
// anybody sends, and bounds neither connections nor their time; so it listens to nothing itself here. The
// number of connections stays below the descriptors of this process; where they run out all the same,
// connections wait in the kernel's queue until there are some again.
//
// Thread-safe, but for Start and Stop.
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

// What a connection that is not admitted may send, all together.
inline constexpr std::size_t kStrangerBytesMax = std::size_t{64} << 10;

struct GateOptions {
  std::string token;
  bool tls = false;  // what the server speaks with those who have proved
  // For the proof, and again until the hello is accepted.
  Nanoseconds patience = std::chrono::seconds(5);
  std::function<void(const std::string&)> report;  // lines for the user; strangers cause few of them
  bool local = false;  // whether to offer a unix socket to processes of this host; never with TLS
};

class Gate {
 public:
  // Listens, and answers nobody yet. kUnavailable E-rpc-bind: the address is in use or not this machine's.
  // kFailedPrecondition E-rpc-token-missing: without a token others than this machine would be listened to.
  static Result<std::unique_ptr<Gate>> Open(const std::string& address, GateOptions options);
  ~Gate() { Stop(); }

  // Each gets the connections that have proved, from a thread of the gate.
  struct Ways {
    std::function<void(Descriptor)> grpc;
    // Already claimed, by the id: those that came by the unix socket; and those of which bodies follow
    // (tcp_stream.h).
    std::function<void(Descriptor, const std::string&id)> local = {}, bodies = {};
  };
  Status Start(Ways ways);
  void Stop();

  // Whether the pass is that of a connection that has entered and whose stream has not been seen yet: its id.
  std::optional<std::string> Claim(std::string_view pass);
  // The time limit ends.
  void Admit(const std::string& id);
  // The stream is over; a little later, so is the connection.
  void Leave(const std::string& id);

 private:
  struct Waiting {  // it has not entered
    Descriptor socket;
    std::string who;
    Nanoseconds since;
    Nonces nonces;
    std::string answer;
    bool proved = false;
    bool local = false;  // it came by the unix socket
    Follows follows = Follows::kRecords;
  };
  struct Guest {
    Descriptor handle;  // a second one of its socket, by which the connection can be ended
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
  bool Read(Waiting& waiting);  // false: it is out
  bool CheckAnswer(Waiting& waiting);
  void Sweep();
  bool TryEnter(Waiting& waiting);  // false: it has to wait on
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
  std::string server_id_;  // what every nonce begins with
  Descriptor wake_;
  std::deque<Waiting> waiting_;
  std::optional<Nanoseconds> short_since_;  // no descriptors

  std::mutex mutex_;
  bool stop_ = false;
  std::map<std::string, Guest, std::less<>> guests_;  // by id; the gate's thread alone erases
  std::thread thread_;
};

}  // namespace penstock::transport
