// The server's connections with processes of its host, one thread each (local_link.h).
#pragma once

#include <string>

#include "executor/transport/descriptor.h"
#include "executor/transport/gate.h"
#include "executor/transport/guest_threads.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

class LocalServer {
 public:
  // The destructor ends every connection; afterwards the handler is not called any more. Stop the gate first.
  LocalServer(ConnectionHandler& handler, Gate& gate) : handler_(handler), gate_(gate) {}

  // Takes a connection that has passed the gate. Call from one thread at a time.
  void Enter(Descriptor socket, const std::string& id);

 private:
  ConnectionHandler& handler_;
  Gate& gate_;
  GuestThreads threads_;
};

}  // namespace penstock::transport
