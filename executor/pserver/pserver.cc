#include "executor/pserver/pserver.h"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>

#include "executor/protocol/failure.h"
#include "executor/pserver/memory_left.h"
#include "framework/base/log.h"

namespace penstock::pserver {
namespace {

constexpr Nanoseconds kReportAfter = std::chrono::seconds(10);
// After the end: by then a trainer that lives has read its last reply.
constexpr Nanoseconds kLastReplies = std::chrono::seconds(5);
// After a failure: trainers that have not come yet would wait for a server that is not there. No process
// outlives its job by more than 10 s, though.
constexpr Nanoseconds kTellLatecomers = std::chrono::seconds(9);

std::string ListOf(const std::vector<int>& trainers) {
  std::string list;
  for (const int t : trainers) list += StrCat(list.empty() ? "" : ", ", t);
  return list;
}

}  // namespace

Result<std::unique_ptr<Pserver>> Pserver::Make(const Program& program, const Op& listen_and_serv,
                                               Scope& scope, const OpRegistry& ops, BlockRunner& blocks,
                                               PserverOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(roles::ServerRole facts, protocol::ReadServer(ops, program, listen_and_serv));
  std::unique_ptr<Pserver> server(new Pserver(std::move(facts), blocks, std::move(options)));
  PENSTOCK_ASSIGN_OR_RETURN(server->store_,
                            ChunkStore::Make(program, server->facts_, scope, server->options_.chunk_bytes));
  MachineConfig config;
  config.trainers = server->facts_.trainers;
  config.has_lr_block = server->facts_.lr_block >= 0;
  config.part_bytes = server->options_.part_bytes;
  config.params = server->store_->Shapes();
  server->machine_ = std::make_unique<StateMachine>(std::move(config));
  return server;
}

Pserver::Pserver(roles::ServerRole facts, BlockRunner& blocks, PserverOptions options)
    : facts_(std::move(facts)),
      blocks_(blocks),
      options_(Guarded(std::move(options))),
      admission_(facts_, options_.job),
      trainers_(static_cast<std::size_t>(facts_.trainers)),
      strangers_(options_.report, options_.clock),
      checkpoints_(options_.checkpoint_folder) {
  started_ = reported_ = options_.clock->Now();
}

template <typename Work>
void Pserver::Guard(const Work& work) {
  try {
    // After the end, work is what tells those who come that it has ended, and why.
    if (!MemoryLeft(kMemoryToServe) && !Ended().has_value()) FailForMemory();
    work();
  } catch (const std::bad_alloc&) {
    FailForMemory();
  } catch (const std::length_error&) {  // of a vector that no memory could hold
    FailForMemory();
  } catch (const std::system_error&) {  // a thread that could not be started
    FailForMemory();
  }
}

PserverOptions Pserver::Guarded(PserverOptions options) {
  options.run = [this, run = std::move(options.run)](std::function<void()> work) {
    run([this, work = std::move(work)] { Guard(work); });
  };
  return options;
}

void Pserver::FailForMemory() {
  try {
    Fail(FailedPrecondition("E-run-memory", "pserver ", facts_.address, ": not enough memory to go on"));
  } catch (const std::bad_alloc&) {  // then nobody can be told, but the end of the connections
    const std::lock_guard lock(mutex_);
    if (ended_.has_value()) return;
    ended_ = FailedPrecondition("E-run-memory", "not enough memory");
    ended_at_ = options_.clock->Now();
    if (options_.on_end) options_.on_end();
  }
}

std::optional<Status> Pserver::Ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool Pserver::HasListeners() const {
  const std::lock_guard lock(mutex_);
  if (!ended_.has_value()) return !trainer_of_.empty();
  const Nanoseconds since = options_.clock->Now() - ended_at_;
  if (!trainer_of_.empty() && since < kLastReplies) return true;
  return !ended_->ok() && !admission_.Awaited().empty() && since < kTellLatecomers;
}

void Pserver::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  Actions actions;
  machine_->Fail(why, actions);
  Execute(std::move(actions));
}

void Pserver::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  Guard([&] { Receive(from, message); });
}

void Pserver::Receive(const std::shared_ptr<Connection>& from, const Message& message) {
  // Outside the lock: the CRC takes most of the time of a large message.
  const Result<protocol::Envelope> envelope = protocol::Open(message);
  const std::lock_guard lock(mutex_);
  if (refused_.contains(from.get())) return;  // it has its answer
  if (!envelope.ok()) {
    Refuse(from, envelope.status());
    return;
  }
  Actions actions;
  const Caller caller{from, *envelope, message};
  if (envelope->kind == protocol::MessageKind::kHello) {
    OnHello(caller, actions);
  } else {
    Dispatch(caller, actions);
  }
  Execute(std::move(actions));
}

