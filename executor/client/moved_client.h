// What is left of a client whose servers were replaced by others: an old route answers each call with the
// error E-scale-moved, and reaches no server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/rpc_client.h"

namespace penstock::client {

inline Status MovedError() {
  return FailedPrecondition("E-scale-moved",
                            "this program's pservers were replaced by others when their number changed")
      .With("run the program that get_trainer_program() has returned, or clone it again");
}

class MovedClient : public RpcClient {
 public:
  Status Attach(const Program&) override { return MovedError(); }
  Result<PushHandle> DeclarePush(const RemotePiece&) override { return MovedError(); }
  Result<PullHandle> DeclarePull(const RemotePiece&) override { return MovedError(); }
  Result<RowsHandle> DeclareRows(const RemotePiece&) override { return MovedError(); }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>&, int) override { return MovedError(); }
  Status Push(PushHandle, const Variable&) override { return MovedError(); }
  Status PushWithResidual(PushHandle, const Tensor&, const Tensor&) override { return MovedError(); }
  Status CountStep(PeersHandle) override { return MovedError(); }
  Status EndStep(PeersHandle) override { return MovedError(); }
  Status Pull(PullHandle, Variable&) override { return MovedError(); }
  Status PullNext(PullHandle, Variable&) override { return MovedError(); }
  Status PullRows(RowsHandle, std::span<const std::int64_t>, Tensor&) override { return MovedError(); }
  Status PullRowsAhead(RowsHandle, std::span<const std::int64_t>) override { return MovedError(); }
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overrides
  Status PullChanged(PullHandle, std::shared_ptr<SelectedRows>) override { return MovedError(); }
  Status CompleteRows() override { return MovedError(); }
  Status CompletePulls(PeersHandle) override { return MovedError(); }
  Status SaveTable(PeersHandle, const std::string&, const std::vector<std::string>&) override {
    return MovedError();
  }
  Status Complete() override { return MovedError(); }
  void Cancel() override {}
};

}  // namespace penstock::client
