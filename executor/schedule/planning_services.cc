#include "executor/schedule/planning_services.h"

#include <omp.h>

#include <string>
#include <vector>

#include "executor/schedule/executor.h"
#include "framework/runtime/collective_rings.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/server_loop.h"

namespace penstock::exec {
namespace {

Status OnlyPlanned() { return InternalError("E-plan-run", "a plan that was made to be looked at was run"); }

class PlannedClient : public RpcClient {
 public:
  Status Attach(const Program&) override { return OkStatus(); }
  Result<PushHandle> DeclarePush(const RemotePiece&) override { return PushHandle{0}; }
  Result<PullHandle> DeclarePull(const RemotePiece&) override { return PullHandle{0}; }
  Result<RowsHandle> DeclareRows(const RemotePiece&) override { return RowsHandle{0}; }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return PeersHandle{0}; }
  bool PullsNext() const override { return true; }
  bool LeavesPulls() const override { return true; }

  Status Push(PushHandle, const Variable&) override { return OnlyPlanned(); }
  Status EndStep(PeersHandle) override { return OnlyPlanned(); }
  Status Pull(PullHandle, Variable&) override { return OnlyPlanned(); }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return OnlyPlanned(); }
  Status CompleteRows() override { return OnlyPlanned(); }
  Status CompletePulls(PeersHandle) override { return OnlyPlanned(); }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return OnlyPlanned();
  }
  Status Complete() override { return OkStatus(); }
  void Cancel() override {}
};

class PlannedRings : public CollectiveRings {
 public:
  Status Join(const std::vector<std::string>&, int) override { return OnlyPlanned(); }
  Status MakeRing(int, int) override { return OnlyPlanned(); }
  Status MakeOwnRing(int) override { return OnlyPlanned(); }
  Status Begin(const Program&, int, std::string_view) override { return OnlyPlanned(); }
  Result<CollectiveGroup*> Ring(int) override { return OnlyPlanned(); }

 protected:
  void AbortAll(const Status&) override {}
  void AbortRing(int, const Status&) override {}
};

class PlannedServer : public ServerLoop {
 public:
  Status Serve(const Program&, const Op&, Scope&) override { return OnlyPlanned(); }
  void Cancel() override {}
};

}  // namespace

struct PlanningServices::Stand {
  explicit Stand(const OpRegistry& ops) : blocks(ops, {.rpc = &client, .server = &server, .rings = &rings}) {
    services.threads = omp_get_max_threads();  // as an executor by default: kernels divide their workspace
    services.blocks = &blocks;
    services.rpc = &client;
    services.server = &server;
    services.rings = &rings;
  }

  PlannedClient client;
  PlannedServer server;
  PlannedRings rings;
  Executor blocks;
  Services services;
};

PlanningServices::PlanningServices(const OpRegistry& ops) : stand_(std::make_unique<Stand>(ops)) {}
PlanningServices::~PlanningServices() = default;

const Services& PlanningServices::services() const { return stand_->services; }

}  // namespace penstock::exec
