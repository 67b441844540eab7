// The server's connections with processes of its host: a thread each (local_link.h).
#pragma once

#include <string>

#include "executor/transport/descriptor.h"
#include "executor/transport/gate.h"
#include "executor/transport/guest_threads.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

class LocalServer {
 public:
  // Its end ends every connection; after that the handler is not called any more. The gate has stopped by
  // then.
  LocalServer(ConnectionHandler& handler, Gate& gate) : handler_(handler), gate_(gate) {}

  // A connection that has passed the gate. Called by one thread at a time.
  void Enter(Descriptor socket, const std::string& id);

 private:
  ConnectionHandler& handler_;
  Gate& gate_;
  GuestThreads threads_;
};

}  // namespace penstock::transport
