// A trainer's connection to one server: its state, the contract with the server, work that waits for the
// server's welcome or for credit, messages not yet acknowledged, and replies being received. Links are
// independent of each other.
//
//   Link link(environment, "10.0.0.2:6174", 0, contract, job_facts);    // connects, and sends a hello
//   const std::optional<Slot> grad = link.FindPush("w@GRAD"), param = link.FindPull("w");
//   link.Push(*grad, gradient);  link.EndStep();  link.Pull(*param, w, Landing::kWithOthers, 1);
//
// A variable has a slot, a number that stays the same when the contract grows; on the wire it is a position
// in the contract, which may then change. All state of a variable is in a vector by slot, and of a chunk in a
// vector by chunk: the cost of a message does not depend on their number.
//
// Thread-safe: each link has its own lock, and calls its host without holding it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "executor/client/durable_log.h"
#include "executor/client/link_trace.h"
#include "executor/client/push_bytes.h"
#include "executor/client/retention_log.h"
#include "executor/client/session_options.h"
#include "executor/client/step_tracker.h"
#include "executor/client/variable_cut.h"
#include "executor/protocol/contract.h"
#include "executor/protocol/events.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/transport.h"

namespace penstock::client {

// Events that a link reports to its session.
class LinkHost {
 public:
  virtual ~LinkHost() = default;
  // The job has ended for this trainer. `by_peer`: because a peer failed.
  virtual void OnLinkFailure(Status why, bool by_peer) = 0;
  virtual void OnLeft(const protocol::Left& left) = 0;
};

struct LinkEnvironment {
  Transport& transport;
  const SessionOptions& options;
  StepTracker& steps;
  LinkHost& host;
};

using Slot = std::uint32_t;

// Whether the caller waits for this pull alone, or for all pulls in flight.
enum class Landing { kAlone, kWithOthers };

class Link final : public ConnectionHandler {
 public:
  Link(const LinkEnvironment& environment, std::string address, int trainer, protocol::Contract contract,
       std::string job_facts);

  // Extends the contract: the startup program and the main program each know a part. Tells the server the
  // result.
  Status Adopt(const protocol::Contract& contract, const std::string& job_facts);
  // The slot of a variable that is pushed (a gradient or an initial value), pulled, or requested by rows.
  std::optional<Slot> FindPush(const std::string& name) const;
  std::optional<Slot> FindPull(const std::string& name) const;
  std::optional<Slot> FindRows(const std::string& name) const;

  Status PushInitial(const InitialPiece& piece);  // copied
  // `residual` as in RpcClient::PushWithResidual; empty if there is none.
  Status Push(Slot slot, const Tensor& value, const Tensor& residual = {});
  Status PushRows(Slot slot, const SelectedRows& value);  // copied
  bool HasPushed() const;                                 // any gradient in the open step
  bool HasPushed(Slot slot) const;                        // this gradient
  void CountStep();
  void EndStep();
  Status Pull(Slot slot, Tensor& out, Landing landing, std::uint64_t version);
  void PullRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out);
  Status PullChanged(Slot slot, std::shared_ptr<SelectedRows> out, Landing landing);
  void Save(const std::string& table, const std::string& file);
  Status TakeSaved();  // the first error of saves since the last call
  void Complete();

  // The step with which this trainer may begin, as the server has said first.
  std::optional<std::uint64_t> named_step() const;
  // The step is known (Session::Join). Tells the server, if it has named an earlier one.
  void Joined();

  // Tells the server why this trainer ends, and closes. Later arrivals are ignored.
  void End(const Status& why);
  void Close();
  void Abort();
  bool IsClosed() const;  // and no OnClosed is in progress
  bool IsPulling(Slot slot) const;
  // Whether a pull in flight will write between these addresses. Visits every variable.
  bool IsPullingInto(const std::byte* begin, const std::byte* end) const;

