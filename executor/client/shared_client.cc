#include "executor/client/shared_client.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "executor/protocol/contract.h"

namespace penstock::client {

class SharedClient::User : public RpcClient {
 public:
  User(SharedClient& shared, bool helps)
      : shared_(shared), client_(*shared.client_), helps_(helps), uses_servers_(helps) {}
  ~User() override {
    const std::lock_guard lock(shared_.mutex_);
    shared_.in_use_.erase(this);
  }

  Status Attach(const Program& program) override {
    const Result<protocol::TrainerContracts> facts = protocol::ReadTrainer(program);
    if (!helps_ && facts.ok() && !facts->contracts.empty()) {
      const std::lock_guard lock(shared_.mutex_);
      shared_.in_use_.insert(this);
      shared_.attached_ = uses_servers_ = true;
    }
    return client_.Attach(program);  // reports the errors of ReadTrainer
  }
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override { return client_.DeclarePush(piece); }
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override { return client_.DeclarePull(piece); }
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override { return client_.DeclareRows(piece); }
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) override {
    return client_.DeclarePeers(pservers, trainer_id);
  }
  Status Push(PushHandle piece, const Variable& value) override { return client_.Push(piece, value); }
  Status PushWithResidual(PushHandle piece, const Tensor& value, const Tensor& residual) override {
    return client_.PushWithResidual(piece, value, residual);
  }
  Status CountStep(PeersHandle pservers) override { return client_.CountStep(pservers); }
  Status EndStep(PeersHandle pservers) override { return client_.EndStep(pservers); }
  Status Pull(PullHandle piece, Variable& out) override { return client_.Pull(piece, out); }
  Status PullAhead(PullHandle piece, Variable& out) override { return client_.PullAhead(piece, out); }
  Status CompleteAhead() override { return client_.CompleteAhead(); }
  Status PullNext(PullHandle piece, Variable& out) override { return client_.PullNext(piece, out); }
  bool PullsNext() const override { return client_.PullsNext(); }
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override {
    return client_.PullRows(piece, ids, out);
  }
  Status PullRowsAhead(RowsHandle piece, std::span<const std::int64_t> ids) override {
    return client_.PullRowsAhead(piece, ids);
  }
  // Where a communicator ends the steps, the version of the next lookup is not known.
  bool LooksAhead() const override {
    const bool ends_steps = shared_.communicator_ != nullptr && shared_.communicator_->ends_steps();
    return !ends_steps && client_.LooksAhead();
  }
  Status PullChanged(PullHandle piece, std::shared_ptr<SelectedRows> out) override {
    return client_.PullChanged(piece, std::move(out));
  }
  Status CompleteRows() override { return client_.CompleteRows(); }
  Status CompletePulls(PeersHandle pservers) override { return client_.CompletePulls(pservers); }
  bool LeavesPulls() const override { return shared_.leaves_pulls_ && client_.PullsNext(); }
  Status LeavePulls(PeersHandle pservers) override {
    return shared_.leaves_pulls_ ? client_.LeavePulls(pservers) : client_.CompletePulls(pservers);
  }
  Status CompleteLeft() override { return client_.CompleteLeft(); }
  Status CompleteLeftInto(const Variable& variable) override { return client_.CompleteLeftInto(variable); }
  bool HasLeft() const override { return client_.HasLeft(); }
  bool HasLeftInto(const Variable& variable) const override { return client_.HasLeftInto(variable); }
  Status SaveTable(PeersHandle pservers, const std::string& table,
                   const std::vector<std::string>& files) override {
    return client_.SaveTable(pservers, table, files);
  }
  Status SetInitial(const std::vector<InitialPiece>& pieces) override { return client_.SetInitial(pieces); }
  TrainerCommunicator* communicator() override { return shared_.communicator_; }
  std::uint64_t step() const override { return client_.step(); }
  Result<std::uint64_t> FirstStep() override { return client_.FirstStep(); }
  int trainer() const override { return client_.trainer(); }
  std::uint64_t StepOf(const Program& program) const override { return client_.StepOf(program); }
  bool IsOfAnotherProgram(const Program& program, const std::string& variable) const override {
    return client_.IsOfAnotherProgram(program, variable);
  }
  Status Complete() override { return shared_.CompleteFor(*this); }
  // Cancelling a run that uses no parameter servers must not end the job of other users.
  void Cancel() override {
    if (uses_servers_) client_.Cancel();
  }
  void Abandon(const Status& why) override { shared_.Abandon(why); }

 private:
  SharedClient& shared_;
  RpcClient& client_;
  const bool helps_;
  std::atomic<bool> uses_servers_;
};

SharedClient::SharedClient(std::unique_ptr<RpcClient> client) : client_(std::move(client)) {}

SharedClient::~SharedClient() = default;

std::unique_ptr<RpcClient> SharedClient::NewUser() { return std::make_unique<User>(*this, false); }

std::unique_ptr<RpcClient> SharedClient::NewHelper() { return std::make_unique<User>(*this, true); }

Status SharedClient::CompleteFor(const User& user) {
  {
    const std::lock_guard lock(mutex_);
    in_use_.erase(&user);
    if (!in_use_.empty()) return OkStatus();
  }
  return Complete();
}

Status SharedClient::Complete() {
  {
    const std::lock_guard lock(mutex_);
    if (!attached_ || client_ == nullptr) return OkStatus();
    ended_ = true;
  }
  if (communicator_ != nullptr) PENSTOCK_RETURN_IF_ERROR(communicator_->Stop());
  return client_->Complete();
}

bool SharedClient::open() const {
  const std::lock_guard lock(mutex_);
  return attached_ && !ended_ && client_ != nullptr;
}

void SharedClient::Abandon(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!attached_ || client_ == nullptr) return;
    ended_ = true;
  }
  client_->Abandon(why);
}

void SharedClient::Disconnect() {
  if (communicator_ != nullptr) static_cast<void>(communicator_->Stop());  // its threads use the client
  client_.reset();
}

}  // namespace penstock::client
