// The RpcClient of a trainer that may run the programs of several transpiles in one job, such as a GAN's two:
// each transpile has a client of its own, so its own connections, steps and barriers.
//
//   JobClient client([&] { return std::make_unique<TrainerClient>(MakeTransport(), options); });
//   client.Attach(discriminator);   // the first client
//   client.Attach(generator);       // the second: other job facts
//
// After Move, programs belong to a new client, and handles of earlier ones are E-scale-moved.
//
// A program belongs to the transpile whose job facts it carries. A program without facts, or with other facts
// for variables that an attached program exchanges, goes to the client of that program, which compares them.
//
// Threads: as RpcClient, except that one thread at a time attaches a program and declares its pieces. Handles
// contain the number of their client, so that pushes and pulls take no lock.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/client/movable.h"
#include "executor/client/moved_client.h"
#include "executor/protocol/contract.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::client {

class JobClient : public RpcClient, public Movable {
 public:
  explicit JobClient(std::function<std::unique_ptr<RpcClient>()> make);

  // In addition to the errors of the clients: kInvalidArgument E-plan-programs (a program of another
  // transpile receives the same variable; or there are programs of more transpiles than kProgramsMax).
  Status Attach(const Program& program) override;
  // A piece belongs to the program attached last.
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override;
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override;
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override;
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) override;

  Status Push(PushHandle piece, const Variable& value) override;
  Status PushWithResidual(PushHandle piece, const Tensor& value, const Tensor& residual) override;
  Status CountStep(PeersHandle pservers) override;
  Status EndStep(PeersHandle pservers) override;
  Status Pull(PullHandle piece, Variable& out) override;
  Status PullAhead(PullHandle piece, Variable& out) override;
  Status CompleteAhead() override;
  Status PullNext(PullHandle piece, Variable& out) override;
  bool PullsNext() const override;
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override;
  Status PullRowsAhead(RowsHandle piece, std::span<const std::int64_t> ids) override;
  bool LooksAhead() const override;
  Status CompleteRows() override;
  Status PullChanged(PullHandle piece, std::shared_ptr<SelectedRows> out) override;
  Status CompletePulls(PeersHandle pservers) override;
  Status LeavePulls(PeersHandle pservers) override;
  Status CompleteLeft() override;
  Status CompleteLeftInto(const Variable& variable) override;
  bool HasLeft() const override;
  bool HasLeftInto(const Variable& variable) const override;
  Status SaveTable(PeersHandle pservers, const std::string& table,
                   const std::vector<std::string>& files) override;
  Status SetInitial(const std::vector<InitialPiece>& pieces) override;
  Result<std::uint64_t> FirstStep() override;
  int trainer() const override { return parts()[0].client->trainer(); }
  std::uint64_t step() const override;
  std::uint64_t StepOf(const Program& program) const override;
  bool IsOfAnotherProgram(const Program& program, const std::string& variable) const override;
  Status Complete() override;
  void Cancel() override;
  void Abandon(const Status& why) override;
  std::uint64_t step_here() const override;
  Status Move() override;

  static constexpr int kProgramsMax = 16;

 private:
  using Exchanged = std::set<std::pair<std::string, std::string>>;  // (address, name there)
  struct Part {
    std::unique_ptr<RpcClient> client;
    std::string facts;               // may be empty
    Exchanged exchanged;             // by the programs attached
    std::set<std::string> received;  // the trainer's variables that they receive
  };

  std::span<const Part> parts() const;  // those whose servers have not moved
  bool HasMoved(const Exchanged& exchanged) const;
  Part* PartFor(const std::string& facts, const Exchanged& exchanged);
  Result<Part*> AddPart(const std::string& facts);
  Status CheckAlone(const Part* part, const std::set<std::string>& received) const;
  const Part* Find(const Program& program) const;
  RpcClient& current() const { return *parts_[static_cast<std::size_t>(current_)].client; }
  template <typename Handle>
  Result<Handle> Numbered(Result<Handle> of_client) const;
  template <typename Handle>
  std::pair<RpcClient&, Handle> Of(Handle handle) const;
  template <typename Call>
  Status ForEach(const Call& call) const;

  const std::function<std::unique_ptr<RpcClient>()> make_;
  mutable std::mutex mutex_;                 // guards what the parts know of programs, and `current_`
  std::array<Part, kProgramsMax> parts_;     // the first `count_`
  std::atomic<int> first_{0}, count_{0};     // before the first: those whose servers have moved
  int current_ = 0;                          // of the program attached last
  std::optional<std::uint64_t> first_step_;  // once servers have moved
  mutable MovedClient moved_;
};

}  // namespace penstock::client
