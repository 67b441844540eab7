#include "executor/process/grpc_server.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "executor/process/diagnosis.h"
#include "executor/process/launcher.h"
#include "executor/process/start_deadline.h"
#include "executor/process/wire_name.h"
#include "executor/pserver/loop.h"
#include "executor/pserver/service/fluid_service.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/roles/views.h"

namespace penstock::process {
namespace {

// Names the pserver by the launcher's number if there is one, else by its address.
std::string RoleOf(const std::string& address) {
  const std::string number = env::Raw("PADDLE_PSERVER_ID");
  return StrCat("pserver ", number.empty() ? address : number);
}

class GrpcServer : public ServerLoop, public KeyServer {
 public:
  // `transport` is null for Fluid's wire, which has its own.
  GrpcServer(const OpRegistry& ops, BlockRunner& blocks, std::unique_ptr<Transport> transport,
             std::unique_ptr<pserver::Wire> wire, pserver::LoopOptions options)
      : transport_(std::move(transport)),
        wire_(std::move(wire)),
        loop_(*wire_, ops, blocks, std::move(options)) {}

  Status Serve(const Program& program, const Op& op, Scope& scope) override {
    const ServedProgram one{.program = &program, .op = &op};
    return ServeTogether({&one, 1}, scope);
  }
  Status ServeTogether(std::span<const ServedProgram> programs, Scope& scope) override {
    const std::string& address = roles::ServeView(*programs[0].op).address();
    ProposeLogRole(StrCat("pserver ", address));
    Diagnosis& diagnosis = Diagnosis::OfThisProcess();
    diagnosis.Begin(RoleOf(address));
    Status status = loop_.ServeTogether(programs, scope);
    diagnosis.End();
    return status;
  }
  Status ServeKeys(const std::string& address, int workers) override {
    ProposeLogRole(StrCat("pserver ", address));
    Diagnosis& diagnosis = Diagnosis::OfThisProcess();
    diagnosis.Begin(RoleOf(address));
    Status status = loop_.ServeKeys({.address = address, .workers = workers});
    diagnosis.End();
    return status;
  }
  void Cancel() override { loop_.Cancel(); }
  void CancelKeys() override { loop_.Cancel(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<pserver::Wire> wire_;
  pserver::PserverLoop loop_;
};

Result<pserver::TrainerLoss> TrainerLossNamed(const std::string& name, WireName wire) {
  using pserver::TrainerLoss;
  if (name.empty() || name == "abort") return TrainerLoss::kAbort;
  if (name != "wait" && name != "shrink") {
    return InvalidArgument("E-trainer-loss-name", "on_trainer_loss is ", Quote(name),
                           "; it must be wait, shrink or abort");
  }
  if (wire == WireName::kFluid) {
    return Unimplemented("E-trainer-loss-mode", "on Fluid's wire the death of a trainer ends the job")
        .With("leave PENSTOCK_WIRE out, or use on_trainer_loss=abort");
  }
  return name == "wait" ? TrainerLoss::kWait : TrainerLoss::kShrink;
}

}  // namespace

Result<pserver::CheckpointOptions> CheckpointsFromEnvironment(const std::string& job) {
  pserver::CheckpointOptions options;
  options.folder = env::Text("PENSTOCK_CHECKPOINT_DIR");
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> every,
                            env::Integer("PENSTOCK_CHECKPOINT_STEPS"));
  options.every = static_cast<std::uint64_t>(every.value_or(0));
  if (every == 0) {
    options.every = pserver::CheckpointOptions::kNoInterval;
    options.share = 0.03;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> keep,
                            env::Integer("PENSTOCK_KEEP_CHECKPOINTS"));
  if (keep) options.keep = static_cast<int>(*keep);
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> resume, env::Integer("PENSTOCK_RESUME_STEP"));
  if (resume) options.resume = static_cast<std::uint64_t>(*resume);
  if (options.used() && options.folder.empty()) {
    return InvalidArgument("E-checkpoint-folder",
                           "checkpoints are asked for, and PENSTOCK_CHECKPOINT_DIR is not set");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> restarts,
                            env::Integer("PENSTOCK_RESTART_COUNT"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> of_this,
                            env::Integer("PENSTOCK_ROLE_RESTART_COUNT"));
  options.restarts = static_cast<std::uint64_t>(of_this.value_or(0));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> most,
                            env::Integer("PENSTOCK_MAX_ROLE_RESTART"));
  options.restarts_max = static_cast<std::uint64_t>(most.value_or(0));
  options.servers = Split(env::Text("PADDLE_PSERVERS_IP_PORT_LIST"), ',');
  options.run = StrCat(job, ".", restarts.value_or(0), ".", resume.value_or(0));
  return options;
}

Result<communicator::PartOptions> TrainerPartsFromEnvironment() {
  PENSTOCK_ASSIGN_OR_RETURN(pserver::CheckpointOptions options,
                            CheckpointsFromEnvironment(env::Text("PENSTOCK_JOB_ID")));
  if (!options.used()) return communicator::PartOptions();
  communicator::PartOptions parts{.disk = &SystemDisk(),
                                  .folder = std::move(options.folder),
                                  .run = std::move(options.run),
                                  .every = options.share ? 0 : options.every,
                                  .keep = options.keep,
                                  .resume = options.resume};
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> kept, env::Integer("PENSTOCK_RETENTION_MB"));
  if (kept) parts.most_bytes = static_cast<std::size_t>(*kept) << 20;
  return parts;
}

