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

#include "framework/base/status.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/server_loop.h"

namespace penstock {

struct GrpcServerOptions {
  std::string job;    // name of the job; trainers of another one are refused
  std::string token;  // its secret, at most 64 characters; empty: none
  int threads = 0;    // that merge gradients and run blocks; 0: one per processor, at most 8
  std::optional<std::size_t> chunk_bytes = {};     // as of ChunkStore::Make
  std::function<void(const std::string&)> report;  // default: a log line

  // PENSTOCK_JOB_ID, PENSTOCK_JOB_TOKEN; what is not set stays as above.
  static GrpcServerOptions FromEnvironment();
};

// The registry and the runner outlive the server.
Result<std::unique_ptr<ServerLoop>> MakeGrpcServer(const OpRegistry& ops, BlockRunner& blocks,
                                                   GrpcServerOptions options);

}  // namespace penstock
