// Carries bytes between a socket that has passed a server's gate and gRPC's own TLS client. That client can
// only connect by itself, so it connects to a socket of this process.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"

namespace penstock::transport {

class Relay {
 public:
  // Accepts one connection, of this user, at target() within 10 s.
  static Result<std::unique_ptr<Relay>> Start(Descriptor remote);
  // Ends both connections.
  ~Relay();

  const std::string& target() const { return target_; }  // "unix-abstract:..."

 private:
  Relay() = default;
  void Run();

  Descriptor remote_, listener_, local_, stop_;
  std::string target_;
  std::thread thread_;
};

}  // namespace penstock::transport
