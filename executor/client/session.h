// A trainer's side of its parameter servers, without waiting: calls hand work over, messages and Tick move it
// on, and the Done questions say how far it is. The blocking client (client.h) and the simulator run this
// object.
//
//   session.Attach(trainer_program);                    // connects, sends each server a hello
//   session.Push(push, gradient);  session.EndStep(peers);  session.Pull(pull, param);
//   ... until session.PullsDone() or !session.status().ok()
//
// A trainer's step is the count of its EndSteps; Pull asks for the version of that number. Everything sent is
// kept until the server has acknowledged it, and sent again after `resend_after`: servers recognise repeats.
// Thread-safe. Whoever destroys it has closed all connections (AllClosed).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "executor/protocol/bodies.h"
#include "executor/protocol/contract.h"
#include "executor/protocol/envelope.h"
#include "framework/base/hash.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/transport.h"

namespace penstock::client {

struct SessionOptions {
  std::string job;
  // Where servers save tables, if this process knows: paths in it are told as names in it.
  std::string checkpoint_folder;
  int trainers = 0;               // as this process was told; 0: it was not
  std::uint64_t incarnation = 1;  // larger at each start of this trainer
  Nanoseconds resend_after = std::chrono::seconds(30);
  Nanoseconds reconnect_after = std::chrono::milliseconds(200);
  // A server that has not answered by then fails the job: it is not coming, or has been and gone.
  Nanoseconds connect_deadline = std::chrono::minutes(10);
  std::function<void(const std::string&)> report = [](const std::string&) {};  // a line for the user
  // Called when an answer below may have changed; must not call back.
  std::function<void()> on_change = [] {};
  // Called when a peer's failure, not one of this trainer's, ends the job; must not call back; may be empty.
  std::function<void(const Status&)> on_reaction;
  Clock* clock = &SystemClock();
};

class Session : public ConnectionHandler {
 public:
  Session(Transport& transport, SessionOptions options)
      : transport_(transport), options_(std::move(options)), job_hash_(Fnv1a64(options_.job)) {}

  Status Attach(const Program& program);
  Result<PushHandle> DeclarePush(const RemotePiece& piece);
  Result<PullHandle> DeclarePull(const RemotePiece& piece);
  Result<RowsHandle> DeclareRows(const RemotePiece& piece);
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers);

