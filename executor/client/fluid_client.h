// A trainer's RpcClient over Fluid's wire: each call becomes a call of `sendrecv.SendRecvService`, so the
// trainer can use parameter servers of Fluid 1.8.5, or ours with wire = fluid.
//
//   FluidClient client(options);
//   ... ExecutorOptions{.rpc = &client} ...
//
// Limits of Fluid's wire: there is no hello (plans that do not fit are noticed when a message is refused,
// or not at all), and messages carry no step number, so delivery is not exactly-once: a gradient that is
// resent after a broken connection may be applied twice by a server that updates on arrival. Servers are
// not told when a trainer fails.
//
// Gradients and requests for parameters are sent concurrently; a barrier goes out when everything before it
// has been answered. Calls wait as long as the connection lives, and report after 10 s, 20 s, 40 s and so on
// what they wait for.
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

#include "executor/client/link_trace.h"
#include "executor/observe/observer.h"
#include "executor/observe/report_times.h"
#include "executor/protocol/fluid_message.h"
#include "executor/transport/unary.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::client {

struct FluidClientOptions {
  Nanoseconds connect_deadline = std::chrono::minutes(15);    // for a server to come up
  Nanoseconds reconnect_deadline = std::chrono::seconds(15);  // for a server whose connection broke
  int retries = 3;                                            // of a call, when the connection breaks
  std::function<void(const std::string&)> report;             // prints a line for the user
  std::function<void(int)> on_trainer;  // gets this trainer's id once a program gives it; may be empty
  // Called when a server's failure ends this trainer; may be empty.
  std::function<void(const Status&)> on_reaction;
  observe::Observer* observer = nullptr;             // records and counts what this trainer does
  Nanoseconds report_after = observe::kReportAfter;  // first report of a wait; then at each doubling
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
  Status CompleteAhead() override;
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
    bool answered = false;  // at least one call
    observe::PeerNotes notes;
  };
  struct Piece {
    RemotePiece remote;
    Server* server = nullptr;
    bool first_value = false;       // pushed once, before training
    bool lands_at_barrier = false;  // pulls are complete at the fetch_barrier; false: the program has none
    bool pushed = false;            // in the open step
    LinkTrace trace;                // of its pushes
    LinkTrace::Name traced;
  };
  enum class Kind { kSend, kFetch, kRows, kSave, kControl };
  static constexpr std::size_t kKinds = 5;
  struct Flight {
    Kind kind = Kind::kControl;
    Server* server = nullptr;
    std::string method;
    std::string what;  // "GetVariable of w"
    Payload request;
    int retries = 0;                 // remaining
    std::optional<Tensor> out = {};  // where a reply's values go
    std::optional<Result<transport::UnaryReply>> reply = {};
  };

  struct Flights {  // calls in flight, of one kind
    std::list<Flight> all;
    std::size_t unanswered = 0;
  };

  Result<Piece> Declare(const RemotePiece& piece);
  Server& ServerAt(const std::string& address);
  Status CheckOpen() const;
  void TraceSend(const Piece& piece, const protocol::VariableMessage& message) const;
  Result<protocol::VariableMessage> MessageOf(const Piece& piece, const Variable& value) const;
  Status Start(Flight flight, const protocol::VariableMessage& message);
  void Launch(Flight& flight);  // with the lock held
  void OnReply(Flight& flight, Result<transport::UnaryReply> reply);
  Status CompleteSends();
  Status StartAll(PeersHandle pservers, const std::string& method, const std::string& varname);
  Flights& Of(Kind kind) { return flights_[static_cast<std::size_t>(kind)]; }
  const Flights& Of(Kind kind) const { return flights_[static_cast<std::size_t>(kind)]; }
  std::string WaitsFor(Kind kind) const;
  std::string FirstSilent(Kind kind) const;  // the server of a call that has not answered any; empty: none
  Status RequireWireOf(const std::string& address);
  Status Wait(Kind kind);
  Status Land(Flight& flight);
  Status Fail(Status why);

  const FluidClientOptions options_;
  int trainer_ = 0;
  bool lands_at_barrier_ = false;                               // of the program attached last
  std::set<std::pair<std::string, std::string>> first_values_;  // server, name
  std::vector<Piece> pushes_, pulls_, tables_;
  std::vector<std::vector<Server*>> groups_;
  std::string counter_;      // the variable by which servers count this trainer's steps; may be empty
  bool sends_open_ = false;  // something was sent since all sends were answered
  bool async_ = false;       // its program sends gradients and has no barriers
  bool in_get_ = true;       // the servers' phase for this trainer: GET until its fetch_barrier
  bool completed_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t step_ = 0;
  Status status_;
  bool cancelled_ = false;
  std::array<Flights, kKinds> flights_;                     // by kind
  std::map<std::string, std::unique_ptr<Server>> servers_;  // by address; last member, so its calls end first
};

}  // namespace penstock::client
