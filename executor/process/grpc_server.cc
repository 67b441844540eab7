#include "executor/process/grpc_server.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "executor/process/launcher.h"
#include "executor/pserver/loop.h"
#include "executor/transport/grpc_transport.h"
#include "framework/base/log.h"
#include "framework/roles/views.h"

namespace penstock::process {
namespace {

class GrpcServer : public ServerLoop {
 public:
  GrpcServer(const OpRegistry& ops, BlockRunner& blocks, std::unique_ptr<Transport> transport,
             pserver::LoopOptions options)
      : transport_(std::move(transport)), loop_(*transport_, ops, blocks, std::move(options)) {}

  Status Serve(const Program& program, const Op& op, Scope& scope) override {
    ProposeLogRole(StrCat("pserver ", roles::ServeView(op).address()));
    return loop_.Serve(program, op, scope);
  }
  void Cancel() override { loop_.Cancel(); }

 private:
  std::unique_ptr<Transport> transport_;
  pserver::PserverLoop loop_;
};

}  // namespace

GrpcServerOptions GrpcServerOptions::FromEnvironment() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  GrpcServerOptions options;
  options.job = text("PENSTOCK_JOB_ID");
  options.token = text("PENSTOCK_JOB_TOKEN");
  const std::string folder = text("PENSTOCK_CHECKPOINT_DIR");
  if (!folder.empty()) options.checkpoint_folder = folder;
  options.tls = transport::TlsFiles::FromEnvironment();
  return options;
}

Result<std::unique_ptr<ServerLoop>> MakeGrpcServer(const OpRegistry& ops, BlockRunner& blocks,
                                                   GrpcServerOptions options) {
  pserver::LoopOptions loop;
  loop.pserver.proven = !options.token.empty();
  loop.pserver.checkpoint_folder = options.checkpoint_folder;
  loop.pserver.job = std::move(options.job);
  loop.pserver.chunk_bytes = options.chunk_bytes;
  if (options.early_bytes) loop.pserver.early_bytes = *options.early_bytes;
  loop.pserver.on_reaction = TellLauncherOfReaction;
  if (!options.report) loop.pserver.warn = [](const std::string& line) { Log(LogSeverity::kError, line); };
  loop.pserver.report = options.report ? std::move(options.report)
                                       : [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  loop.threads = options.threads > 0
                     ? options.threads
                     : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  auto grpc = transport::MakeGrpcTransport({.token = std::move(options.token),
                                            .tls = std::move(options.tls),
                                            .patience = options.patience,
                                            .report = loop.pserver.report});
  return std::unique_ptr<ServerLoop>(
      std::make_unique<GrpcServer>(ops, blocks, std::move(grpc), std::move(loop)));
}

}  // namespace penstock::process
