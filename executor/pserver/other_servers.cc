#include "executor/pserver/other_servers.h"

#include <algorithm>
#include <utility>

#include "executor/protocol/contract.h"
#include "executor/protocol/payload_bytes.h"
#include "framework/base/hash.h"
#include "framework/text/job_facts.h"

namespace penstock::pserver {

OtherServers::OtherServers(const roles::ServedExchange& exchange, std::string job, std::string job_facts,
                           OtherServersOptions options)
    : exchange_(exchange),
      job_(std::move(job)),
      job_facts_(std::move(job_facts)),
      text_(exchange.ToText()),
      options_(options),
      self_{.job = Fnv1a64(job_), .contract = Fnv1a64(text_)},
      others_(exchange.servers.size()),
      began_(options.clock->Now()) {
  for (int server = 0; server < static_cast<int>(others_.size()); ++server) {
    if (server == exchange_.self) continue;
    all_.push_back(server);
    At(server).notes = observe::PeerNotes(options_.observer, NameOf(server));
    At(server).heard = began_;
  }
}

const std::string& OtherServers::address(int server) const {
  return exchange_.servers[static_cast<std::size_t>(server)];
}

std::vector<int> OtherServers::Awaited() const {
  std::vector<int> awaited;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(awaited),
               [&](int server) { return !At(server).came || (!At(server).welcome && !At(server).lost); });
  return awaited;
}

std::string OtherServers::Describe(int server) const {
  if (!At(server).came) return StrCat(NameOf(server), " (not started yet)");
  return StrCat(NameOf(server), " (last heard ", WholeSeconds(options_.clock->Now() - At(server).heard),
                " s ago)");
}

void OtherServers::Hear(int server, std::uint64_t bytes) {
  At(server).heard = options_.clock->Now();
  At(server).notes.Received(bytes);
}

Status OtherServers::Check(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                           const protocol::ServerHello& hello) const {
  const std::string here = StrCat("pserver ", exchange_.servers.empty() ? "" : address(exchange_.self));
  if (sender.job != self_.job || hello.body.job != job_) {
    return FailedPrecondition("E-rpc-job", here, " works for job ", Quote(job_), ", another pserver for ",
                              Quote(hello.body.job));
  }
  const bool known = std::find(all_.begin(), all_.end(), static_cast<int>(hello.server)) != all_.end();
  if (!known || sender.contract != self_.contract) {
    return InvalidArgument("E-plan-mismatch", "plan: two pservers of the job exchange different sums")
        .With(StrCat("first difference, ", protocol::FirstDifference(text_, hello.body.contract)))
        .With(StrCat("left: ", here, "; right: number ", hello.server,
                     " of those that exchange sums. Transpile all roles from one program and configuration"));
  }
  const int server = static_cast<int>(hello.server);
  if (const auto difference = FirstJobDifference(job_facts_, hello.body.job_facts)) {
    return InvalidArgument("E-job-mismatch", "job: ", here, " ", difference->here, "; ", NameOf(server), " ",
                           difference->there)
        .With("Transpile all roles from one program and configuration");
  }
  const std::optional<int> before = Find(from.get());
  // With a deadline for reconnecting, a new call replaces one whose end was not noticed yet, unless anyone
  // could have made it.
  const bool replaces = options_.proven && options_.reconnect_deadline > Nanoseconds(0);
  if (before == server || (!before && (At(server).caller == nullptr || replaces))) return OkStatus();
  return FailedPrecondition("E-rpc-second", NameOf(server), " is connected to ", here,
                            " already; this is its second connection");
}

void OtherServers::Admit(int server, const std::shared_ptr<Caller>& from) {
  Other& other = At(server);
  if (other.caller != nullptr && other.caller != from) other.caller->Close();
  other.caller = from;
  if (!std::exchange(other.came, true)) other.notes.Record(observe::EventKind::kPeerCame, 0);
  Reply(server, protocol::ServerWelcome{});
}

void OtherServers::Reply(int server, protocol::Reply reply) {
  At(server).notes.Sent(0);
  if (At(server).caller != nullptr) At(server).caller->Reply(self_, std::move(reply));
}

std::optional<int> OtherServers::Find(const Caller* caller) const {
  for (const int server : all_) {
    if (At(server).caller != nullptr && At(server).caller.get() == caller) return server;
  }
  return std::nullopt;
}

std::optional<int> OtherServers::Find(const Callee* callee) const {
  for (const int server : all_) {
    if (At(server).callee != nullptr && At(server).callee.get() == callee) return server;
  }
  return std::nullopt;
}

void OtherServers::Dial(Dialer& dialer, ReplyHandler& handler) {
  dialer_ = &dialer;
  handler_ = &handler;
  for (const int server : all_) Call(server);
}

void OtherServers::Call(int server) {
  At(server).callee = dialer_->Dial(address(server), *handler_);
  At(server).notes.Connected();
  SayHello(server);
}

