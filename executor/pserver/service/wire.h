// The wire by which trainers reach a server: listens at its address and turns what arrives into events.
//
//   FluidWire wire("my job", report);
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, wire.Listen(served, *pserver));
//
// A job uses one wire: a server supports the one it was given, and no other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/pserver/service/service.h"
#include "framework/base/status.h"
#include "framework/roles/pserver_facts.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

// The facts about the server that a wire without a hello needs.
struct Served {
  roles::PserverFacts role;
  int backup_trainers = 0;
  bool row_policies = false;                            // of a table
  std::vector<Dim> chunk_rows = {};                     // by param
  std::function<void(std::function<void()>)> run = {};  // runs work later, never inside the call
};

class Wire {
 public:
  virtual ~Wire() = default;
  // Passes what arrives at the server's address to `handler`, until the result is destroyed.
  // kUnavailable E-rpc-bind.
  virtual Result<std::unique_ptr<Listener>> Listen(Served served, EventHandler& handler) = 0;
  // How a server connects to others. Null: not possible on this wire; Listen refuses servers that need it.
  virtual std::unique_ptr<Dialer> MakeDialer() = 0;
  // Whether a peer says with which program it works, so that several can be served at one address.
  virtual bool TellsProgramsApart() const { return false; }
  // Whether messages name the shard of a table.
  virtual bool CarriesShards() const { return false; }
};

// Our wire. The transport must outlive it.
class NativeWire : public Wire {
 public:
  explicit NativeWire(Transport& transport) : transport_(transport) {}
  Result<std::unique_ptr<Listener>> Listen(Served served, EventHandler& handler) override;
  std::unique_ptr<Dialer> MakeDialer() override;
  bool TellsProgramsApart() const override { return true; }
  bool CarriesShards() const override { return true; }

 private:
  Transport& transport_;
};

// Fluid's wire. Parts of a chunk are FluidService::kPartBytes large, and there is no credit. Listen returns
// kUnimplemented: E-server-mode for a server of geo-SGD; E-contract-policy for a server with backup trainers
// (the phases would wait for them), with clipping by a norm over all gradients, or with compressed
// gradients.
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