  // Resends and reconnects. An error means that the server does not answer.
  Status Tick();
  // Asks the server what the first open pull (by position) waits for; tells it what this trainer waits for.
  void Ask(const std::string& waits_for);
  // How likely this link is the cause of a wait: of several links, the smallest value is reported.
  enum class Urgency { kNoWelcome, kNoVersion, kNoAnswer, kNone };
  struct Waiting {
    Urgency urgency = Urgency::kNone;
    std::string text;
    Nanoseconds silent{0};          // since the last message from the server, or since the first attempt
    observe::PeerNotes notes = {};  // of the server
    observe::NameId variable = 0;
  };
  Waiting WaitsFor() const;
  std::uint64_t entries_visited() const;
  const std::string& address() const { return address_; }

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;
  Room RoomFor(const std::shared_ptr<Connection>& from, const std::string& head, std::size_t body) override;

 private:
  struct Target {  // memory inside a caller's tensor
    std::shared_ptr<Buffer> buffer;
    std::byte* data = nullptr;

    static Target Of(const Tensor& tensor) { return {tensor.buffer(), tensor.raw()}; }
  };
  struct PendingPush {
    Slot slot = 0;
    std::uint64_t step = 0;
    std::uint32_t chunk = 0;  // the next chunk to send
    PushBytes value;          // as given until `made`, then as it travels
    bool made = false;
    std::uint64_t rows = 0;  // number of rows of a sparse gradient
    Target residual;         // of a gradient to be compressed
    Nanoseconds asked{0};    // when credit was requested
  };
  struct PendingPull {
    Slot slot = 0;
  };
  struct PendingRows {
    std::uint32_t request = 0;
    Payload ids;
  };
  struct PendingCount {
    std::uint64_t step = 0;
  };
  struct PendingEndStep {
    std::uint64_t step = 0;
    std::vector<Slot> pushed;
  };
  // Work that the session has handed over. Its chunks and parts are not known before the welcome.
  using Pending =
      std::variant<PendingPush, PendingPull, PendingRows, PendingCount, PendingEndStep, protocol::Save>;

  // kOnItsWay: the transport is receiving the body directly into its place.
  enum class PartIs : std::uint8_t { kMissing, kOnItsWay, kThere };
  struct Arriving {  // a pull
    bool active = false;
    Landing landing = Landing::kWithOthers;
    std::uint64_t version = 0;
    Target to;
    std::size_t chunks_left = 0;            // 0 while active: the pull is not sent yet
    std::vector<std::uint32_t> parts_left;  // by chunk
    std::vector<PartIs> have;               // per part, with the same number of entries for each chunk
    // Per chunk: the update count of the received parts; a newer reply replaces them. Empty for versions.
    std::vector<std::uint64_t> updates = {};
    // For changed rows of a table: the destination; `to` then holds their parts, as one chunk.
    std::shared_ptr<SelectedRows> changed = {};
    std::uint64_t rows = 0;
  };
  struct Variable {
    std::uint32_t position = 0;  // in the contract
    observe::NameId name = 0;
    LinkTrace::Name traced;
    bool is_gradient = false;
    bool pushed = false;       // in the open step
    bool has_start = false;    // its initial value has been sent
    bool has_initial = false;  // a value set by the caller has been sent
    // From the welcome.
    VariableCut cut;
    bool by_turn = false;  // pushes wait for credit from the start
    // By chunk: pushes of earlier steps are allowed. Unless by_turn, the bound is at least the window.
    std::vector<std::uint64_t> welcome_below;
    std::vector<PendingPush> waiting;  // for credit
    Arriving arriving;
  };
  struct ArrivingRows {  // of one request for rows
    std::uint64_t version = 0;
    Slot slot = 0;
    Target to;
    std::size_t begin = 0, bytes = 0;  // in `to`
    std::size_t parts_left = 0;
    std::vector<bool> have;     // per part; empty until the request was sent
    std::uint32_t updates = 0;  // the number of updates that those parts include
    bool whole = false;
  };
  const protocol::ContractPiece& PieceOf(const Variable& variable) const {
    return contract_.Variable(variable.position);
  }
  Variable* At(std::uint32_t position) {
    return position < slot_of_.size() ? &variables_[slot_of_[position]] : nullptr;
  }
  void Number(const protocol::Contract& before);
  Status Gone(const std::string& how) const;
  Status CheckReturn(Nanoseconds now);
  void Resume(bool started_again);
  // On a new connection the server takes nothing before its welcome but a hello.
  bool MaySend(const protocol::Event& event) const {
    return !lost_ || std::holds_alternative<protocol::Hello>(event);
  }
  void Connect();
  void SayHello();

