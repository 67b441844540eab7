// The client's part of the transport: a connection dials until the server is there, and is a gRPC stream
// then.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/transport/grpc_transport.h"

namespace penstock::transport {

// The client streams of one transport. What is over is kept here until the transport takes it down: the last
// owner of a channel must not be one of gRPC's own threads, which would have to wait for itself, nor outlive
// the process's main.
class ClientStreams {
 public:
  void Begin();
  void End(std::shared_ptr<Connection> stream);
  std::vector<std::shared_ptr<Connection>> TakeOver();
  void WaitForAll();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int live_ = 0;
  std::vector<std::shared_ptr<Connection>> over_;
};

std::shared_ptr<Connection> ConnectByGrpc(const std::string& address, ConnectionHandler& handler,
                                          const GrpcTransportOptions& options,
                                          const std::shared_ptr<ClientStreams>& streams);

}  // namespace penstock::transport
