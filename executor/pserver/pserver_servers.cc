// Messages between servers that exchange sums, and the loss of one of these servers.
#include "executor/protocol/failure.h"
#include "executor/protocol/payload_bytes.h"
#include "executor/pserver/pserver.h"

namespace penstock::pserver {

// A hello of a server of this job that does not match ends the job: a retry would not match either.
void Pserver::On(const From& from, const protocol::ServerHello& hello, Actions& actions) {
  if (trainer_of_.contains(from.caller.get())) {
    return Refuse(from.caller, FailedPrecondition("E-rpc-hello", "trainer ", from.trainer,
                                                  " sent the hello of a pserver"));
  }
  if (const Status fits = others_.Check(from.caller, from.sender, hello); !fits.ok()) {
    Refuse(from.caller, fits);
    const bool is_other = fits.id() == "E-rpc-job" || fits.id() == "E-rpc-second";
    if (options_.proven && !is_other) machine_->Fail(fits, actions);
    return;
  }
  if (ended_.has_value() && !ended_->ok()) return Refuse(from.caller, *ended_);  // the job is over
  from.caller->Admit();
  const int server = static_cast<int>(hello.server);
  others_.Hear(server, 0);
  others_.Admit(server, from.caller);
}

void Pserver::OnServer(int server, const protocol::Event& event, Actions& actions) {
  others_.Hear(server, protocol::PayloadBytes(event));
  if (const auto* sums = std::get_if<protocol::Sums>(&event)) return TakeSums(server, *sums, actions);
  if (const auto* failure = std::get_if<protocol::Failure>(&event)) {
    if (ForgetServer(server)) return;
    return ReactToServer(server, protocol::FailureOf(others_.NameOf(server), failure->why), actions);
  }
  if (std::holds_alternative<protocol::Complete>(event)) {
    others_.SetCompleted(server);
    others_.Reply(server, protocol::Completed{});
    return machine_->ServerCompleted(server, actions);
  }
  if (ForgetServer(server)) return;
  machine_->Fail(
      FailedPrecondition("E-rpc-hello", others_.NameOf(server), " sent what only a trainer may send"),
      actions);
}

// Forgets a server whose identity is unproven and that has sent no sums yet. Returns false if it must be
// treated as lost.
bool Pserver::ForgetServer(int server) {
  if (options_.proven || others_.worked(server)) return false;
  others_.Forget(server);
  return true;
}

// A retry is acknowledged again, because the first acknowledgement may have been lost.
void Pserver::TakeSums(int server, const protocol::Sums& sums, Actions& actions) {
  const std::size_t bytes = facts_.exchange.BytesOf(server);
  if (sums.bytes.size() != bytes) {
    if (ForgetServer(server)) return;
    return machine_->Fail(InvalidArgument("E-rpc-size", others_.NameOf(server), " sent ", sums.bytes.size(),
                                          " bytes of sums instead of ", bytes),
                          actions);
  }
  others_.SetWorked(server);
  // A copy, because the sender may share the memory and change it.
  machine_->TakeSums(server, sums.step, Payload::Of(sums.bytes.ToText()), actions);
  others_.Reply(server, protocol::SumsTaken{sums.step});
}

void Pserver::Replied(int server, const protocol::Reply& reply, Actions& actions) {
  others_.Hear(server, 0);
  if (std::holds_alternative<protocol::ServerWelcome>(reply)) {
    if (const std::optional<OtherServers::Outage> outage = others_.Welcomed(server))
      options_.report(StrCat("pserver ", facts_.address, ": ", others_.NameOf(server),
                             " is connected again after ", protocol::OutageText(outage->lasted), ": ",
                             outage->how));
    return;
  }
  if (std::holds_alternative<protocol::Completed>(reply)) return others_.Released(server);
  if (const auto* taken = std::get_if<protocol::SumsTaken>(&reply)) {
    others_.Taken(server, taken->step);
    return machine_->SumsTaken(server, taken->step, actions);
  }
  const auto* failure = std::get_if<protocol::Failure>(&reply);
  if (failure == nullptr) return;
  // Before its welcome, the failure is its refusal of this server.
  Status why = others_.was_welcome(server) ? protocol::FailureOf(others_.NameOf(server), failure->why)
                                           : Status(failure->why).In(others_.NameOf(server));
  ReactToServer(server, why, actions);
}

void Pserver::CalleeClosed(int server, const Status& why) {
  const std::string how = HowServerClosed(server, why);
  if (others_.CalleeClosed(server, why, how)) {
    if (others_.was_welcome(server) && options_.on_lost) options_.on_lost();
    return;
  }
  if (why.ok() || why.code() == StatusCode::kUnavailable) return ServerClosed(server, how);
  Actions actions;
  machine_->ServerGone(server, Status(why).In(others_.NameOf(server)), actions);
  Execute(std::move(actions));
}

std::string Pserver::HowServerClosed(int server, const Status& why) const {
  return why.ok()
             ? "it closed its connection before the job had ended"
             : StrCat(why.message(), protocol::SilenceText(options_.clock->Now() - others_.heard(server)));
}

// One of the two calls with this server has ended; both end when its process does. With a deadline for
// reconnecting, the call to the server shows whether its process lives.
void Pserver::ServerClosed(int server, const std::string& how) {
  Actions actions;
  ReactToServer(server,
                Unavailable("E-peer-lost", others_.NameOf(server), " is gone: ", how, " (step ",
                            machine_->sums().over(), ", seen by pserver ", facts_.address, ")"),
                actions);
  Execute(std::move(actions));
}

void Pserver::GiveUpLostServers() {
  while (const std::optional<OtherServers::Outage> outage = others_.TakeGone()) {
    ServerClosed(outage->server, outage->late ? StrCat(outage->how, ", and it could not be reached for ",
                                                       WholeSeconds(outage->lasted), " s")
                                              : outage->how);
  }
}

void Pserver::ReactToServer(int server, const Status& why, Actions& actions) {
  if (ended_.has_value() || machine_->sums().completed(server)) return;
  others_.notes(server).Record(observe::EventKind::kPeerLeft, machine_->sums().over());
  if (options_.on_reaction) options_.on_reaction(why);
  machine_->ServerGone(server, why, actions);
}

}  // namespace penstock::pserver
