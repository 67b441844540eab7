// The trainer's RpcClient: a Session whose questions are waited for. Waiting costs nothing, is reported every
// 10 s, and ends at once when a peer is gone or somebody cancels.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "executor/client/session.h"

namespace penstock {

struct ClientOptions {
  SessionOptions session;
  std::function<void(const std::string&)> report;  // a line for the user
};

class TrainerClient : public RpcClient {
 public:
  TrainerClient(std::unique_ptr<Transport> transport, ClientOptions options);
  // Closes connections that are open; without Complete the servers take that for a death.
  ~TrainerClient() override;

  Status Attach(const Program& program) override { return session_.Attach(program); }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return session_.DeclarePush(piece); }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return session_.DeclarePull(piece); }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return session_.DeclareRows(piece); }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int) override {
    return session_.DeclarePeers(pservers);
  }

  Status Push(PushHandle piece, const Variable& value) override;
  Status EndStep(PeersHandle pservers) override;
  Status Pull(PullHandle piece, Variable& out) override;
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override {
    return session_.PullRows(piece, ids, out);
  }
  Status CompleteRows() override;
  Status CompletePulls(PeersHandle pservers) override;
  Status Complete() override;
  void Cancel() override { session_.Cancel(); }

 private:
  // Until the answer is yes or the session has failed.
  Status Wait(const std::function<bool()>& answer);
  bool WaitFor(const std::function<bool()>& answer, Nanoseconds limit);
  void Watch();

  const std::unique_ptr<Transport> transport_;
  ClientOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  bool stop_ = false;
  Session session_;
  std::thread watch_;  // sends again, connects again; sleeps otherwise
};

}  // namespace penstock
