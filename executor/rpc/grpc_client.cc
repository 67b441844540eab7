#include "executor/rpc/grpc_client.h"

#include <cstdlib>

#include "executor/client/client.h"
#include "executor/rpc/grpc_transport.h"
#include "executor/rpc/launcher.h"
#include "framework/base/log.h"

namespace penstock {
GrpcClientOptions GrpcClientOptions::FromEnvironment() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  GrpcClientOptions options;
  options.job = text("PENSTOCK_JOB_ID");
  options.token = text("PENSTOCK_JOB_TOKEN");
  options.trainers = std::atoi(text("PADDLE_TRAINERS_NUM").c_str());
  return options;
}

Result<std::unique_ptr<RpcClient>> MakeGrpcClient(GrpcClientOptions options) {
  ClientOptions client;
  PENSTOCK_ASSIGN_OR_RETURN(client.session.token, MakeToken(options.token));
  client.session.job = options.job;
  client.session.trainers = options.trainers;
  client.session.connect_deadline = options.connect_deadline;
  // A trainer that starts again does so later, by the wall clock too.
  client.session.incarnation =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  client.session.on_reaction = TellLauncherOfReaction;
  client.on_trainer = [](int id) { ProposeLogRole(StrCat("trainer ", id)); };
  if (!options.report) client.warn = [](const std::string& line) { Log(LogSeverity::kWarning, line); };
  client.report = options.report ? std::move(options.report)
                                 : [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  return std::unique_ptr<RpcClient>(std::make_unique<TrainerClient>(MakeGrpcTransport(), std::move(client)));
}

}  // namespace penstock