  Status PushInitial(const InitialPiece& piece);  // copied
  Status Push(PushHandle handle, const Tensor& value);
  Status PushRows(PushHandle handle, const SelectedRows& value);  // copied
  Status EndStep(PeersHandle handle);
  Status Pull(PullHandle handle, Tensor& out);
  Status PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out);
  Status SaveTable(PeersHandle handle, const std::string& table, const std::vector<std::string>& files);
  // Once SavesDone: what the servers said.
  Status TakeSaved();
  Status Complete();
  void Cancel();
  // Tells the servers that this trainer ends without completing, and why. Without effect once they know that
  // it has completed.
  void Abandon(const Status& why);
  // Ends all connections, in order or at once, without completing: for the servers this trainer is dead.
  void Close();
  void Abort();
  bool AllClosed() const;

  // Every push of steps before `step` has arrived, and every first value.
  bool EarlierPushesDone(std::uint64_t step) const;
  bool PullsDone() const;
  bool RowsDone() const;
  bool SavesDone() const;
  bool IsPulling(PullHandle handle) const;
  bool PullWaitsAtBarrier(PullHandle handle) const;
  bool CompleteDone() const;  // all servers know
  Status status() const;      // the first error; it stays
  std::uint64_t step() const;
  int trainer() const;  // its id; -1 before a program said it

  // Sends again what was not acknowledged, connects again, watches the deadline. Several times a second.
  void Tick();
  // Asks the server of the oldest pull what it waits for; a later WaitingFor tells. Tells every server what
  // this trainer waits for.
  void Ask();
  // "version 1205 of w on pserver 10.0.0.2:6174, which waits for trainer 3 (last heard 11 s ago)"; "" if for
  // nothing.
  std::string WaitingFor() const;
  // How many entries of the queues were looked at so far, for tests of what a message costs.
  std::uint64_t entries_visited() const;

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

 private:
  // Kind, step, variable, chunk, part: what an answer repeats.
  using Key = std::tuple<protocol::MessageKind, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Sent {
    Message message;
    Nanoseconds at;
    bool first_value = false;  // of a push: of a parameter's first value, which is earlier than any step
  };
  struct Ready {  // what waits for the server's welcome, or for credit
    protocol::MessageKind kind;
    std::uint64_t step;
    std::uint32_t variable;
    std::uint32_t chunk;        // of a push: those before it were sent
    Tensor value;               // of a push of a tensor
    Payload body;               // of others
    std::uint64_t rows = 0;     // of a push of rows: how many
    Nanoseconds asked{0};       // of a push that lacks credit: when we asked for some
    std::uint32_t request = 0;  // of a question for rows, and of one to save them
    bool first_value = false;   // as of Sent
  };
  struct Arriving {  // one pull
    std::uint64_t version;
    Tensor out;                                       // shares the caller's buffer
    std::map<std::uint32_t, std::vector<bool>> have;  // by chunk not yet whole: the parts that came
    std::size_t chunks_left = 0;
  };
  struct ArrivingRows {  // those of one request
    std::uint64_t version;
    std::uint32_t variable;
    Tensor out;  // shares the caller's buffer
    std::size_t begin = 0, bytes = 0;
    std::vector<bool> have;  // the parts that came; empty until it was sent
  };
  struct Peer {
    std::string address;
    protocol::Contract contract;
    std::uint64_t contract_hash = 0;  // of `contract`, which is long: every message carries it
    std::string job_facts;            // of the programs attached; empty: they have none
    std::shared_ptr<Connection> connection;
    bool welcome = false;      // it has accepted `contract`
    bool was_welcome = false;  // it has accepted us at least once
    bool completed = false;
    bool closed = true;
    Nanoseconds since{0};  // trying to connect
    Nanoseconds closed_at{0};
    Nanoseconds heard{0};
    protocol::WelcomeBody cut;
    std::deque<Ready> ready;                               // what waits for the welcome, and Complete
    std::map<std::uint32_t, std::deque<Ready>> no_credit;  // pushes that wait for credit, by variable
    std::map<Key, Sent> sent;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>
        credit;                                           // by variable, chunk; default: the window
    std::map<std::uint32_t, Arriving> arriving;           // by param
    std::map<std::uint32_t, ArrivingRows> arriving_rows;  // by request
    std::uint32_t requests = 0;                           // for rows, so far
    std::uint32_t saves = 0;                              // asked for, so far
    std::set<std::uint32_t> pushed;                       // in the open step
    std::set<std::uint32_t> started;                      // params whose first value was sent
    std::set<std::uint32_t> initial;                      // params and tables whose initial value was sent
    std::string answer;
  };
  struct Declared {
    Peer* peer;
    std::string name;
    bool at_barrier = false;
  };

  Status PushStart(Peer& peer, int param, const Tensor& value);
  Status AdoptContract(const std::string& address, const protocol::Contract& contract,
                       const std::string& job_facts);
  void Connect(Peer& peer);
  void Hello(Peer& peer);
  void Enqueue(Peer& peer, Ready ready);
  void Flush(Peer& peer);
  void FlushNoCredit(Peer& peer, std::uint32_t variable);
  void FlushAll(Peer& peer);
  bool FlushOne(Peer& peer, Ready& ready);   // false: it stays
  bool FlushPush(Peer& peer, Ready& ready);  // false: some of it lacks credit
  void FlushRows(Peer& peer, const Ready& ready);
  void FlushPull(Peer& peer, const Ready& ready);
  void FlushRowsPull(Peer& peer, const Ready& ready);
  void SendKept(Peer& peer, protocol::Envelope envelope, Payload body, bool first_value = false);
  void Acknowledge(Peer& peer, const Key& key);
  static void ForgetHellos(Peer& peer);
  // Counts a push or a save that begins (1) or ends (-1) to be under way, in a queue or as a message.
  void CountOpen(protocol::MessageKind kind, std::uint64_t step, bool first_value, int change);
  Message SealFor(const Peer& peer, protocol::Envelope envelope, Payload body) const;
  Status OnEnvelope(Peer& peer, const protocol::Envelope& envelope, const Message& message);
  Status OnWelcome(Peer& peer, const protocol::Envelope& envelope, const Message& message);
  Status CheckOpen() const;
  Status OnPulled(Peer& peer, const protocol::Envelope& envelope, const Payload& body);
  void TakeCredit(Peer& peer, const protocol::Envelope& envelope);
  Status OnRows(Peer& peer, const protocol::Envelope& envelope, const Payload& body);
  Status OnSaved(Peer& peer, const protocol::Envelope& envelope, const Payload& body);
  void OnLeft(const protocol::Envelope& envelope);
  Status OnRowsGone(const Peer& peer, const protocol::Envelope& envelope) const;
  void Fail(Status why);
  void React(Status why);  // fails because a peer did
  std::string WaitingForLocked() const;
  bool CompleteDoneLocked() const;
  Peer* PeerOf(const std::shared_ptr<Connection>& connection);
  static const protocol::ContractPiece& PieceOf(const Peer& peer, std::uint32_t variable) {
    return peer.contract.Variable(variable);
  }
  // The gradient that is pushed now, once a step.
  Result<std::uint32_t> OpenPush(const Declared& declared);
  static std::size_t ChunkCount(const Peer& peer, std::uint32_t variable);
  static std::pair<std::size_t, std::size_t> ChunkBytes(const Peer& peer, std::uint32_t variable,
                                                        std::uint32_t chunk);

  Transport& transport_;
  const SessionOptions options_;
  const std::uint64_t job_hash_;
  mutable std::mutex mutex_;
  Status status_;
  int trainer_ = -1;
  std::uint64_t step_ = 0;
  bool at_barrier_ = false;  // of the program attached last
  bool completing_ = false;
  Status saved_;                  // the first error of the saves under way
  std::set<std::uint64_t> left_;  // trainers of which we have said that they completed
  // What EarlierPushesDone and SavesDone answer from, whatever is under way.
  std::map<std::uint64_t, std::size_t> pushes_open_;  // by step
  std::size_t first_values_open_ = 0, saves_open_ = 0;
  std::uint64_t entries_visited_ = 0;
  std::map<std::string, std::unique_ptr<Peer>> peers_;
  std::vector<Declared> pushes_;
  std::deque<Declared> pulls_;
  std::vector<Declared> tables_;
  std::vector<std::vector<Peer*>> groups_;
};

}  // namespace penstock::client
