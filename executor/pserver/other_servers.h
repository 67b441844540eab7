// The other servers with which a server exchanges sums: for each, an outgoing call that sends this server's
// sums, and an incoming call that receives theirs.
//
//   OtherServers others(exchange, "my job", job_facts, options);
//   others.Dial(dialer, handler);                     // says hello to each
//   others.Tell(7, sums);                             // to each, repeated until acknowledged
//   others.Complete();                                // this server's trainers have completed
//
// Each side speaks only on its own call, so it does not matter who connects first. Sums are kept until they
// are acknowledged, for at most two steps. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/observe/observer.h"
#include "executor/pserver/service/service.h"
#include "framework/roles/pserver_facts.h"
#include "framework/runtime/clock.h"

namespace penstock::pserver {

struct OtherServersOptions {
  Clock* clock = &SystemClock();
  observe::Observer* observer = nullptr;
  Nanoseconds resend_after = std::chrono::seconds(1);
  Nanoseconds redial_after = std::chrono::milliseconds(500);
  Nanoseconds connect_deadline = std::chrono::minutes(15);  // for a server to come up
  Nanoseconds reconnect_deadline{0};                        // as in PserverOptions
  bool proven = true;                                       // as in PserverOptions
};

class OtherServers {
 public:
  // The exchange must outlive this; it may be empty.
  OtherServers(const roles::ServedExchange& exchange, std::string job, std::string job_facts,
               OtherServersOptions options);

  // Positions in the exchange, without this server's.
  const std::vector<int>& all() const { return all_; }
  const std::string& address(int server) const;
  // "pserver 10.0.0.2:6174"
  std::string NameOf(int server) const { return "pserver " + address(server); }
  // Servers that have not come yet, or that this one has not reached.
  std::vector<int> Awaited() const;
  // "pserver 10.0.0.2:6174 (last heard 11 s ago)"
  std::string Describe(int server) const;
  const observe::PeerNotes& notes(int server) const { return At(server).notes; }
  Nanoseconds heard(int server) const { return At(server).heard; }
  void Hear(int server, std::uint64_t bytes);

  // --- Incoming calls.

  // kFailedPrecondition E-rpc-job, E-rpc-second; kInvalidArgument E-plan-mismatch, E-job-mismatch.
  Status Check(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
               const protocol::ServerHello& hello) const;
  void Admit(int server, const std::shared_ptr<Caller>& from);
  void Reply(int server, protocol::Reply reply);
  std::optional<int> Find(const Caller* caller) const;
  // Its call has ended.
  void Forget(int server) { At(server).caller = nullptr; }
  // Whether it has sent sums on this call: without a token, anyone could have sent the hello.
  bool worked(int server) const { return At(server).worked; }
  void SetWorked(int server) { At(server).worked = true; }

  // --- Outgoing calls.

  void Dial(Dialer& dialer, ReplyHandler& handler);
  std::optional<int> Find(const Callee* callee) const;
  struct Outage {
    int server = -1;
    Nanoseconds lasted{0};
    std::string how;  // the connection was lost
    bool late = false;
  };
  // The server accepts this server's sums. Returns the outage that this has ended, if any.
  std::optional<Outage> Welcomed(int server);
  bool was_welcome(int server) const { return At(server).welcome || At(server).lost.has_value(); }
  void Tell(std::uint64_t step, const Payload& sums);
  void Taken(int server, std::uint64_t step) { At(server).told.erase(step); }
  // The call has ended, as `how` says; returns whether Tick calls again.
  bool CalleeClosed(int server, const Status& why, const std::string& how);
  // Resends what was not acknowledged, and reconnects. kDeadlineExceeded E-peer-connect.
  Status Tick();
  // The first server whose call has broken and that does not come back: nothing listens at its address any
  // more, or the deadline has passed. Told once.
  std::optional<Outage> TakeGone();

  // --- The end.

  // Sends this server's final message to each. With an error, the calls end.
  void Complete();
  void Fail(const Status& why);
  // The other server knows that this one has ended: ends the call.
  void Released(int server);
  // The other server has sent its final message.
  void SetCompleted(int server) { At(server).completed = true; }
  // Whether some servers do not know yet that this one has ended, or have not ended themselves.
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
    bool welcome = false;  // it has accepted this server
    struct Lost {
      Nanoseconds at{0};
      std::string how;
    };
    std::optional<Lost> lost;  // the call to it has broken since its last welcome
    bool released = false;
    bool completed = false;
    Nanoseconds said{0};  // when the hello or the final message was sent
    Nanoseconds closed_at{0};
    Nanoseconds heard{0};
    std::map<std::uint64_t, Told> told;  // by step; not yet acknowledged
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