  // link_pushes.cc: outgoing.
  void HandOver(Pending pending);
  void Dispatch(Pending& pending);
  void Send(PendingPush& push);
  void Send(PendingPull& pull);
  void Send(PendingRows& rows);
  void Send(PendingCount& count);
  void Send(PendingEndStep& end);
  void Send(protocol::Save& save);
  Status Push(std::unique_lock<std::mutex>& lock, PendingPush push);
  void Make(const VariableCut& cut, bool checksums, PendingPush& push) const;
  bool NeedsChecksums() const;
  bool SendAllowed(PendingPush& push);  // as far as credit allows; returns whether all of it was sent
  void SendParts(const Variable& variable, const PendingPush& push);
  void SendWaiting(Variable& variable);
  void SendAllThatWaited();
  void SendCompleteIfLast();
  template <typename E>
  bool SendKept(E event);  // false: an event with the same key is in flight
  void SendMessage(const protocol::Event& event, std::uint64_t contract);
  Status OpenPush(Slot slot);
  // Counts each push, and each of its messages.
  void BeginPush(const Variable& variable, std::uint64_t step);
  void EndPush(const Variable& variable, std::uint64_t step);
  Extent PartOf(Extent whole, std::uint32_t part) const {
    return client::PartOf(whole, part, cut_.part_bytes);
  }
  std::size_t PartsOf(std::size_t bytes) const { return client::PartsOf(bytes, cut_.part_bytes); }

  // link_replies.cc: incoming.
  Status Take(const protocol::Reply& reply, std::uint64_t contract);
  Status On(const protocol::Welcome& welcome);
  Status CheckStep(std::uint64_t named) const;
  Status CheckLacks(const protocol::WelcomeBody& welcome) const;
  Status On(const protocol::Pushed& pushed);
  Status On(const protocol::StepEnded& ended);
  Status On(const protocol::StepCounted& counted);
  Status On(const protocol::Pulled& pulled);
  Status On(const protocol::PulledNewest& pulled);
  Status On(const protocol::Gone& gone);
  Status On(const protocol::Rows& rows);
  Status On(const protocol::RowsGone& gone);
  Status On(const protocol::ChangedRows& rows);
  Status On(const protocol::Credit& credit);
  Status On(const protocol::Saved& saved);
  Status On(const protocol::Answer& answer);
  Status On(const protocol::Left&) { return OkStatus(); }  // the host handles it
  Status On(const protocol::Completed&);
  Status On(const protocol::ServerWelcome&) { return OkStatus(); }  // only between servers
  Status On(const protocol::SumsTaken&) { return OkStatus(); }
  Status On(const protocol::Durable&) { return OkStatus(); }  // TakeDurable has read its envelope
  Status On(const protocol::Failure& failure);
  bool CutVariables(const protocol::WelcomeBody& cut);
  bool Acknowledge(const SentKey& key);  // returns whether the message was still kept
  void TakeCredit(const protocol::ChunkRef& at, std::uint64_t welcome_below);
  // An expected part of a pull in flight, and where its bytes go. None: already received, or not requested.
  struct AwaitedPart {
    PartIs& is;
    std::byte* to;
    std::size_t size;
  };
  std::optional<AwaitedPart> Awaits(Variable& variable, const protocol::ChunkRef& at, std::uint64_t version,
                                    std::uint32_t part);
  Status TakePart(Variable& variable, const protocol::ChunkRef& at, std::uint64_t version, std::uint32_t part,
                  const Payload& bytes);
  void BeginChanged(const Variable& variable, const protocol::ChangedRows& rows, Arriving& arriving) const;
  Status LandChanged(const Variable& variable, Arriving& arriving) const;
  void BeginPull(Arriving& arriving, Landing landing, std::uint64_t version);
  void EndPull(Arriving& arriving);
  ArrivingRows* RowsOf(std::uint32_t request);

