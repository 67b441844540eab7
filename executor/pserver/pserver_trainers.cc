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

// A trainer has one connection at a time. With a deadline for reconnecting, a second one of the same process
// replaces the first, whose end this server has not noticed yet.
Status Pserver::CheckAlone(const From& from) const {
  const Trainer& trainer = At(from.trainer);
  if (trainer.caller == nullptr || trainer.caller == from.caller) return OkStatus();
  if (options_.reconnect_deadline > Nanoseconds(0)) return OkStatus();
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
  const bool may_return = MayReturn(from.sender);
  if (const Status fits = admission_.Check(from.sender, hello.body, may_return); !fits.ok())
    return TurnAway(from, fits, actions);
  const int id = from.trainer;
  const bool returns = admission_.Returns(from.sender);
  // The job is over. A trainer that was out of reach when it failed learns why, and so does a new process.
  const bool too_late = returns && (!ended_.value_or(OkStatus()).ok() || !machine_->completed(id));
  if (ended_.has_value() && (!admission_.Admitted(id) || (At(id).lost && !ended_->ok()) || too_late)) {
    const Status over =
        ended_->ok() ? Unavailable("E-peer-lost", "pserver ", facts_.address, " has ended") : *ended_;
    admission_.TurnAway(id);
    return Refuse(from.caller, over);
  }
  if (const Status alone = CheckAlone(from); !alone.ok() && !returns) return Refuse(from.caller, alone);
  from.caller->Admit();
  if (LogsDetail(1) && !admission_.Admitted(id))
    Log(LogSeverity::kInfo, StrCat("pserver ", facts_.address, ": trainer ", id, " has joined"));
  admission_.Admit(from.sender, hello.body);
  if (returns) Return(id, actions);
  machine_->BeginAt(id, hello.step, actions);
  Trainer& trainer = At(id);
  Replace(id, from.caller);
  trainer.process = hello.body.process;
  trainer.heard = trainer.active = options_.clock->Now();
  notes_.Came(id, machine_->steps_ended(id));
  machine_->Joined(id, hello.step);
  Welcome(id, from.sender.contract);
  ReportIfBack();
}

// Whether a newer process may take the trainer's place. Without a token anyone could say so: then only a
// trainer that is gone is replaced.
bool Pserver::MayReturn(const protocol::Sender& sender) const {
  if (options_.trainer_loss == TrainerLoss::kAbort || sender.trainer >= trainers_.size()) return false;
  return options_.proven || At(static_cast<int>(sender.trainer)).caller == nullptr;
}

void Pserver::Return(int id, Actions& actions) {
  Trainer& trainer = At(id);
  // If the last process still lives, it learns that it has been replaced.
  if (trainer.caller != nullptr) trainer.caller->Reply({}, protocol::Failure{Admission::Fenced(id)});
  machine_->Return(id, actions);
  trainer.place = {};
  trainer.waits_for.clear();
  const std::string after =
      trainer.dead ? StrCat(" after ", protocol::OutageText(options_.clock->Now() - trainer.dead->at)) : "";
  trainer.dead.reset();
  trainer.lost.reset();
  options_.report(StrCat("pserver ", facts_.address, ": a new process of trainer ", id, " has come", after,
                         "; it has ", machine_->steps_ended(id), " complete steps here"));
}

void Pserver::Welcome(int trainer, std::uint64_t contract) {
  protocol::WelcomeBody body;
  body.part_bytes = static_cast<std::uint32_t>(options_.part_bytes);
  body.window = static_cast<std::uint32_t>(MachineConfig().window);
  const TrainerTerms& terms = admission_.terms(trainer);
  for (const int param : terms.params_of_variables()) {
    body.chunk_rows.push_back(static_cast<std::uint64_t>(store_->chunk_rows(param)));
    body.shards.push_back(store_->IsTable(param) ? static_cast<std::uint32_t>(store_->chunk_count(param))
                                                 : 1U);
  }
  if (std::ranges::all_of(body.shards, [](std::uint32_t shards) { return shards == 1; })) body.shards.clear();
  Actions credit;
  for (std::uint32_t variable = 0; variable < body.chunk_rows.size(); ++variable) {
    const std::optional<int> param = terms.ParamOfGrad(variable);
    if (!param) continue;
    if (machine_->by_turn(*param)) body.by_turn.push_back(variable);
    // Otherwise the window is the credit of the first steps, and answers give more.
    const bool returned = options_.trainer_loss != TrainerLoss::kAbort && machine_->steps_ended(trainer) > 0;
    if (machine_->by_turn(*param) || returned) machine_->TellCredit(*param, trainer, credit);
  }
  if (Recovers()) {
    body.incarnation = 1 + options_.checkpoints.restarts;
    body.version = StartOf(trainer);
  }
  if (key_saves_ != nullptr) body.cut_every = key_saves_->every();
  const std::uint64_t first_step = checkpoints_ != nullptr ? checkpoints_->first_step_of(trainer)
                                   : key_saves_ != nullptr ? key_saves_->first_step()
                                                           : 0;
  protocol::Sender to = SenderOf(trainer);
  to.contract = contract;
  At(trainer).caller->Reply(
      to, protocol::Welcome{.steps_ended = ServesKeys() ? 0 : machine_->continues_at(trainer),
                            .first_step = first_step,
                            .body = std::move(body)});
  Execute(std::move(credit));
}

