// The server's connections with processes of its host: a thread each (local_link.h).
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "executor/transport/descriptor.h"
#include "executor/transport/gate.h"
#include "executor/transport/local_link.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

class LocalServer {
 public:
  LocalServer(ConnectionHandler& handler, Gate& gate) : handler_(handler), gate_(gate) {}
  // Ends every connection; after this the handler is not called any more. The gate has stopped.
  ~LocalServer();

  // A connection that has passed the gate. Called by one thread at a time.
  void Enter(Descriptor socket, const std::string& id);

 private:
  struct Guest {
    std::shared_ptr<LocalLink> link;
    std::atomic<bool> over = false;
    std::thread thread;
  };
  void DropOver();

  ConnectionHandler& handler_;
  Gate& gate_;
  std::list<Guest> guests_;
};

}  // namespace penstock::transport