  // link_recovery.cc: for a server that may be started again by itself, what none of its checkpoints has.
  bool Recovers() const { return incarnation_ > 0; }
  bool TakeIncarnation(const protocol::WelcomeBody& welcome);  // returns whether it was started again
  void BeginAgain(std::uint64_t version);
  void SendAgain(Slot slot, std::uint32_t chunk);
  void ReleaseBelow(std::uint64_t version);
  void SendAllAgain();
  void SendGradientsAgain();
  void AskForCredit(Nanoseconds now);
  bool KeepAcknowledged(const protocol::Push& push);  // returns whether that was awaited
  void KeepEnded(const protocol::EndStep& end);
  void TakeDurable(std::uint64_t version);
  bool HasRoomFor(std::uint64_t step);
  void RequestCut();

  // link_waiting.cc
  const Variable* FirstPull() const;  // by position
  const ArrivingRows* FirstRows() const;
  static std::uint32_t FirstChunkOf(const Arriving& arriving);
  struct Open {
    std::string what;
    observe::NameId variable = 0;
  };
  Open FirstOpen() const;

  const LinkEnvironment environment_;
  const std::string address_;
  const observe::PeerNotes notes_;
  const LinkTrace trace_;
  mutable std::mutex mutex_;
  protocol::Sender sender_;
  protocol::Contract contract_;
  std::string job_facts_;            // of the attached programs; may be empty
  bool tables_by_id_ = false;        // a table is sharded by id, so any row may be valid
  std::vector<Variable> variables_;  // by slot
  std::vector<Slot> slot_of_;        // by position

  std::shared_ptr<Connection> connection_;
  bool welcome_ = false;      // the server has accepted `contract_`
  bool was_welcome_ = false;  // the server has accepted a contract at least once
  std::optional<std::uint64_t> named_step_;
  bool tells_step_ = false;  // its hello says at which step it begins, and was not answered yet
  bool completing_ = false, complete_sent_ = false, completed_ = false;
  bool closed_ = true;
  bool ended_ = false;    // the session has failed
  int closing_ = 0;       // calls of OnClosed in progress
  Nanoseconds since_{0};  // when the wait for the welcome began
  Nanoseconds closed_at_{0};
  struct Lost {
    Nanoseconds at{0};
    std::string how;
    bool ended = false;  // its host has refused a connection since, so the process has ended
  };
  std::optional<Lost> lost_;  // the connection has broken since the last welcome
  Nanoseconds heard_{0};
  protocol::WelcomeBody cut_;  // without chunk_rows, which are stored in the variables

  // Of a server that may be started again by itself: WelcomeBody's numbers; 0: it may not.
  std::uint64_t incarnation_ = 0;
  std::uint64_t window_below_ = 0;     // pushes of steps below it are welcome from the start
  std::uint64_t durable_version_ = 0;  // a checkpoint of the server has the steps below
  std::uint64_t begun_below_ = 0;      // gradients of steps below it may be sent, however full the log is
  std::size_t initial_left_ = 0;       // initial values sent again; gradients wait for their acknowledgement
  bool full_ = false;                  // a gradient waits for a checkpoint
  std::optional<Nanoseconds> asked_for_cut_, asked_for_credit_;
  DurableLog durable_;

  std::deque<Pending> before_welcome_;
  RetentionLog log_;
  std::size_t pushes_waiting_ = 0;  // for credit
  std::vector<Slot> pushed_;        // in the open step
  std::size_t pulls_ = 0;           // in flight
  std::deque<ArrivingRows> rows_;   // by request, from `first_request_` on; the first is incomplete
  std::uint32_t first_request_ = 0;
  std::uint32_t saves_ = 0;  // requested so far
  Status saved_;
  std::string answer_;
  bool changed_ = false;  // the current reply changed an answer that may be waited for
  std::uint64_t visited_ = 0;
};

}  // namespace penstock::client
