#include "executor/pserver/service/wire.h"

#include <utility>

#include "executor/pserver/service/fluid_service.h"
#include "executor/pserver/service/native_dialer.h"
#include "executor/pserver/service/native_service.h"
#include "executor/transport/unary.h"
#include "framework/text/policies.h"

namespace penstock::pserver {
namespace {

// A listener and its service, which outlives it.
template <typename Service>
class ServiceListener : public Listener {
 public:
  ServiceListener(std::shared_ptr<Service> service, std::unique_ptr<Listener> listener)
      : service_(std::move(service)), listener_(std::move(listener)) {}

 private:
  const std::shared_ptr<Service> service_;
  const std::unique_ptr<Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<Listener>> NativeWire::Listen(Served served, EventHandler& handler) {
  auto service = std::make_shared<NativeService>(handler);
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener,
                            transport_.Listen(served.role.address, *service));
  return std::unique_ptr<Listener>(
      std::make_unique<ServiceListener<NativeService>>(std::move(service), std::move(listener)));
}

std::unique_ptr<Dialer> NativeWire::MakeDialer() { return std::make_unique<NativeDialer>(transport_); }

Result<std::unique_ptr<Listener>> FluidWire::Listen(Served served, EventHandler& handler) {
  const std::string address = served.role.address;
  if (served.role.mode == roles::ServeMode::kGeo) {
    return Unimplemented("E-server-mode", "listen_and_serv asks for distributed_mode ",
                         static_cast<int>(served.role.mode),
                         "; on Fluid's wire 0 (sync), 1 and 2 (async) run so far")
        .With("leave PENSTOCK_WIRE out if the trainers are Penstock's too");
  }
  const auto refused = [](const char* policy) {
    return Unimplemented("E-contract-policy", policy, " does not run on Fluid's wire; transpile without it, ",
                         "or use the native wire");
  };
  if (served.backup_trainers > 0) return refused(kBackupTrainersPolicy);
  if (served.row_policies) return refused(kRowsPolicy);
  for (const roles::ServedParam& param : served.role.params) {
    if (param.clips) return refused("clip=global by a norm over all gradients");
    if (!param.compression.none()) return refused(kCompressionPolicy);
  }
  auto service = std::make_shared<FluidService>(handler, std::move(served), job_);
  transport::UnaryServerOptions options = FluidService::Calls();
  options.report = report_;
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener,
                            transport::ListenUnary(address, *service, options));
  report_(StrCat("pserver ", address,
                 " uses Fluid's wire, which has no exactly-once delivery: a message that a trainer ",
                 "repeats after its connection broke may count twice"));
  return std::unique_ptr<Listener>(
      std::make_unique<ServiceListener<FluidService>>(std::move(service), std::move(listener)));
}

}  // namespace penstock::pserver