void Pserver::Replace(int id, const std::shared_ptr<Caller>& caller) {
  Trainer& trainer = At(id);
  if (trainer.caller != nullptr && trainer.caller != caller) {
    trainer_of_.erase(trainer.caller.get());
    refused_.insert(trainer.caller.get());  // what it still sends is ignored
    trainer.caller->Close();
  }
  trainer.caller = caller;
  trainer_of_[caller.get()] = id;
  if (!trainer.lost) return;
  options_.report(StrCat("pserver ", facts_.address, ": trainer ", id, " is connected again after ",
                         protocol::OutageText(options_.clock->Now() - trainer.lost->at), ": ",
                         trainer.lost->how));
  trainer.lost.reset();
}

// Whether a trainer whose connection has broken is waited for.
bool Pserver::MayComeBack(int trainer) const {
  return options_.reconnect_deadline > Nanoseconds(0) &&
         options_.state_of(At(trainer).process) != ProcessState::kEnded;
}

Status Pserver::GoneError(int trainer, const std::string& how) const {
  return Unavailable("E-peer-lost", "trainer ", trainer, " is gone: ", how, " (step ",
                     machine_->steps_ended(trainer), ", seen by pserver ", facts_.address, ")");
}

// Gives up trainers that have been out of reach for too long, or whose process has ended.
void Pserver::GiveUpLost() {
  const Nanoseconds now = options_.clock->Now();
  GiveUpDead(now);
  for (int id = 0; id < facts_.trainers; ++id) {
    Trainer& trainer = At(id);
    if (!trainer.lost) continue;
    const bool late = now - trainer.lost->at > options_.reconnect_deadline;
    if (!late && MayComeBack(id)) continue;
    std::string how = trainer.lost->how;
    if (late)
      how += StrCat(", and it did not connect again within ", WholeSeconds(now - trainer.lost->at), " s");
    trainer.lost.reset();
    Status gone = GoneError(id, how);
    if (late)
      gone =
          std::move(gone).With("note: the launcher's --reconnect_s or PENSTOCK_RECONNECT_S sets this time");
    Actions actions;
    Lose(id, how, gone, actions);
    Execute(std::move(actions));
  }
}

// Ends a job that has waited too long for the new process of a trainer.
void Pserver::GiveUpDead(Nanoseconds now) {
  if (ended_.has_value() || options_.trainer_loss != TrainerLoss::kWait) return;
  for (int id = 0; id < facts_.trainers; ++id) {
    Trainer& trainer = At(id);
    if (!trainer.dead || now - trainer.dead->at <= options_.start_deadline) continue;
    const Status gone = GoneError(id, StrCat(trainer.dead->how, ", and no new process came within ",
                                             WholeSeconds(now - trainer.dead->at), " s"))
                            .With("note: the launcher's --start_s or PENSTOCK_START_S sets this time");
    trainer.dead.reset();
    Actions actions;
    React(id, gone, actions);
    Execute(std::move(actions));
  }
}

void Pserver::Closed(const std::shared_ptr<Caller>& from, const Status& why) {
  refused_.erase(from.get());
  if (const std::optional<int> server = others_.Find(from.get())) {
    if (ForgetServer(*server)) return;
    others_.Forget(*server);
    if (options_.reconnect_deadline > Nanoseconds(0)) return;
    return ServerClosed(*server, HowServerClosed(*server, why));
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
  const Nanoseconds now = options_.clock->Now();
  const std::string how = why.ok() ? "it closed its connection before it had completed"
                                   : StrCat(why.message(), protocol::SilenceText(now - trainer.heard));
  // A trainer that has completed may lack the answer to that.
  const bool broken = !why.ok() || !machine_->completed(id);
  if (broken && MayComeBack(id)) {
    trainer.lost = {.at = now, .how = how};
    if (options_.on_lost) options_.on_lost();
    return;
  }
  Actions actions;
  Lose(id, how, GoneError(id, how), actions);
  Execute(std::move(actions));
}

void Pserver::Lose(int id, const std::string& how, const Status& why, Actions& actions) {
  if (options_.trainer_loss == TrainerLoss::kAbort || ended_.has_value() || machine_->completed(id))
    return React(id, why, actions);
  At(id).dead = Lost{.at = options_.clock->Now(), .how = how};
  const bool waits = options_.trainer_loss == TrainerLoss::kWait;
  options_.report(StrCat(why.message(), waits ? "; the job waits for a new process of this trainer"
                                              : "; the others go on without this trainer"));
  machine_->Lose(id, actions);
  if (ServesKeys()) EndBarriers();
}

void Pserver::React(int trainer, const Status& why, Actions& actions) {
  if (!ended_.has_value() && !machine_->completed(trainer) && options_.on_reaction) options_.on_reaction(why);
  machine_->Gone(trainer, why, actions);
}

}  // namespace penstock::pserver
