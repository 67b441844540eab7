// How a pserver admits, refuses and removes trainers.
#include "executor/protocol/failure.h"
#include "executor/pserver/pserver.h"
#include "framework/base/log.h"

namespace penstock::pserver {

// An unreadable message from a trainer or server of this job ends the job: a retry would be unreadable too,
// and the others would wait. Without a valid envelope, or in a job without a token, the sender may be an
// unknown peer, which is only refused.
void Pserver::Unreadable(const std::shared_ptr<Caller>& from, const Status& why) {
  const bool was_trainer = trainer_of_.contains(from.get());
  const bool was_server = others_.Find(from.get()).has_value();
  if (!was_server) Refuse(from, why);
  if (!was_server && (was_trainer || !options_.proven || why.id() != "E-rpc-body")) return;
  Actions actions;
  machine_->Fail(why, actions);
  Execute(std::move(actions));
}

// Tells a peer that is not an admitted trainer why it is refused. An error of an admitted trainer ends the
// job instead, unless it can be forgotten.
void Pserver::Refuse(const std::shared_ptr<Caller>& caller, const Status& why) {
  const auto known = trainer_of_.find(caller.get());
  if (known != trainer_of_.end() && !Forget(known->second)) {
    Actions actions;
    machine_->Fail(why, actions);
    Execute(std::move(actions));
    return;
  }
  refused_.insert(caller.get());
  strangers_.Report(StrCat("pserver ", facts_.address, " refused a connection: ", why));
  caller->Reply({}, protocol::Failure{why});
  caller->Close();
}

// Forgets a trainer whose identity is unproven and on which the job does not depend yet; another process may
// then take its place. Returns false if the trainer must be treated as lost.
bool Pserver::Forget(int trainer) {
  Trainer& known = At(trainer);
  if (options_.proven || known.worked || ended_.has_value() || known.caller == nullptr) return false;
  strangers_.Report(StrCat("pserver ", facts_.address, ": the process that connected as trainer ", trainer,
                           " has left without sending anything; waiting for another one"));
  trainer_of_.erase(known.caller.get());
  refused_.insert(known.caller.get());
  known.caller = nullptr;
  admission_.Release(trainer);
  return true;
}

bool Pserver::Fits(const protocol::Sender& sender, const protocol::HelloBody& hello) const {
  const std::lock_guard lock(mutex_);
  return admission_.Check(sender, hello).ok();
}

bool Pserver::HasCome() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(admission_.Awaited().size()) < facts_.trainers;
}

// A trainer has one connection at a time.
Status Pserver::CheckAlone(const From& from) const {
  const Trainer& trainer = At(from.trainer);
  if (trainer.caller == nullptr || trainer.caller == from.caller) return OkStatus();
  return FailedPrecondition("E-rpc-second", "trainer ", from.trainer, " is connected to pserver ",
                            facts_.address, " already; this is its second connection");
}

// Answers a hello that does not match.
void Pserver::TurnAway(const From& from, const Status& why, Actions& actions) {
  const bool was_trainer = trainer_of_.contains(from.caller.get());
  Refuse(from.caller, why);
  if (was_trainer || !options_.proven) return;
  if (why.id() == "E-rpc-fenced" || why.id() == "E-rpc-job") return;
  // A retry of a trainer of this job would not match either, and the others would wait for it forever.
  if (from.sender.trainer < trainers_.size()) admission_.TurnAway(from.trainer);
  machine_->Fail(why, actions);
}

void Pserver::On(const From& from, const protocol::Hello& hello, Actions& actions) {
  if (const Status fits = admission_.Check(from.sender, hello.body); !fits.ok())
    return TurnAway(from, fits, actions);
  const int id = from.trainer;
  if (ended_.has_value() && !admission_.Admitted(id)) {  // the job is over
    const Status over =
        ended_->ok() ? Unavailable("E-peer-lost", "pserver ", facts_.address, " has ended") : *ended_;
    admission_.TurnAway(id);
    return Refuse(from.caller, over);
  }
  if (const Status alone = CheckAlone(from); !alone.ok()) return Refuse(from.caller, alone);
  from.caller->Admit();
  if (LogsDetail(1) && !admission_.Admitted(id))
    Log(LogSeverity::kInfo, StrCat("pserver ", facts_.address, ": trainer ", id, " has joined"));
  admission_.Admit(from.sender, hello.body);
  Trainer& trainer = At(id);
  trainer.caller = from.caller;
  trainer.heard = trainer.active = options_.clock->Now();
  trainer_of_[from.caller.get()] = id;
  notes_.Came(id, machine_->steps_ended(id));
  Welcome(id, from.sender.contract);
}

void Pserver::Welcome(int trainer, std::uint64_t contract) {
  protocol::WelcomeBody body;
  body.part_bytes = static_cast<std::uint32_t>(options_.part_bytes);
  body.window = static_cast<std::uint32_t>(MachineConfig().window);
  const TrainerTerms& terms = admission_.terms(trainer);
  for (const int param : terms.params_of_variables()) {
    body.chunk_rows.push_back(static_cast<std::uint64_t>(store_->chunk_rows(param)));
  }
  Actions credit;
  for (std::uint32_t variable = 0; variable < body.chunk_rows.size(); ++variable) {
    const std::optional<int> param = terms.ParamOfGrad(variable);
    if (!param || !machine_->by_turn(*param)) continue;
    body.by_turn.push_back(variable);
    machine_->TellCredit(*param, trainer, credit);
  }
  protocol::Sender to = SenderOf(trainer);
  to.contract = contract;
  At(trainer).caller->Reply(
      to, protocol::Welcome{.steps_ended = machine_->steps_ended(trainer), .body = std::move(body)});
  Execute(std::move(credit));
}

void Pserver::Closed(const std::shared_ptr<Caller>& from, const Status& why) {
  refused_.erase(from.get());
  if (const std::optional<int> server = others_.Find(from.get())) {
    if (ForgetServer(*server)) return;
    others_.Forget(*server);
    return ServerClosed(*server, why);
  }
  const auto known = trainer_of_.find(from.get());
  if (known == trainer_of_.end()) return;
  const int id = known->second;
  if (Forget(id)) {
    refused_.erase(from.get());
    return;
  }
  trainer_of_.erase(known);
  Trainer& trainer = At(id);
  if (trainer.caller != from) return;
  trainer.caller = nullptr;
  notes_.Left(id, machine_->steps_ended(id));
  Actions actions;
  const std::string how =
      why.ok() ? "it closed its connection before it had completed"
               : StrCat(why.message(), protocol::SilenceText(options_.clock->Now() - trainer.heard));
  React(id,
        Unavailable("E-peer-lost", "trainer ", id, " is gone: ", how, " (step ", machine_->steps_ended(id),
                    ", seen by pserver ", facts_.address, ")"),
        actions);
  Execute(std::move(actions));
}

void Pserver::React(int trainer, const Status& why, Actions& actions) {
  if (!ended_.has_value() && !machine_->completed(trainer) && options_.on_reaction) options_.on_reaction(why);
  machine_->Gone(trainer, why, actions);
}

}  // namespace penstock::pserver