// Tells somebody who is no trainer of ours why not. What a trainer of ours does wrong ends the job instead.
void Pserver::Refuse(const std::shared_ptr<Connection>& connection, const Status& why) {
  const auto known = trainer_of_.find(connection.get());
  if (known != trainer_of_.end() && !Forget(known->second)) {
    Actions actions;
    machine_->Fail(why, actions);
    Execute(std::move(actions));
    return;
  }
  refused_.insert(connection.get());
  strangers_.Report(StrCat("pserver ", facts_.address, " refused a connection: ", why));
  connection->Send(
      protocol::Seal({.kind = protocol::MessageKind::kError}, Payload::Of(protocol::WriteStatus(why))));
  connection->Close();
}

// Of one that anybody could be, and that has done nothing yet, the place becomes free. False: it is missed.
bool Pserver::Forget(int trainer) {
  Trainer& known = trainers_[static_cast<std::size_t>(trainer)];
  if (options_.proven || known.worked || ended_.has_value() || known.connection == nullptr) return false;
  strangers_.Report(StrCat("pserver ", facts_.address, ": what came as trainer ", trainer,
                           " goes and has sent nothing; waiting for another one"));
  trainer_of_.erase(known.connection.get());
  refused_.insert(known.connection.get());
  known.connection = nullptr;
  admission_.Release(trainer);
  return true;
}

// One process speaks for a trainer, over one connection.
Status Pserver::CheckAlone(const Caller& caller) const {
  const Trainer& trainer = trainers_[caller.envelope.trainer];
  if (trainer.connection == nullptr || trainer.connection == caller.connection) return OkStatus();
  return FailedPrecondition("E-rpc-second", "trainer ", caller.envelope.trainer, " is connected to pserver ",
                            facts_.address, " already; this is its second connection");
}

void Pserver::OnHello(const Caller& caller, Actions& actions) {
  const Result<protocol::HelloBody> hello = protocol::ReadHello(caller.message.body.ToText());
  const Status status = hello.ok() ? admission_.Check(caller.envelope, *hello) : hello.status();
  const int id = static_cast<int>(caller.envelope.trainer);
  if (!status.ok()) {
    const bool was_trainer = trainer_of_.contains(caller.connection.get());
    Refuse(caller.connection, status);
    if (was_trainer || !options_.proven) return;
    if (status.id() == "E-rpc-fenced" || status.id() == "E-rpc-job") return;
    // A trainer of this job that does not fit will not come right by itself, and the others would wait for it
    // for ever.
    if (caller.envelope.trainer < trainers_.size()) admission_.TurnAway(id);
    machine_->Fail(status, actions);
    return;
  }
  if (ended_.has_value() && !admission_.Admitted(id)) {  // it comes when the job is over
    const Status over =
        ended_->ok() ? Unavailable("E-peer-lost", "pserver ", facts_.address, " has ended") : *ended_;
    admission_.TurnAway(id);
    Refuse(caller.connection, over);
    return;
  }
  if (const Status alone = CheckAlone(caller); !alone.ok()) {
    Refuse(caller.connection, alone);
    return;
  }
  caller.connection->Admit();
  if (LogsDetail(1) && !admission_.Admitted(id))
    Log(LogSeverity::kInfo, StrCat("pserver ", facts_.address, ": trainer ", id, " has joined"));
  admission_.Admit(id, caller.envelope.incarnation, caller.envelope.contract);
  Trainer& trainer = trainers_[caller.envelope.trainer];
  trainer.connection = caller.connection;
  trainer.heard = trainer.active = options_.clock->Now();
  trainer_of_[caller.connection.get()] = id;
  Welcome(id, caller.envelope.contract);
}

void Pserver::Welcome(int trainer, std::uint64_t contract) {
  protocol::WelcomeBody body;
  body.part_bytes = static_cast<std::uint32_t>(options_.part_bytes);
  body.window = static_cast<std::uint32_t>(MachineConfig().window);
  for (const int param : admission_.terms(trainer).params_of_variables()) {
    body.chunk_rows.push_back(static_cast<std::uint64_t>(store_->chunk_rows(param)));
  }
  SendTo(
      trainer,
      {.kind = protocol::MessageKind::kWelcome, .contract = contract, .step = machine_->steps_ended(trainer)},
      Payload::Of(protocol::WriteWelcome(body)));
}

