// A trainer's client of parameter servers over gRPC.
//
//   PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<RpcClient> rpc,
//                             MakeGrpcClient(options));    // of GrpcClientOptions::FromEnvironment()
//   ... ExecutorOptions{.rpc = rpc.get()} ...
//   rpc->Complete();                                    // exe.close(): this trainer is finished
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/process/start_deadline.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::client {
class TrainerClient;
}

namespace penstock::process {

struct GrpcClientOptions {
  std::string job;    // name of the job; servers of other jobs refuse the trainer
  std::string token;  // the job's secret; empty: none
  int trainers = 0;   // number of trainers according to the environment; 0: unknown
  Nanoseconds connect_deadline = kStartDeadline;        // for a server to come up (start_deadline.h)
  Nanoseconds reconnect_deadline = kReconnectDeadline;  // for a server whose connection has broken
  transport::TlsFiles tls;
  // As in GrpcServerOptions: with "wait" or "shrink", a new process may take the place of one that has died.
  std::string on_trainer_loss = {};
  std::string carrier = {};  // "auto" (or ""), "tcp": the allowed carrier of connections (grpc_transport.h)
  // "native" (or empty), or "fluid": the wire of Fluid 1.8.5, which has neither token nor TLS.
  std::string wire = {};
  // Most bytes of gradients that are kept for a server which may be started again (client/session_options.h).
  std::optional<std::size_t> retention_bytes = {};
  std::string checkpoint_folder;                   // where servers save tables; empty: unknown
  std::function<void(const std::string&)> report;  // default: a log line

  // Reads PENSTOCK_JOB_ID, PENSTOCK_JOB_TOKEN, PADDLE_TRAINERS_NUM, PENSTOCK_CHECKPOINT_DIR (default: the
  // working folder), PENSTOCK_TLS_..., PENSTOCK_TRANSPORT, PENSTOCK_WIRE, PENSTOCK_RECONNECT_S,
  // PENSTOCK_ON_TRAINER_LOSS, PENSTOCK_RETENTION_MB, PENSTOCK_START_S or FLAGS_rpc_deadline; unset ones leave
  // the defaults. kInvalidArgument E-environment.
  static Result<GrpcClientOptions> FromEnvironment();
};

// kInvalidArgument E-wire-name.
Result<std::unique_ptr<RpcClient>> MakeGrpcClient(GrpcClientOptions options);

// The connections and the waits of a worker's KeyClient, which is trainer `rank`. kInvalidArgument
// E-wire-name; kUnimplemented E-kv-wire.
Result<std::unique_ptr<client::TrainerClient>> MakeKeyTrainer(GrpcClientOptions options, int rank);

}  // namespace penstock::process
