// The wire by which trainers reach a server: what listens at its address, and makes events of what arrives.
//
//   FluidWire wire("my job", report);
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, wire.Listen(served, *pserver));
//
// One job, one wire: a server speaks that which it was given, and registers no other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/pserver/service.h"
#include "framework/base/status.h"
#include "framework/roles/server_role.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

// What a wire without a hello must know of the server itself.
struct Served {
  roles::ServerRole role;
  int backup_trainers = 0;
  std::vector<Dim> chunk_rows = {};                     // by param
  std::function<void(std::function<void()>)> run = {};  // runs a piece of work later, never inside the call
};

class Wire {
 public:
  virtual ~Wire() = default;
  // Hands what arrives at the server's address to `handler`, until the result is destroyed.
  // kUnavailable E-rpc-bind.
  virtual Result<std::unique_ptr<Listener>> Listen(Served served, EventHandler& handler) = 0;
  // How a server calls others. Null: servers do not on this wire, and Listen refuses one that would.
  virtual std::unique_ptr<Dialer> MakeDialer() = 0;
};

// Ours. The transport outlives it.
class NativeWire : public Wire {
 public:
  explicit NativeWire(Transport& transport) : transport_(transport) {}
  Result<std::unique_ptr<Listener>> Listen(Served served, EventHandler& handler) override;
  std::unique_ptr<Dialer> MakeDialer() override;

 private:
  Transport& transport_;
};

// Fluid's. Parts of a chunk are FluidService::kPartBytes large on it, and no calls tell of credit.
// kUnimplemented: E-server-mode, a server of geo-SGD; E-contract-policy, one with backup trainers, for whom
// its phases would wait, and one that clips by a norm over all gradients.
class FluidWire : public Wire {
 public:
  FluidWire(std::string job, std::function<void(const std::string&)> report)
      : job_(std::move(job)), report_(std::move(report)) {}
  Result<std::unique_ptr<Listener>> Listen(Served served, EventHandler& handler) override;
  std::unique_ptr<Dialer> MakeDialer() override { return nullptr; }

 private:
  const std::string job_;
  const std::function<void(const std::string&)> report_;
};

}  // namespace penstock::pserver
