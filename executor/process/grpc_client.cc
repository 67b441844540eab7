#include "executor/process/grpc_client.h"

#include "executor/client/client.h"
#include "executor/client/fluid_client.h"
#include "executor/client/job_client.h"
#include "executor/process/diagnosis.h"
#include "executor/process/launcher.h"
#include "executor/process/wire_name.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/environment.h"
#include "framework/base/log.h"
#include "framework/runtime/process_id.h"

namespace penstock::process {
Result<GrpcClientOptions> GrpcClientOptions::FromEnvironment() {
  GrpcClientOptions options;
  options.job = env::Text("PENSTOCK_JOB_ID");
  options.token = env::Text("PENSTOCK_JOB_TOKEN");
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> trainers, env::Integer("PADDLE_TRAINERS_NUM"));
  options.trainers = static_cast<int>(trainers.value_or(0));
  const std::string folder = env::Text("PENSTOCK_CHECKPOINT_DIR");
  options.checkpoint_folder = folder.empty() ? std::string(1, '.') : folder;
  PENSTOCK_ASSIGN_OR_RETURN(options.tls, transport::TlsFiles::FromEnvironment());
  PENSTOCK_ASSIGN_OR_RETURN(options.connect_deadline, StartDeadline());
  PENSTOCK_ASSIGN_OR_RETURN(options.reconnect_deadline, ReconnectDeadline());
  PENSTOCK_ASSIGN_OR_RETURN(options.on_trainer_loss, env::Choice("PENSTOCK_ON_TRAINER_LOSS"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> kept, env::Integer("PENSTOCK_RETENTION_MB"));
  if (kept) options.retention_bytes = static_cast<std::size_t>(*kept) << 20;
  options.carrier = env::Text("PENSTOCK_TRANSPORT");
  options.wire = env::Text("PENSTOCK_WIRE");
  return options;
}

namespace {

void NameRole(int trainer) {
  const std::string role = StrCat("trainer ", trainer);
  ProposeLogRole(role);
  Diagnosis::OfThisProcess().Begin(role);
}

// A client that ends the process's diagnosis, and so writes the receipt, once it completes or is destroyed.
template <typename Client>
class Observed : public Client {
 public:
  using Client::Client;
  ~Observed() override { Diagnosis::OfThisProcess().End(); }
  Status Complete() override {
    Status status = Client::Complete();
    if (status.ok()) Diagnosis::OfThisProcess().End();
    return status;
  }
};

std::unique_ptr<RpcClient> MakeFluidClient(GrpcClientOptions options, Nanoseconds report_after) {
  client::FluidClientOptions fluid;
  fluid.connect_deadline = options.connect_deadline;
  fluid.on_trainer = NameRole;
  fluid.observer = &Diagnosis::OfThisProcess().observer();
  fluid.report_after = report_after;
  fluid.on_reaction = TellLauncherOfReaction;
  fluid.report = options.report ? std::move(options.report)
                                : [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  return std::make_unique<Observed<client::FluidClient>>(std::move(fluid));
}

using MakeTrainer = std::function<std::unique_ptr<client::TrainerClient>()>;

// How the clients of our wire are made, one for each transpile.
Result<MakeTrainer> TrainersOf(GrpcClientOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(const transport::Carrier carrier, transport::CarrierOf(options.carrier));
  PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds report_after, observe::ReportAfterFromEnvironment());
  client::ClientOptions client;
  client.session.job = options.job;
  client.session.trainers = options.trainers;
  client.session.checkpoint_folder = options.checkpoint_folder;
  client.session.connect_deadline = options.connect_deadline;
  client.session.reconnect_deadline = options.reconnect_deadline;
  if (options.retention_bytes) client.session.retention_bytes = *options.retention_bytes;
  client.session.process = DescribeThisProcess();
  if (options.on_trainer_loss == "wait") client.session.joins = client::Joins::kAtLowest;
  if (options.on_trainer_loss == "shrink") client.session.joins = client::Joins::kAtHighest;
  // The wall clock orders the incarnations: a restarted trainer has a higher number.
  client.session.incarnation =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  client.session.on_joined = [](std::uint64_t step) {
    TellLauncherThatBack(StrCat("it continues with step ", step));
  };
  client.session.on_reaction = TellLauncherOfReaction;
  client.session.observer = &Diagnosis::OfThisProcess().observer();
  client.report_after = report_after;
  client.on_trainer = NameRole;
  client.report =
      options.report ? options.report : [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  // The transport reports problems that may need a person, such as a host name that does not resolve.
  auto warn =
      options.report ? options.report : [](const std::string& line) { Log(LogSeverity::kWarning, line); };
  return MakeTrainer([client_options = std::move(client), token = std::move(options.token),
                      tls = std::move(options.tls), carrier, warn] {
    auto grpc = transport::MakeGrpcTransport(
        {.token = token, .tls = tls, .report = warn, .carrier = carrier, .tell = client_options.report});
    return std::make_unique<client::TrainerClient>(std::move(grpc), client_options);
  });
}

}  // namespace

Result<std::unique_ptr<RpcClient>> MakeGrpcClient(GrpcClientOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(const WireName wire, WireNamed(options.wire));
  if (wire == WireName::kFluid) {
    PENSTOCK_RETURN_IF_ERROR(transport::CarrierOf(options.carrier).status());
    PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds report_after, observe::ReportAfterFromEnvironment());
    return MakeFluidClient(std::move(options), report_after);
  }
  PENSTOCK_ASSIGN_OR_RETURN(MakeTrainer make, TrainersOf(std::move(options)));
  return std::unique_ptr<RpcClient>(std::make_unique<Observed<client::JobClient>>(std::move(make)));
}

Result<std::unique_ptr<client::TrainerClient>> MakeKeyTrainer(GrpcClientOptions options, int rank) {
  PENSTOCK_ASSIGN_OR_RETURN(const WireName wire, WireNamed(options.wire));
  if (wire == WireName::kFluid) {
    return Unimplemented("E-kv-wire", "there are no keys on Fluid's wire").With("leave PENSTOCK_WIRE out");
  }
  options.on_trainer_loss.clear();  // each key says where a new process of a worker goes on
  PENSTOCK_ASSIGN_OR_RETURN(const MakeTrainer make, TrainersOf(std::move(options)));
  NameRole(rank);
  return make();
}

}  // namespace penstock::process