Result<GrpcServerOptions> GrpcServerOptions::FromEnvironment() {
  GrpcServerOptions options;
  options.job = env::Text("PENSTOCK_JOB_ID");
  options.token = env::Text("PENSTOCK_JOB_TOKEN");
  const std::string folder = env::Text("PENSTOCK_CHECKPOINT_DIR");
  if (!folder.empty()) options.checkpoint_folder = folder;
  PENSTOCK_ASSIGN_OR_RETURN(options.checkpoints, CheckpointsFromEnvironment(options.job));
  PENSTOCK_ASSIGN_OR_RETURN(options.tls, transport::TlsFiles::FromEnvironment());
  PENSTOCK_ASSIGN_OR_RETURN(options.start_deadline, StartDeadline());
  PENSTOCK_ASSIGN_OR_RETURN(options.reconnect_deadline, ReconnectDeadline());
  PENSTOCK_ASSIGN_OR_RETURN(options.on_trainer_loss, env::Choice("PENSTOCK_ON_TRAINER_LOSS"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> shards, env::Integer("PENSTOCK_TABLE_SHARDS"));
  if (shards) options.table_shards = static_cast<int>(*shards);
  options.carrier = env::Text("PENSTOCK_TRANSPORT");
  options.wire = env::Text("PENSTOCK_WIRE");
  return options;
}

namespace {

Result<std::unique_ptr<GrpcServer>> MakeServer(const OpRegistry& ops, BlockRunner& blocks,
                                               GrpcServerOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(const transport::Carrier carrier, transport::CarrierOf(options.carrier));
  PENSTOCK_ASSIGN_OR_RETURN(const WireName wire, WireNamed(options.wire));
  pserver::LoopOptions loop;
  loop.pserver.proven = !options.token.empty();
  loop.pserver.checkpoint_folder = options.checkpoint_folder;
  if (wire == WireName::kFluid && options.checkpoints.used()) {
    return Unimplemented("E-checkpoint-mode", "there are no checkpoints on Fluid's wire")
        .With("leave PENSTOCK_WIRE out, or use fluid.io.save_persistables");
  }
  PENSTOCK_ASSIGN_OR_RETURN(loop.pserver.trainer_loss, TrainerLossNamed(options.on_trainer_loss, wire));
  loop.pserver.checkpoints = std::move(options.checkpoints);
  loop.pserver.job = std::move(options.job);
  loop.pserver.chunk_limit = options.chunk_limit;
  loop.pserver.table_shards.exactly = options.table_shards;
  if (options.early_bytes) loop.pserver.early_bytes = *options.early_bytes;
  loop.pserver.on_reaction = TellLauncherOfReaction;
  loop.pserver.on_fixed = TellLauncherThatFixed;
  loop.pserver.on_back = TellLauncherThatBack;
  loop.pserver.observer = &Diagnosis::OfThisProcess().observer();
  PENSTOCK_ASSIGN_OR_RETURN(loop.pserver.report_after, observe::ReportAfterFromEnvironment());
  loop.pserver.start_deadline = options.start_deadline;
  loop.pserver.reconnect_deadline = options.reconnect_deadline;
  if (!options.report) loop.pserver.warn = [](const std::string& line) { Log(LogSeverity::kError, line); };
  loop.pserver.report = options.report ? std::move(options.report)
                                       : [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  loop.threads = options.threads > 0
                     ? options.threads
                     : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  if (wire == WireName::kFluid) {
    loop.pserver.proven = true;                        // Fluid's wire has no hello to verify
    loop.pserver.reconnect_deadline = Nanoseconds(0);  // nor a way to resume
    loop.pserver.part_bytes = pserver::FluidService::kPartBytes;
    loop.pserver.early_bytes = std::numeric_limits<std::size_t>::max();  // Fluid's wire has no flow control
    auto fluid = std::make_unique<pserver::FluidWire>(loop.pserver.job, loop.pserver.report);
    return std::make_unique<GrpcServer>(ops, blocks, nullptr, std::move(fluid), std::move(loop));
  }
  auto grpc = transport::MakeGrpcTransport({.token = std::move(options.token),
                                            .tls = std::move(options.tls),
                                            .patience = options.patience,
                                            .report = loop.pserver.report,
                                            .carrier = carrier});
  auto native = std::make_unique<pserver::NativeWire>(*grpc);
  return std::make_unique<GrpcServer>(ops, blocks, std::move(grpc), std::move(native), std::move(loop));
}

}  // namespace

Result<std::unique_ptr<ServerLoop>> MakeGrpcServer(const OpRegistry& ops, BlockRunner& blocks,
                                                   GrpcServerOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<GrpcServer> server, MakeServer(ops, blocks, std::move(options)));
  return std::unique_ptr<ServerLoop>(std::move(server));
}

Result<std::unique_ptr<KeyServer>> MakeKeyServer(const OpRegistry& ops, BlockRunner& blocks,
                                                 GrpcServerOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(const WireName wire, WireNamed(options.wire));
  if (wire == WireName::kFluid) {
    return Unimplemented("E-kv-wire", "there are no keys on Fluid's wire").With("leave PENSTOCK_WIRE out");
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<GrpcServer> server, MakeServer(ops, blocks, std::move(options)));
  return std::unique_ptr<KeyServer>(std::move(server));
}

}  // namespace penstock::process