void Pserver::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  Guard([&] { Closed(from, why); });
}

void Pserver::Closed(const std::shared_ptr<Connection>& from, const Status& why) {
  const std::lock_guard lock(mutex_);
  refused_.erase(from.get());
  const auto known = trainer_of_.find(from.get());
  if (known == trainer_of_.end()) return;
  const int id = known->second;
  if (Forget(id)) {
    refused_.erase(from.get());
    return;
  }
  trainer_of_.erase(known);
  Trainer& trainer = trainers_[static_cast<std::size_t>(id)];
  if (trainer.connection != from) return;
  trainer.connection = nullptr;
  Actions actions;
  const std::string how =
      why.ok() ? "it ended without completing"
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

void Pserver::Tick() {
  Guard([&] { ReportAwaited(); });
}

void Pserver::ReportAwaited() {
  const std::lock_guard lock(mutex_);
  strangers_.Tick();
  if (ended_.has_value()) return;
  const Nanoseconds now = options_.clock->Now();
  if (now - reported_ < kReportAfter) return;
  const std::vector<int> awaited = admission_.Awaited();
  if (!awaited.empty()) {
    reported_ = now;
    options_.report(StrCat("waiting ", WholeSeconds(now - started_), " s on pserver ", facts_.address,
                           ": for trainer ", ListOf(awaited), " to start"));
    return;
  }
  const std::string waiting = TrainersWaiting(now);
  if (waiting.empty()) return;
  reported_ = now;
  options_.report(StrCat("waiting on pserver ", facts_.address, ": ", waiting));
}

// "trainer 0 waits for trainer 1 (last heard 11 s ago)"; empty unless a trainer has said so lately and none
// has sent anything for a while.
std::string Pserver::TrainersWaiting(Nanoseconds now) const {
  std::string text;
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    const Trainer& trainer = trainers_[t];
    if (trainer.connection == nullptr) continue;
    if (now - trainer.active < kReportAfter) return "";
    if (trainer.waits_for.empty() || now - trainer.waits_said > 2 * kReportAfter) continue;
    text += StrCat(text.empty() ? "" : "; ", "trainer ", t, " has waited ",
                   WholeSeconds(now - trainer.active), " s for ", trainer.waits_for);
  }
  return text;
}

void Pserver::Execute(Actions actions) {
  for (std::size_t i = 0; i < actions.size(); ++i) {  // grows on the way
    const Action action = std::move(actions[i]);
    if (const auto* merge = std::get_if<MergeAction>(&action)) {
      Start(*merge, actions);
    } else if (const auto* run = std::get_if<RunAction>(&action)) {
      options_.run([this, work = *run] {
        const Status status = store_->Run(work, blocks_);
        const std::lock_guard lock(mutex_);
        Actions next;
        machine_->BlockDone(work.param, work.chunk, status, next);
        Execute(std::move(next));
      });
    } else if (const auto* save = std::get_if<SaveAction>(&action)) {
      Start(*save);
    } else if (const auto* reply = std::get_if<ReplyAction>(&action)) {
      Reply(*reply);
    } else if (const auto* left = std::get_if<LeftAction>(&action)) {
      Tell(*left);
    } else if (const auto* end = std::get_if<EndAction>(&action)) {
      OnEnd(end->why);
    }
  }
}

void Pserver::OnEnd(const Status& why) {
  if (why.ok()) store_->PublishTables();
  ended_ = why;
  ended_at_ = options_.clock->Now();
  const std::vector<int> awaited = admission_.Awaited();
  if (!why.ok() && !awaited.empty()) {
    const auto& warn = options_.warn ? options_.warn : options_.report;
    warn(StrCat("pserver ", facts_.address, " has failed, and tells trainer ", ListOf(awaited),
                " if it starts within ", WholeSeconds(kTellLatecomers), " s: ", why.message()));
  }
  if (options_.on_end) options_.on_end();
}

void Pserver::Start(const MergeAction& merge, Actions& actions) {
  std::size_t bytes = 0;
  for (const Payload& part : merge.parts) bytes += part.size();
  const auto done = [this](const MergeAction& merged, const Status& status, Actions& next) {
    if (status.ok()) {
      machine_->MergeDone(merged.param, merged.chunk, next);
    } else {
      machine_->Fail(status, next);
    }
  };
  if (bytes <= options_.inline_bytes) {
    done(merge, store_->Merge(merge), actions);
    return;
  }
  options_.run([this, merge, done] {
    const Status status = store_->Merge(merge);
    const std::lock_guard lock(mutex_);
    Actions next;
    done(merge, status, next);
    Execute(std::move(next));
  });
}

