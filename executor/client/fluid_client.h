// A trainer's RpcClient on Fluid's wire: each call becomes a call of `sendrecv.SendRecvService`, so that it
// trains on parameter servers of Fluid 1.8.5, or on ours with wire = fluid.
//
//   FluidClient client(options);
//   ... ExecutorOptions{.rpc = &client} ...
//
// What Fluid's wire lacks is lacking here: no hello (two plans that do not fit are found out by the first
// message that is refused, or not at all), no step in a message, so no exactly-once: a gradient that is sent
// again because its connection broke may be applied twice by a server that updates when it arrives. Nobody
// tells servers of a trainer's failure.
//
// Gradients are sent, and parameters asked for, all at the same time; barriers go out when all before them
// was answered. Calls wait as long as the connection lives, and say after 10 s, 20 s, 40 s and so on what
// for.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/observe/observer.h"
#include "executor/observe/report_times.h"
#include "executor/protocol/fluid_message.h"
#include "executor/transport/unary.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::client {

struct FluidClientOptions {
  Nanoseconds connect_deadline = std::chrono::minutes(10);    // for a server that does not come up
  Nanoseconds reconnect_deadline = std::chrono::seconds(15);  // for one whose connection broke
  int retries = 3;                                            // of a call, when the connection breaks
  std::function<void(const std::string&)> report;             // a line for the user
  std::function<void(int)> on_trainer;  // which trainer this is, once a program says it; may be empty
  // Called when a server's failure ends this trainer; may be empty.
  std::function<void(const Status&)> on_reaction;
  observe::Observer* observer = nullptr;             // records and counts what this trainer does
  Nanoseconds report_after = observe::kReportAfter;  // of a wait; then each time that it has doubled
};

class FluidClient : public RpcClient {
 public:
  explicit FluidClient(FluidClientOptions options);
  ~FluidClient() override;

  Status Attach(const Program& program) override;
  Result<PushHandle> DeclarePush(const RemotePiece& piece) override;
  Result<PullHandle> DeclarePull(const RemotePiece& piece) override;
  Result<RowsHandle> DeclareRows(const RemotePiece& piece) override;
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) override;

  Status Push(PushHandle piece, const Variable& value) override;
  Status CountStep(PeersHandle pservers) override;
  Status EndStep(PeersHandle pservers) override;
  Status Pull(PullHandle piece, Variable& out) override;
  Status PullAhead(PullHandle piece, Variable& out) override;
  Status PullRows(RowsHandle piece, std::span<const std::int64_t> ids, Tensor& out) override;
  Status CompleteRows() override;
  Status CompletePulls(PeersHandle pservers) override;
  Status SaveTable(PeersHandle pservers, const std::string& table,
                   const std::vector<std::string>& files) override;
  Status SetInitial(const std::vector<InitialPiece>& pieces) override;
  std::uint64_t step() const override;
  Status Complete() override;
  void Cancel() override;

 private:
  struct Server {
    std::string address;
    std::unique_ptr<transport::UnaryClient> calls;
    bool answered = false;  // something
    observe::PeerNotes notes;
  };
  struct Piece {
    RemotePiece remote;
    Server* server = nullptr;
    bool first_value = false;       // pushed once, before training
    bool lands_at_barrier = false;  // pulled: at the fetch_barrier, as its program has one
    bool pushed = false;            // in the open step
  };
  enum class Kind { kSend, kFetch, kRows, kSave, kControl };
  static constexpr std::size_t kKinds = 5;
  struct Flight {
    Kind kind = Kind::kControl;
    Server* server = nullptr;
    std::string method;
    std::string what;  // "GetVariable of w"
    Payload request;
    int retries = 0;                 // that are left
    std::optional<Tensor> out = {};  // where a reply's values go
    std::optional<Result<transport::UnaryReply>> reply = {};
  };

  struct Flights {  // of one kind
    std::list<Flight> all;
    std::size_t unanswered = 0;
  };

  Result<Piece> Declare(const RemotePiece& piece);
  Server& ServerAt(const std::string& address);
  Status CheckOpen() const;
  Result<protocol::VariableMessage> MessageOf(const Piece& piece, const Variable& value) const;
  Status Start(Flight flight, const protocol::VariableMessage& message);
  void Launch(Flight& flight);  // with the lock held
  void OnReply(Flight& flight, Result<transport::UnaryReply> reply);
  Status CompleteSends();
  Status StartAll(PeersHandle pservers, const std::string& method, const std::string& varname);
  Flights& Of(Kind kind) { return flights_[static_cast<std::size_t>(kind)]; }
  const Flights& Of(Kind kind) const { return flights_[static_cast<std::size_t>(kind)]; }
  std::string WaitsFor(Kind kind) const;
  Status Wait(Kind kind);
  Status Land(Flight& flight);
  Status Fail(Status why);

  const FluidClientOptions options_;
  int trainer_ = 0;
  bool lands_at_barrier_ = false;                               // of the program attached last
  std::set<std::pair<std::string, std::string>> first_values_;  // server, name
  std::vector<Piece> pushes_, pulls_, tables_;
  std::vector<std::vector<Server*>> groups_;
  std::string counter_;      // by which servers count this trainer's steps; empty: its program tells of none
  bool sends_open_ = false;  // something was sent since all of it was answered
  bool async_ = false;       // its program sends gradients and has no barriers
  bool in_get_ = true;       // what the servers' phase is for this trainer: GET until its fetch_barrier
  bool completed_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t step_ = 0;
  Status status_;
  bool cancelled_ = false;
  std::array<Flights, kKinds> flights_;                     // by kind
  std::map<std::string, std::unique_ptr<Server>> servers_;  // by address; the last: their calls end first
};

}  // namespace penstock::client
