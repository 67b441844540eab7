// The server's streams for large bodies, one thread each (tcp_stream.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/transport/descriptor.h"
#include "executor/transport/gate.h"
#include "executor/transport/guest_threads.h"
#include "executor/transport/peer_connection.h"

namespace penstock::transport {

class BodiesServer {
 public:
  // Finds the connection whose first stream has this pass, if it may have more streams; else returns null.
  using Find = std::function<std::shared_ptr<PeerConnection>(const std::string& lead)>;
  // The destructor ends every stream. Stop the gate first.
  BodiesServer(Gate& gate, Find find) : gate_(gate), find_(std::move(find)) {}

  // Takes a socket that has passed the gate. Call from one thread at a time.
  void Enter(Descriptor socket, const std::string& id);

 private:
  class Guest;

  Gate& gate_;
  const Find find_;
  GuestThreads threads_;
};

}  // namespace penstock::transport
