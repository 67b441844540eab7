// An RpcClient on top of a Session: forwards each call and waits for what the call must have before it
// returns. Subclasses define how to wait: TrainerClient blocks its thread, a simulation moves its clock.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "executor/client/movable.h"
#include "executor/client/session.h"

namespace penstock::client {

class SessionClient : public RpcClient, public Leaving {
 public:
  Status Attach(const Program& program) override;
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return session_.DeclarePush(piece); }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return session_.DeclarePull(piece); }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return session_.DeclareRows(piece); }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int) override {
    return session_.DeclarePeers(pservers);
  }

  Status Push(PushHandle piece, const Variable& value) override;
  Status PushWithResidual(PushHandle piece, const Tensor& value, const Tensor& residual) override;
  Status CountStep(PeersHandle pservers) override;
  Status EndStep(PeersHandle pservers) override;
  Status Pull(PullHandle piece, Variable& out) override;
  Status PullAhead(PullHandle piece, Variable& out) override;
  Status CompleteAhead() override;
  Status PullNext(PullHandle piece, Variable& out) override;
  bool PullsNext() const override { return true; }
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override {
    return session_.PullRows(piece, ids, out);
  }
  Status PullRowsAhead(RowsHandle piece, std::span<const std::int64_t> ids) override {
    return session_.PullRowsAhead(piece, ids);
  }
  bool LooksAhead() const override { return true; }
  Status PullChanged(PullHandle piece, std::shared_ptr<SelectedRows> out) override;
  Status CompleteRows() override;
  Status CompletePulls(PeersHandle pservers) override;
  Status LeavePulls(PeersHandle pservers) override;
  Status CompleteLeft() override;
  Status CompleteLeftInto(const Variable& variable) override;
  bool HasLeft() const override { return left_; }
  bool HasLeftInto(const Variable& variable) const override;
  Status SaveTable(PeersHandle pservers, const std::string& table,
                   const std::vector<std::string>& files) override;
  Status SetInitial(const std::vector<InitialPiece>& pieces) override;
  std::uint64_t step() const override { return session_.step(); }
  Result<std::uint64_t> FirstStep() override;
  int trainer() const override { return session_.trainer(); }
  Status Complete() override;
  Status Leave() override;
  void Cancel() override { session_.Cancel(); }
  void Abandon(const Status& why) override { session_.Abandon(why); }

 protected:
  // The session belongs to the derived class, which may construct it after this base.
  explicit SessionClient(Session& session) : session_(session) {}
  // Waits until `answer` is true or the session has failed; returns the session's status.
  virtual Status Wait(const std::function<bool()>& answer) = 0;

 private:
  // If the piece is being pulled already, waits for all pulls in flight, so that it can be requested again.
  Status WaitForEarlier(PullHandle piece);

  Session& session_;
  std::atomic<bool> left_{false};  // pulls of the last step may be in flight, and the next has not begun
};

}  // namespace penstock::client