void OtherServers::Say(int server, protocol::Event event) {
  Other& other = At(server);
  if (other.callee == nullptr) return;
  other.notes.Sent(protocol::PayloadBytes(event));
  other.callee->Send(self_, std::move(event));
}

void OtherServers::SayHello(int server) {
  At(server).said = options_.clock->Now();
  Say(server, protocol::ServerHello{
                  .server = static_cast<std::uint32_t>(exchange_.self),
                  .body = {.job = job_, .trainers = 0, .contract = text_, .job_facts = job_facts_}});
}

std::optional<OtherServers::Outage> OtherServers::Welcomed(int server) {
  Other& other = At(server);
  if (std::exchange(other.welcome, true)) return std::nullopt;
  std::optional<Outage> ended;
  if (other.lost) {
    ended = Outage{.server = server,
                   .lasted = options_.clock->Now() - other.lost->at,
                   .how = std::exchange(other.lost, std::nullopt)->how};
  }
  for (auto& [step, told] : other.told) {
    told.at = options_.clock->Now();
    Say(server, protocol::Sums{.step = step, .bytes = told.sums});
  }
  if (completing_) SayComplete(server);
  return ended;
}

void OtherServers::Tell(std::uint64_t step, const Payload& sums) {
  for (const int server : all_) {
    At(server).told[step] = {.sums = sums, .at = options_.clock->Now()};
    if (At(server).welcome) Say(server, protocol::Sums{.step = step, .bytes = sums});
  }
}

bool OtherServers::CalleeClosed(int server, const Status& why, const std::string& how) {
  Other& other = At(server);
  other.callee = nullptr;
  other.closed_at = options_.clock->Now();
  const bool may_pass = why.ok() || why.code() == StatusCode::kUnavailable;
  if (other.welcome && !other.released && !failed_ && may_pass &&
      options_.reconnect_deadline > Nanoseconds(0)) {
    other.welcome = false;
    other.lost = {.at = other.closed_at, .how = how};
  }
  // A server that has not started yet refuses the connection, so a retry may succeed; other errors are
  // permanent.
  return other.released || failed_ || (!other.welcome && may_pass);
}

std::optional<OtherServers::Outage> OtherServers::TakeGone() {
  for (const int server : all_) {
    Other& other = At(server);
    if (!other.lost || failed_) continue;
    const Nanoseconds lasted = options_.clock->Now() - other.lost->at;
    const bool late = lasted > options_.reconnect_deadline;
    if (!late && (other.callee == nullptr || !other.callee->refused())) continue;
    return Outage{.server = server,
                  .lasted = lasted,
                  .how = std::exchange(other.lost, std::nullopt)->how,
                  .late = late};
  }
  return std::nullopt;
}

Status OtherServers::Tick() {
  if (dialer_ == nullptr || failed_) return OkStatus();
  const Nanoseconds now = options_.clock->Now();
  for (const int server : all_) {
    Other& other = At(server);
    if (other.released) continue;
    if (!other.welcome && !other.lost && now - began_ > options_.connect_deadline) {
      return DeadlineExceeded("E-peer-connect", NameOf(server), " has not answered for ",
                              WholeSeconds(now - began_), " s")
          .With("it was not started, or the job ended before this pserver came: its log says which");
    }
    if (other.callee == nullptr) {
      // The first time at once: a host that refuses shows that the process has ended.
      const bool first = other.lost && other.lost->at == other.closed_at;
      if (!other.welcome && (first || now - other.closed_at >= options_.redial_after)) Call(server);
      continue;
    }
    if (!other.welcome && now - other.said >= options_.resend_after) SayHello(server);
    if (!other.welcome) continue;
    for (auto& [step, told] : other.told) {
      if (now - told.at < options_.resend_after) continue;
      told.at = now;
      other.notes.Resent();
      Say(server, protocol::Sums{.step = step, .bytes = told.sums});
    }
    if (completing_ && now - other.said >= options_.resend_after) SayComplete(server);
  }
  return OkStatus();
}

void OtherServers::Complete() {
  completing_ = true;
  for (const int server : all_) {
    if (At(server).welcome) SayComplete(server);
  }
}

void OtherServers::SayComplete(int server) {
  At(server).said = options_.clock->Now();
  Say(server, protocol::Complete{});
}

// Also before the other server's welcome: our hello may be in transit, and the reason follows it.
void OtherServers::Fail(const Status& why) {
  failed_ = true;
  for (const int server : all_) {
    if (At(server).completed) continue;
    Say(server, protocol::Failure{why});
    if (At(server).callee != nullptr) At(server).callee->Close();
  }
}

void OtherServers::Released(int server) {
  At(server).released = true;
  if (At(server).callee != nullptr) At(server).callee->Close();
}

bool OtherServers::AnyAtWork() const {
  return std::any_of(all_.begin(), all_.end(), [&](int server) {
    return !At(server).completed || (!At(server).released && At(server).callee != nullptr);
  });
}

}  // namespace penstock::pserver
