// A trainer's side of its parameter servers, without waiting: calls hand work over, messages and Tick advance
// it, and the Done queries report progress. The blocking client (client.h) and the simulator run the same
// object.
//
//   session.Attach(trainer_program);                    // connects, sends each server a hello
//   session.Push(push, gradient);  session.EndStep(peers);  session.Pull(pull, param);
//   ... until session.PullsDone() or !session.status().ok()
//
// A trainer's step number is its count of EndSteps; Pull asks for the version of that number. In a program
// without send_barrier a step ends by itself, at all servers, as RpcClient::EndStep describes. Messages
// are kept until the server acknowledges them, and resent after `resend_after`; servers recognise duplicates.
//
// A session has one Link per server (link.h), which does the work; the session itself keeps only the handles
// and the first error. Handles are resolved when declared. Thread-safe; locks are taken in the order session,
// link, step tracker, and arriving messages take only their link's. All connections must be closed
// (AllClosed) before it is destroyed.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/client/link.h"
#include "executor/client/session_options.h"
#include "executor/client/step_tracker.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/transport.h"

namespace penstock::client {

class Session : private LinkHost {
 public:
  Session(Transport& transport, SessionOptions options)
      : options_(std::move(options)), environment_{transport, options_, steps_, *this} {
    if (options_.joins != Joins::kAtZero) steps_.AwaitJoin();
  }

  Status Attach(const Program& program);
  // Connects to servers of keys (key_client.h), without a program. The links live as long as the session.
  Status AttachKeys(const std::vector<std::string>& servers, int trainer);
  Link& LinkTo(const std::string& server);
  // Whether the step is known with which this trainer begins (SessionOptions::joins): once all servers of the
  // first program have answered.
  bool Join();
  Result<PushHandle> DeclarePush(const RemotePiece& piece);
  Result<PullHandle> DeclarePull(const RemotePiece& piece);
  Result<RowsHandle> DeclareRows(const RemotePiece& piece);
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers);

  Status PushInitial(const InitialPiece& piece);  // copied
  Status Push(PushHandle handle, const Tensor& value, const Tensor& residual = {});
  Status PushRows(PushHandle handle, const SelectedRows& value);  // copied
  Status CountStep(PeersHandle handle);
  Status EndStep(PeersHandle handle);
  // Fills `out` in place if it has the piece's type and shape, so `out` may be rows of a larger tensor.
  Status Pull(PullHandle handle, Tensor& out) { return PullAs(handle, out, {}); }
  // The caller waits for this pull together with others, so its arrival alone is not signalled.
  Status PullAhead(PullHandle handle, Tensor& out) { return PullAs(handle, out, Landing::kWithOthers); }
  // Pulls the version after the open step before EndStep has ended that step.
  Status PullNext(PullHandle handle, Tensor& out);
  Status PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out);
  // As RpcClient describes it.
  Status PullRowsAhead(RowsHandle handle, std::span<const std::int64_t> ids);
  // `out` has the rows once PullsDone is true.
  Status PullChanged(PullHandle handle, std::shared_ptr<SelectedRows> out);
  Status SaveTable(PeersHandle handle, const std::string& table, const std::vector<std::string>& files);
  // Call once SavesDone is true: returns the first error that a server reported, or ok.
  Status TakeSaved();
  Status Complete();
  void Cancel();
  // Tells the servers that this trainer ends without completing, and why. No effect once they know that it
  // has completed.
  void Abandon(const Status& why);
  // Ends all connections, in order or at once, without completing: the servers consider this trainer dead.
  void Close();
  void Abort();
  bool AllClosed() const;

  // Whether every push of steps before `step`, and every initial value, has arrived.
  bool EarlierPushesDone(std::uint64_t step) const { return steps_.EarlierPushesDone(step); }
  bool PullsDone() const { return steps_.Done(Work::kPulls); }
  bool RowsDone() const { return steps_.Done(Work::kRows); }
  bool SavesDone() const { return steps_.Done(Work::kSaves); }
  bool IsPulling(PullHandle handle) const;
  bool PullWaitsAtBarrier(PullHandle handle) const;
  // Whether a pull in flight will write into the tensor's memory.
  bool IsPullingInto(const Tensor& tensor) const;
  // While on, on_change is called at the end of each pull.
  void SignalEachPull(bool on) { steps_.SignalEachPull(on); }
  bool CompleteDone() const;  // all servers know that this trainer completed
  Status status() const;      // the first error, permanent
  std::uint64_t step() const { return steps_.step(); }
  std::optional<std::uint64_t> first_step() { return steps_.first_step(); }
  int trainer() const;  // its id; -1 until an attached program gives it

  // Resends unacknowledged messages, reconnects, checks the deadline. Call several times a second.
  void Tick();
  // Asks each server what this trainer's first open pull there waits for; a later WaitingFor reports the
  // answer. Tells each server what this trainer waits for.
  void Ask();
  // "version 1205 of w on pserver 10.0.0.2:6174, which waits for trainer 3 (last heard 11 s ago)"; "" if
  // nothing is awaited.
  std::string WaitingFor() const;
  // The same, with the time since the last message from that server; also recorded.
  std::string ReportWait() const;
  // The number of queue entries visited so far, for tests of the cost of a message.
  std::uint64_t entries_visited() const;

 private:
  struct Declared {
    Link* link = nullptr;
    Slot slot = 0;
    Landing landing = Landing::kAlone;  // for a pull
    std::uint64_t asked_before = 0;     // for rows: all requests were in steps below this one
  };
  using Handles = std::vector<Declared>;
  struct Ahead {  // rows that the next step is expected to look up
    std::vector<std::int64_t> ids;
    std::uint64_t step = 0;
    Tensor rows;
    Nanoseconds asked{0};
    std::shared_ptr<std::atomic<std::int64_t>> arrived;  // nanoseconds; 0: not yet
  };
  static const Declared& Of(const Handles& handles, int index) {
    return handles[static_cast<std::size_t>(index)];
  }

  void OnLinkFailure(Status why, bool by_peer) override;
  void OnLeft(const protocol::Left& left) override;

  // Call with the lock held.
  Link* FindLink(const std::string& address) const;
  Status CheckOpen() const;
  Status PullAs(PullHandle handle, Tensor& out, std::optional<Landing> landing);
  template <typename Send>
  Status PushWith(PushHandle handle, const Send& send);
  bool TakeAhead(const Declared& declared, std::span<const std::int64_t> ids, Tensor& out);
  void EndOpenStep();
  void CountStepEnded();
  void Fail(Status why, bool by_peer);
  bool CompleteDoneLocked() const { return completing_ && steps_.Done(Work::kCompletes); }
  Link::Waiting FirstWaiting() const;

  const SessionOptions options_;
  StepTracker steps_;
  const LinkEnvironment environment_;
  mutable std::mutex mutex_;  // guards what follows, but not the state inside a link
  Status status_;
  int trainer_ = -1;
  Landing landing_ = Landing::kAlone;  // from the program attached last
  bool completing_ = false;
  bool ends_steps_ = false;       // an attached program has no send_barrier
  bool copies_pushes_ = false;    // the program does not say when a gradient may be overwritten
  bool open_ = false;             // gradients were pushed in the open step
  bool counted_ = false;          // the servers were told to count the open step
  std::set<std::uint64_t> left_;  // trainers whose completion was reported
  std::map<std::string, std::unique_ptr<Link>> links_;  // by address
  Handles pushes_, pulls_, tables_;
  std::map<std::pair<const Link*, Slot>, Ahead> ahead_;
  std::vector<std::vector<Link*>> groups_;
};

}  // namespace penstock::client
