// A parameter server over gRPC, for listen_and_serv.
//
//   PENSTOCK_ASSIGN_OR_RETURN(GrpcServerOptions options, GrpcServerOptions::FromEnvironment());
//   PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<ServerLoop> server, MakeGrpcServer(ops, executor, options));
//   executor.set_server(server.get());
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/communicator/trainer_parts.h"
#include "executor/process/start_deadline.h"
#include "executor/pserver/checkpoints.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/server_loop.h"

namespace penstock::process {

struct GrpcServerOptions {
  std::string job;    // name of the job; trainers of other jobs are refused
  std::string token;  // the job's secret; empty: none
  int threads = 0;    // to merge gradients and run blocks; 0: one per processor, at most 8
  std::optional<std::size_t> chunk_limit = {};  // as in ChunkStore::Make
  std::optional<int> table_shards = {};         // TableShards::exactly
  std::optional<std::size_t> early_bytes = {};  // as in PserverOptions; nullopt: its default
  transport::TlsFiles tls;
  std::string carrier = {};  // "auto" (or ""), "tcp": the allowed carrier of connections (grpc_transport.h)
  // "native" (or empty), or "fluid": the wire of Fluid 1.8.5, which has neither token nor TLS.
  std::string wire = {};
  std::string checkpoint_folder = ".";          // tables are saved here, and nowhere else
  pserver::CheckpointOptions checkpoints = {};  // of the whole job
  // "wait", "shrink" or "abort" (or empty): what the death of a trainer means (PserverOptions::trainer_loss).
  std::string on_trainer_loss = {};
  Nanoseconds patience = std::chrono::seconds(5);  // for peers that have not identified themselves
  Nanoseconds start_deadline = kStartDeadline;  // for trainers and other servers to come (start_deadline.h)
  Nanoseconds reconnect_deadline = kReconnectDeadline;  // for peers whose connection has broken
  std::function<void(const std::string&)> report;       // default: a log line

  // Reads PENSTOCK_JOB_ID, PENSTOCK_JOB_TOKEN, PENSTOCK_CHECKPOINT_DIR, PENSTOCK_TLS_..., PENSTOCK_TRANSPORT,
  // PENSTOCK_WIRE, PENSTOCK_RECONNECT_S, PENSTOCK_ON_TRAINER_LOSS, PENSTOCK_START_S or FLAGS_rpc_deadline,
  // and for checkpoints PENSTOCK_CHECKPOINT_STEPS, PENSTOCK_KEEP_CHECKPOINTS, PENSTOCK_RESUME_STEP,
  // PENSTOCK_RESTART_COUNT, PENSTOCK_MAX_ROLE_RESTART, PENSTOCK_ROLE_RESTART_COUNT,
  // PADDLE_PSERVERS_IP_PORT_LIST; unset variables leave the defaults above. kInvalidArgument E-environment;
  // E-checkpoint-folder: checkpoints are asked for, but no folder.
  static Result<GrpcServerOptions> FromEnvironment();
};

// The checkpoints that the same variables ask for, of pservers and of the trainers of geo-SGD.
Result<pserver::CheckpointOptions> CheckpointsFromEnvironment(const std::string& job);
Result<communicator::PartOptions> TrainerPartsFromEnvironment();

// The registry and the runner must outlive the server. kInvalidArgument E-wire-name.
Result<std::unique_ptr<ServerLoop>> MakeGrpcServer(const OpRegistry& ops, BlockRunner& blocks,
                                                   GrpcServerOptions options);

// A server of keys (executor/client/key_client.h), which has no program.
class KeyServer {
 public:
  virtual ~KeyServer() = default;
  // Serves at the address until all workers have completed.
  virtual Status ServeKeys(const std::string& address, int workers) = 0;
  // As ServerLoop::Cancel.
  virtual void CancelKeys() = 0;
};
// As MakeGrpcServer. kUnimplemented E-kv-wire: Fluid's wire has no keys.
Result<std::unique_ptr<KeyServer>> MakeKeyServer(const OpRegistry& ops, BlockRunner& blocks,
                                                 GrpcServerOptions options);

}  // namespace penstock::process