// What is written is a copy, so updates go on meanwhile.
void Pserver::Start(const SaveAction& action) {
  store_->PublishTable(action.save.param);
  options_.run([this, save = action.save] {
    Status status = store_->SaveTable(save, blocks_);
    const std::lock_guard lock(mutex_);
    if (status.ok()) status = checkpoints_.Wrote(save.file);
    Actions next;
    machine_->SaveDone(save, status, next);
    Execute(std::move(next));
  });
}

void Pserver::Tell(const LeftAction& left) {
  options_.report(StrCat("trainer ", left.trainer, " completed at step ", left.steps, "; pserver ",
                         facts_.address, " counts its gradients as zeros from then on"));
  for (std::size_t t = 0; t < trainers_.size(); ++t) {
    if (machine_->completed(static_cast<int>(t)) || !admission_.Admitted(static_cast<int>(t))) continue;
    SendTo(static_cast<int>(t),
           {.kind = protocol::MessageKind::kLeft,
            .step = left.steps,
            .credit = static_cast<std::uint64_t>(left.trainer)},
           {});
  }
}

void Pserver::Reply(const ReplyAction& reply) {
  if (reply.kind == protocol::MessageKind::kPulled) {
    ReplyChunk(reply);
    return;
  }
  if (reply.kind == protocol::MessageKind::kRows || reply.kind == protocol::MessageKind::kRowsGone) {
    ReplyRows(reply);
    return;
  }
  protocol::Envelope envelope{.kind = reply.kind,
                              .step = reply.step,
                              .credit = reply.credit,
                              .chunk = static_cast<std::uint32_t>(reply.chunk),
                              .part = reply.part};
  Payload body;
  const TrainerTerms& terms = admission_.terms(reply.trainer);
  if (reply.kind == protocol::MessageKind::kPushed || reply.kind == protocol::MessageKind::kCredit)
    envelope.variable = reply.initial ? terms.VariableOf(reply.param) : terms.PushedFor(reply.param);
  if (reply.kind == protocol::MessageKind::kGone) envelope.variable = terms.VariableOf(reply.param);
  if (reply.kind == protocol::MessageKind::kSaved && !reply.error.ok())
    body = Payload::Of(protocol::WriteStatus(reply.error));
  if (reply.kind == protocol::MessageKind::kError) body = Payload::Of(protocol::WriteStatus(reply.error));
  SendTo(reply.trainer, envelope, std::move(body));
}

void Pserver::ReplyChunk(const ReplyAction& reply) {
  SendParts(reply.trainer,
            {.kind = protocol::MessageKind::kPulled,
             .step = reply.step,
             .credit = reply.credit,
             .variable = admission_.terms(reply.trainer).VariableOf(reply.param),
             .chunk = static_cast<std::uint32_t>(reply.chunk)},
            store_->Snapshot(reply.param, reply.chunk, reply.step));
}

void Pserver::ReplyRows(const ReplyAction& reply) {
  const protocol::Envelope envelope{
      .kind = reply.kind, .step = reply.step, .credit = reply.rows.request, .variable = reply.rows.variable};
  if (reply.kind == protocol::MessageKind::kRowsGone) {
    SendTo(reply.trainer, envelope, {});
  } else {
    SendParts(reply.trainer, envelope, store_->Gather(reply.rows));
  }
}

void Pserver::SendParts(int trainer, protocol::Envelope envelope, const Tensor& value) {
  for (std::size_t begin = 0; begin < value.bytes(); begin += options_.part_bytes) {
    SendTo(trainer, envelope,
           Payload::Of(value, begin, std::min(options_.part_bytes, value.bytes() - begin)));
    ++envelope.part;
  }
}

void Pserver::SendTo(int trainer, protocol::Envelope envelope, Payload body) {
  const Trainer& to = trainers_[static_cast<std::size_t>(trainer)];
  if (to.connection == nullptr) return;
  envelope.job = admission_.job_hash();
  if (envelope.contract == 0) envelope.contract = admission_.terms(trainer).hash();
  envelope.incarnation = admission_.incarnation(trainer);
  envelope.trainer = static_cast<std::uint32_t>(trainer);
  to.connection->Send(protocol::Seal(envelope, std::move(body)));
}

}  // namespace penstock::pserver
