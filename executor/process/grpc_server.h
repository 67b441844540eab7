// A parameter server over gRPC, for listen_and_serv.
//
//   std::unique_ptr<ServerLoop> server = ...MakeGrpcServer(ops, executor,
//   GrpcServerOptions::FromEnvironment());
//   ... ExecutorOptions{.server = server.get()} ...
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/server_loop.h"

namespace penstock::process {

struct GrpcServerOptions {
  std::string job;    // name of the job; trainers of another one are refused
  std::string token;  // its secret; empty: none
  int threads = 0;    // that merge gradients and run blocks; 0: one per processor, at most 8
  std::optional<std::size_t> chunk_bytes = {};  // as of ChunkStore::Make
  std::optional<std::size_t> early_bytes = {};  // as of PserverOptions; nothing: its default
  transport::TlsFiles tls;
  std::string carrier = {};  // "auto" (and ""), "tcp": what connections may be carried by (grpc_transport.h)
  // "native" (or empty), or "fluid": the wire of Fluid 1.8.5, which has neither token nor TLS.
  std::string wire = {};
  std::string checkpoint_folder = ".";             // tables are saved in it, and nowhere else
  Nanoseconds patience = std::chrono::seconds(5);  // with those who have not said who they are
  std::function<void(const std::string&)> report;  // default: a log line

  // PENSTOCK_JOB_ID, PENSTOCK_JOB_TOKEN, PENSTOCK_CHECKPOINT_DIR, PENSTOCK_TLS_..., PENSTOCK_TRANSPORT,
  // PENSTOCK_WIRE; what is not set stays as above.
  static GrpcServerOptions FromEnvironment();
};

// The registry and the runner outlive the server. kInvalidArgument E-wire-name.
Result<std::unique_ptr<ServerLoop>> MakeGrpcServer(const OpRegistry& ops, BlockRunner& blocks,
                                                   GrpcServerOptions options);

}  // namespace penstock::process
