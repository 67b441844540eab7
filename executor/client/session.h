// A trainer's side of its parameter servers, without waiting: calls hand work over, messages and Tick move it
// on, and the Done questions say how far it is. The blocking client (client.h) and the simulator run this
// object.
//
//   session.Attach(trainer_program);                    // connects, sends each server a hello
//   session.Push(push, gradient);  session.EndStep(peers);  session.Pull(pull, param);
//   ... until session.PullsDone() or !session.status().ok()
//
// A trainer's step is the count of its EndSteps; Pull asks for the version of that number. In a program that
// has no send_barrier a step ends by itself, as RpcClient::EndStep says, at all servers. Everything sent is
// kept until the server has acknowledged it, and sent again after `resend_after`: servers recognise repeats.
//
// It has a Link per server (link.h), which does the work, and itself only knows which handle is whose, and
// the first error. A handle is resolved when it is declared. Thread-safe; locks are taken in the order
// session, link, step tracker, and what arrives takes that of its link alone. Whoever destroys it has closed
// all connections (AllClosed).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
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
      : options_(std::move(options)), environment_{transport, options_, steps_, *this} {}

  Status Attach(const Program& program);
  Result<PushHandle> DeclarePush(const RemotePiece& piece);
  Result<PullHandle> DeclarePull(const RemotePiece& piece);
  Result<RowsHandle> DeclareRows(const RemotePiece& piece);
  Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers);

  Status PushInitial(const InitialPiece& piece);  // copied
  Status Push(PushHandle handle, const Tensor& value, const Tensor& residual = {});
  Status PushRows(PushHandle handle, const SelectedRows& value);  // copied
  Status CountStep(PeersHandle handle);
  Status EndStep(PeersHandle handle);
  // Fills `out` where it is if its type and shape are the piece's, so that it may be rows of a larger tensor.
  Status Pull(PullHandle handle, Tensor& out) { return PullAs(handle, out, {}); }
  // Nobody waits for this one alone: it is not told of.
  Status PullAhead(PullHandle handle, Tensor& out) { return PullAs(handle, out, Landing::kWithOthers); }
  Status PullRows(RowsHandle handle, std::span<const std::int64_t> ids, Tensor& out);
  // `out` has the rows once PullsDone.
  Status PullChanged(PullHandle handle, std::shared_ptr<SelectedRows> out);
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

  // Every push of steps before `step` has arrived, and every initial value.
  bool EarlierPushesDone(std::uint64_t step) const { return steps_.EarlierPushesDone(step); }
  bool PullsDone() const { return steps_.Done(Work::kPulls); }
  bool RowsDone() const { return steps_.Done(Work::kRows); }
  bool SavesDone() const { return steps_.Done(Work::kSaves); }
  bool IsPulling(PullHandle handle) const;
  bool PullWaitsAtBarrier(PullHandle handle) const;
  bool CompleteDone() const;  // all servers know
  Status status() const;      // the first error; it stays
  std::uint64_t step() const { return steps_.step(); }
  int trainer() const;  // its id; -1 before a program said it

  // Sends again what was not acknowledged, connects again, watches the deadline. Several times a second.
  void Tick();
  // Asks the server of the oldest pull what it waits for; a later WaitingFor tells. Tells every server what
  // this trainer waits for.
  void Ask();
  // "version 1205 of w on pserver 10.0.0.2:6174, which waits for trainer 3 (last heard 11 s ago)"; "" if for
  // nothing.
  std::string WaitingFor() const;
  // The same, with when its server was heard last; it is recorded.
  std::string ReportWait() const;
  // How many entries of the queues were looked at so far, for tests of what a message costs.
  std::uint64_t entries_visited() const;

 private:
  struct Declared {
    Link* link = nullptr;
    Slot slot = 0;
    Landing landing = Landing::kAlone;  // of a pull
    std::uint64_t asked_before = 0;     // of rows: in no step from here on
  };
  using Handles = std::vector<Declared>;
  static const Declared& Of(const Handles& handles, int index) {
    return handles[static_cast<std::size_t>(index)];
  }

  void OnLinkFailure(Status why, bool by_peer) override;
  void OnLeft(const protocol::Left& left) override;

  // With the lock.
  Link* FindLink(const std::string& address) const;
  Status CheckOpen() const;
  Status PullAs(PullHandle handle, Tensor& out, std::optional<Landing> landing);
  template <typename Send>
  Status PushWith(PushHandle handle, const Send& send);
  void EndOpenStep();
  void CountStepEnded();
  void Fail(Status why, bool by_peer);
  bool CompleteDoneLocked() const { return completing_ && steps_.Done(Work::kCompletes); }
  Link::Waiting FirstWaiting() const;

  const SessionOptions options_;
  StepTracker steps_;
  const LinkEnvironment environment_;
  mutable std::mutex mutex_;  // of what follows, but not of what is inside a link
  Status status_;
  int trainer_ = -1;
  Landing landing_ = Landing::kAlone;  // as the program attached last has it
  bool completing_ = false;
  bool ends_steps_ = false;       // a program attached has no send_barrier
  bool copies_pushes_ = false;    // nothing in it says when a gradient may be overwritten
  bool open_ = false;             // gradients were pushed in the open step
  bool counted_ = false;          // the servers were told of it
  std::set<std::uint64_t> left_;  // trainers of which we have said that they completed
  std::map<std::string, std::unique_ptr<Link>> links_;  // by address
  Handles pushes_, pulls_, tables_;
  std::vector<std::vector<Link*>> groups_;
};

}  // namespace penstock::client
