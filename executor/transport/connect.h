// The client's part of the transport: a connection dials until the server answers. Then it runs over a unix
// socket and shared memory on one host (local_link.h), over gRPC otherwise (grpc_connect.h).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/transport/grpc_transport.h"

namespace penstock::transport {

// The client connections of one transport. Keeps ended connections until the transport destroys them: the
// last owner of a channel must not be one of gRPC's own threads, which would wait for itself, and must not
// outlive the process's main.
class ClientConnections {
 public:
  void Begin();
  void End(std::shared_ptr<Connection> connection);
  std::vector<std::shared_ptr<Connection>> TakeOver();
  void WaitForAll();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int live_ = 0;
  std::vector<std::shared_ptr<Connection>> over_;
};

// Returns a connection that dials `address` in the background until the server answers.
std::shared_ptr<Connection> ConnectTo(const std::string& address, ConnectionHandler& handler,
                                      const GrpcTransportOptions& options,
                                      const std::shared_ptr<ClientConnections>& connections);

}  // namespace penstock::transport
