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

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "executor/client/durable_log.h"
#include "executor/client/link_trace.h"
#include "executor/client/pull_targets.h"
#include "executor/client/push_bytes.h"
#include "executor/client/retention_log.h"
#include "executor/client/row_order.h"
#include "executor/client/session_options.h"
#include "executor/client/step_tracker.h"
#include "executor/client/variable_cut.h"
#include "executor/protocol/batch.h"
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

// A key of a key-value store, or this server's piece of it.
struct KeySlots {
  Slot value = 0;     // pulled, and set by worker 0
  Slot gradient = 0;  // pushed
};

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
  // `arrived`, if given, gets the time at which the rows have come, in nanoseconds.
  using Arrival = std::shared_ptr<std::atomic<std::int64_t>>;
  void PullRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out, Arrival arrived = {});
  Status PullChanged(Slot slot, std::shared_ptr<SelectedRows> out, Landing landing);
  void Save(const std::string& table, const std::string& file);

  // Keys of a key-value store (link_keys.cc), whose steps count this worker's pushes of each. A key may be
  // used once the server has answered its declaration, and not with an error.
  KeySlots DeclareKey(const protocol::KeyBody& key);
  // This worker uses the key no longer.
  void LeaveKey(Slot value);
  // Whether the server has answered, and with an error.
  bool KeyIsDeclared(Slot value) const;
  Status KeyStatus(Slot value) const;
  std::uint64_t KeyPushes(Slot value) const;  // of this worker, at the time of the declaration
  VariableCut KeyCut(Slot value) const;
  void SetKey(Slot value, Bytes bytes);  // the initial value; the bytes must not change
  struct KeyPush {
    Bytes bytes;  // must not change; of rows: all ids, then all values
    std::uint64_t step = 0, largest = 0;
    int priority = 0;     // of pushes that wait, higher ones go first, then earlier ones (link_order.cc)
    float threshold = 0;  // protocol::Push::threshold: the bytes are compressed, chunk by chunk
    // It does not wait for others: the shards of a table's push set out together, so they are seldom apart
    // when the worker dies.
    bool at_once = false;
  };
  void PushKey(Slot gradient, KeyPush push);
  // Whether the server has all pushes of steps below this, and the initial value.
  bool KeyPushesDone(Slot gradient, std::uint64_t below) const;
  // Pulls of different versions may be in flight. kFailedPrecondition E-recv-twice: this one is.
  Status PullKey(Slot value, Tensor& out, std::uint64_t version);
  // Once for each pull, when it has ended: the least and the greatest number of updates in its chunks.
  // nullopt: it is in flight.
  struct Updates {
    std::uint64_t least = 0, most = 0;
  };
  std::optional<Updates> TakePulled(Slot value, std::uint64_t version);
  // Requests for rows, in the order of `ids`; `to` has a row for each. Returns the numbers of the requests.
  struct Requests {
    std::uint32_t begin = 0, end = 0;
  };
  Requests PullKeyRows(Slot value, std::span<const std::int64_t> ids, Tensor& to, std::uint64_t version);
  bool RowsAreThere(const Requests& requests) const;
  void SetOptimizer(std::uint64_t number, const std::string& text, bool keeps_state);
  // nullopt: the server has not answered.
  std::optional<Status> OptimizerStatus(std::uint64_t number) const;
  void EnterBarrier(std::uint64_t number);
  bool BarrierIsPassed(std::uint64_t number) const;
  // Checkpoints of keys: after how many pushes of a key the server makes one; 0: never, or not known yet.
  std::uint64_t cut_every() const;
  bool was_welcome() const;
  // This worker has pushed the keys so often, at the cut of this name (protocol::CutKeys).
  struct KeyCount {
    Slot value = 0;
    std::uint64_t pushes = 0;
  };
  void CutKeys(std::uint64_t step, const std::vector<KeyCount>& pushes);
  bool CutIsTaken(std::uint64_t step) const;  // and all before it
  // Of a key from a checkpoint, at the time of the declaration: protocol::KeyDeclaredBody::since.
  std::uint64_t KeySince(Slot value) const;
  // Asks how many workers are gone. nullopt: the server has not answered.
  std::uint32_t CountGone();
  std::optional<std::uint64_t> GoneCount(std::uint32_t request) const;
  // Whether the connection has broken, and was not made again yet.
  bool is_lost() const;
  // Small messages that are sent between the two calls travel together (protocol/batch.h). Calls may nest.
  void Hold();
  void Release();
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
    Target residual;       // of a gradient to be compressed
    Nanoseconds asked{0};  // when credit was requested
    // Of a key: as in KeyPush; `order` is its number among all.
    std::uint64_t largest = 0, order = 0;
    int priority = 0;
    float threshold = 0;
    bool at_once = false;
  };
  struct PendingPull {
    Slot slot = 0;
    std::uint64_t version = 0;
  };
  struct PendingRows {
    Slot slot = 0;
    std::uint64_t version = 0;
    Target to;
    Bytes ids = {};                              // sorted, once there is an order
    std::shared_ptr<const RowOrder> order = {};  // null: one shard, or not known yet
    Arrival arrived = {};
  };
  struct PendingCount {
    std::uint64_t step = 0;
  };
  struct PendingEndStep {
    std::uint64_t step = 0;
    std::vector<Slot> pushed;
  };
  struct PendingDeclare {
    KeySlots slots;
    protocol::KeyBody body;
  };
  // Work that the session has handed over. Its chunks and parts are not known before the welcome.
  using Pending = std::variant<PendingPush, PendingPull, PendingRows, PendingCount, PendingEndStep,
                               protocol::Save, PendingDeclare, protocol::SetOptimizer, protocol::Barrier,
                               protocol::CutKeys, protocol::CountGone>;

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
  struct KeyState {
    protocol::ContractPiece piece;
    bool declared = false;  // the server has answered
    Status status;
    std::uint64_t pushes = 0, since = 0;      // at the time of the declaration
    std::uint64_t done_below = 0;             // the server has the pushes of steps below
    std::deque<std::size_t> open;             // pushes and their messages in flight, by step from there on
    std::map<std::uint64_t, Arriving> pulls;  // in flight, by version
    std::map<std::uint64_t, Updates> pulled;  // TakePulled
    std::multiset<std::uint64_t> rows;        // versions of requests for rows in flight
  };
  struct Variable {
    std::uint32_t position = 0;  // in the contract; of a key, behind it
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
    std::unique_ptr<KeyState> key;  // of a key of a key-value store
  };
  struct ArrivingRows {  // of one request for rows
    std::uint64_t version = 0;
    Slot slot = 0;
    std::uint32_t shard = 0;
    std::shared_ptr<const RowOrder> order;  // null: the rows of the table are of one shard
    Target to;
    std::size_t begin = 0, bytes = 0;  // in `to`; with an order, of the sorted rows
    std::size_t parts_left = 0;
    std::vector<bool> have;     // per part
    std::uint32_t updates = 0;  // the number of updates that those parts include
    bool whole = false;
    Arrival arrived;
  };
  // The pull of this version that is in flight; null: there is none.
  static Arriving* ArrivingOf(Variable& variable, std::uint64_t version);
  // The earliest pull in flight.
  static const Arriving* FirstArriving(const Variable& variable);
  const protocol::ContractPiece& PieceOf(const Variable& variable) const {
    return variable.key == nullptr ? contract_.Variable(variable.position) : variable.key->piece;
  }
  Variable* At(std::uint32_t position) {
    if (position >= slot_of_.size() || slot_of_[position] == kNoSlot) return nullptr;
    return &variables_[slot_of_[position]];
  }
  static constexpr Slot kNoSlot = 0xffffffff;  // of a key that this worker has not declared
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

  // link_pushes.cc: outgoing; link_rows.cc: rows by id, and their answers.
  void HandOver(Pending pending);
  void Dispatch(Pending& pending);
  void Send(PendingPush& push);
  void Send(PendingPull& pull);
  void Send(PendingRows& rows);
  void Request(const PendingRows& rows, std::uint32_t shard, std::size_t begin, std::size_t count);
  void Send(PendingCount& count);
  void Send(PendingEndStep& end);
  void Send(protocol::Save& save);
  void RequestRows(Slot slot, std::span<const std::int64_t> ids, Tensor& out, std::uint64_t version);
  void Send(PendingDeclare& declare);
  void Send(protocol::SetOptimizer& set);
  void Send(protocol::Barrier& barrier);
  void Send(protocol::CutKeys& cut);
  void Send(protocol::CountGone& count);
  Slot AddKeyVariable(protocol::ContractPiece piece, bool is_gradient);
  void CutKey(Variable& variable, const protocol::KeyDeclaredBody& declared) const;
  void EndKeyPush(KeyState& key, std::uint64_t step);
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
  void SendBatch();
  // As the variable is cut in this push.
  static VariableCut CutOf(const Variable& variable, const PendingPush& push);

  // link_order.cc: pushes of keys that wait, by priority.
  struct Turn {
    int priority = 0;
    std::uint64_t order = 0;
    Slot slot = 0;

    bool operator<(const Turn& other) const {
      return std::tie(other.priority, order) < std::tie(priority, other.order);
    }
  };
  static Turn TurnOf(const PendingPush& push) { return {push.priority, push.order, push.slot}; }
  // Whether the push's next chunk may be sent. If not, the push has its place among those that wait.
  bool TakesTurn(const Variable& variable, const PendingPush& push);
  void SendByPriority();
  Status OpenPush(Slot slot);
  // Counts each push, and each of its messages.
  void BeginPush(const Variable& variable, std::uint64_t step);
  void EndPush(const Variable& variable, std::uint64_t step);
  Extent PartOf(Extent whole, std::uint32_t part) const {
    return client::PartOf(whole, part, cut_.part_bytes);
  }
  std::size_t PartsOf(std::size_t bytes) const { return client::PartsOf(bytes, cut_.part_bytes); }

  // link_replies.cc: incoming.
  void OnReplies(const std::shared_ptr<Connection>& from, const protocol::Sender& sender,
                 std::span<const protocol::Reply> replies);
  void OnUnreadable(const std::shared_ptr<Connection>& from, const Status& why);
  Status Take(const protocol::Reply& reply, std::uint64_t contract);
  Status On(const protocol::Welcome& welcome);
  Status CheckStep(std::uint64_t named) const;
  Status CheckLacks(const protocol::WelcomeBody& welcome) const;
  std::optional<Status> CannotRepeat(std::uint64_t version, const protocol::ContractPiece& piece) const;
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
  Status On(const protocol::KeyDeclared& declared);
  Status On(const protocol::OptimizerSet& set);
  Status On(const protocol::BarrierPassed& passed);
  Status On(const protocol::KeysCut& cut);
  Status On(const protocol::GoneCounted& counted);
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
  void EndKeyPull(KeyState& key, Arriving& arriving);
  // Whether a pull that was made before the push is in flight. The push waits for it: otherwise a pull that
  // is lost on its way and sent again might come after the round of that push.
  bool FollowsPull(const PendingPush& push) const;
  void SendPushesBehind(const Variable& value);
  ArrivingRows* RowsOf(std::uint32_t request);

  // link_recovery.cc: for a server that may be started again by itself, what none of its checkpoints has.
  bool Recovers() const { return incarnation_ > 0; }
  bool TakeIncarnation(const protocol::WelcomeBody& welcome);  // returns whether it was started again
  void BeginAgain(std::uint64_t version);
  void SendAgain(Slot slot, std::uint32_t chunk);
  void ReleaseBelow(std::uint64_t version);
  void SendAllAgain();
  void SendGradientsAgain();
  void ForgetNewest(Variable& variable);
  void ForgetNewestRows();
  void AskForCredit(Nanoseconds now);
  bool KeepAcknowledged(const protocol::Push& push);  // returns whether that was awaited
  void KeepEnded(const protocol::EndStep& end);
  bool KeepCounted(std::uint64_t step);  // returns whether that was awaited
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
  int held_ = 0;  // calls of Hold without Release
  protocol::BatchWriter batch_;
  std::set<Turn> turns_;
  std::uint64_t orders_ = 0;
  std::size_t pushes_waiting_ = 0;  // for credit
  std::vector<Slot> pushed_;        // in the open step
  std::size_t pulls_ = 0;           // in flight
  PullTargets targets_;             // of those
  std::deque<ArrivingRows> rows_;   // by request, from `first_request_` on; the first is incomplete
  std::uint32_t first_request_ = 0;
  std::map<std::uint64_t, Status> optimizers_;   // what the server has answered, by number
  std::uint64_t barrier_ = 0;                    // the last that is passed
  std::uint64_t cut_taken_ = 0;                  // the last CutKeys that the server has
  std::uint32_t counts_ = 0;                     // of CountGone
  std::map<std::uint32_t, std::uint64_t> gone_;  // answers to them, by number
  std::uint32_t saves_ = 0;                      // requested so far
  Status saved_;
  std::string answer_;
  bool changed_ = false;  // the current reply changed an answer that may be waited for
  std::uint64_t visited_ = 0;
};

}  // namespace penstock::client
