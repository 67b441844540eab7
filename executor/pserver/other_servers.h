// The other servers with which a server exchanges sums: a call to each, by which it tells its own, and a call
// of each, by which it is told theirs.
//
//   OtherServers others(exchange, "my job", job_facts, options);
//   others.Dial(dialer, handler);                     // says hello to each
//   others.Tell(7, sums);                             // to each, again until it has them
//   others.Complete();                                // this server's trainers have completed
//
// Each side's own call is where it speaks, so that neither needs to know who dialled first. What was told is
// kept until it is acknowledged, at most two steps of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/observe/observer.h"
#include "executor/pserver/service.h"
#include "framework/roles/server_role.h"
#include "framework/runtime/clock.h"

namespace penstock::pserver {

struct OtherServersOptions {
  Clock* clock = &SystemClock();
  observe::Observer* observer = nullptr;
  Nanoseconds resend_after = std::chrono::seconds(1);
  Nanoseconds redial_after = std::chrono::milliseconds(500);
  Nanoseconds connect_deadline = std::chrono::minutes(10);  // for a server that does not come up
};

class OtherServers {
 public:
  // The exchange outlives this; it may be none.
  OtherServers(const roles::ServedExchange& exchange, std::string job, std::string job_facts,
               OtherServersOptions options);

  // Positions in the exchange; of this server there is nothing.
  const std::vector<int>& all() const { return all_; }
  const std::string& address(int server) const;
  // "pserver 10.0.0.2:6174"
  std::string NameOf(int server) const { return "pserver " + address(server); }
  // Of those that have not come yet, or whom this one has not reached.
  std::vector<int> Awaited() const;
  // "pserver 10.0.0.2:6174 (last heard 11 s ago)"
  std::string Describe(int server) const;
  const observe::PeerNotes& notes(int server) const { return At(server).notes; }
  Nanoseconds heard(int server) const { return At(server).heard; }
  void Hear(int server, std::uint64_t bytes);

  // --- Calls of others.

  // kFailedPrecondition E-rpc-job, E-rpc-second; kInvalidArgument E-plan-mismatch, E-job-mismatch.
  Status Check(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
               const protocol::ServerHello& hello) const;
  void Admit(int server, const std::shared_ptr<Caller>& from);
  void Reply(int server, protocol::Reply reply);
  std::optional<int> Find(const Caller* caller) const;
  // Its call has ended.
  void Forget(int server) { At(server).caller = nullptr; }
  // It has told sums on this call: anybody could have sent the hello of a job without a token.
  bool worked(int server) const { return At(server).worked; }
  void SetWorked(int server) { At(server).worked = true; }

  // --- Calls to others.

  void Dial(Dialer& dialer, ReplyHandler& handler);
  std::optional<int> Find(const Callee* callee) const;
  // The server takes what this one tells.
  void Welcomed(int server);
  bool was_welcome(int server) const { return At(server).welcome; }
  void Tell(std::uint64_t step, const Payload& sums);
  void Taken(int server, std::uint64_t step) { At(server).told.erase(step); }
  // The call has ended; what may pass is tried again by Tick. Whether it may.
  bool CalleeClosed(int server, const Status& why);
  // Says again what was not answered, and calls again. kDeadlineExceeded E-peer-connect.
  Status Tick();

  // --- The end.

  // Of this server: its last word, to each. With an error, the calls end.
  void Complete();
  void Fail(const Status& why);
  // The other server has heard that this one has ended: the call ends.
  void Released(int server);
  // Of the other server: its last word.
  void SetCompleted(int server) { At(server).completed = true; }
  // Some have not heard that this one has ended, or not said that they have.
  bool AnyAtWork() const;

 private:
  struct Told {
    Payload sums;
    Nanoseconds at{0};
  };
  struct Other {
    std::shared_ptr<Caller> caller;  // null: not there
    std::shared_ptr<Callee> callee;  // null: closed
    bool came = false;
    bool worked = false;
    bool welcome = false;  // by it
    bool released = false;
    bool completed = false;
    Nanoseconds said{0};  // hello or the last word
    Nanoseconds closed_at{0};
    Nanoseconds heard{0};
    std::map<std::uint64_t, Told> told;  // by step; not acknowledged
    observe::PeerNotes notes;
  };
  const Other& At(int server) const { return others_[static_cast<std::size_t>(server)]; }
  Other& At(int server) { return others_[static_cast<std::size_t>(server)]; }
  void Call(int server);
  void Say(int server, protocol::Event event);
  void SayHello(int server);
  void SayComplete(int server);

  const roles::ServedExchange& exchange_;
  const std::string job_, job_facts_, text_;
  const OtherServersOptions options_;
  const protocol::Sender self_;
  std::vector<int> all_;
  std::vector<Other> others_;  // by position
  Dialer* dialer_ = nullptr;
  ReplyHandler* handler_ = nullptr;
  Nanoseconds began_{0};
  bool completing_ = false;
  bool failed_ = false;
};

}  // namespace penstock::pserver
