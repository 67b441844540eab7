#include "executor/pserver/pserver.h"

#include <algorithm>
#include <set>

#include "framework/base/hash.h"

namespace penstock {
namespace {

long long Seconds(Nanoseconds span) { return std::chrono::duration_cast<std::chrono::seconds>(span).count(); }

constexpr Nanoseconds kReportAfter = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<Pserver>> Pserver::Make(const Program& program, const Op& listen_and_serv,
                                               Scope& scope, const OpRegistry& ops, BlockRunner& blocks,
                                               PserverOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(ServerFacts facts, ReadServer(ops, program, listen_and_serv));
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

Pserver::Pserver(ServerFacts facts, BlockRunner& blocks, PserverOptions options)
    : facts_(std::move(facts)),
      blocks_(blocks),
      options_(std::move(options)),
      job_hash_(Fnv1a64(options_.job)) {
  trainers_.resize(static_cast<std::size_t>(facts_.trainers));
  for (int t = 0; t < facts_.trainers; ++t) {
    Trainer& trainer = trainers_[static_cast<std::size_t>(t)];
    trainer.contract = ContractOf(facts_, t);
    trainer.startup_hash = trainer.contract.Startup().Hash();
    trainer.hash = trainer.contract.Hash();
    trainer.param_of_grad.resize(trainer.contract.grads.size());
    trainer.grad_of_param.resize(facts_.params.size());
    for (std::size_t p = 0; p < facts_.params.size(); ++p) {
      if (facts_.params[p].start) continue;
      const int grad = trainer.contract.FindGrad(facts_.params[p].grads[static_cast<std::size_t>(t)]);
      trainer.param_of_grad[static_cast<std::size_t>(grad)] = static_cast<int>(p);
      trainer.grad_of_param[p] = static_cast<std::uint32_t>(grad);
    }
  }
  started_ = reported_ = options_.clock->Now();
}

std::optional<Status> Pserver::Ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool Pserver::HasListeners() const {
  const std::lock_guard lock(mutex_);
  if (!trainer_of_.empty()) return true;
  const bool failed = ended_.has_value() && !ended_->ok();
  return failed && std::any_of(trainers_.begin(), trainers_.end(),
                               [](const Trainer& t) { return !t.seen && !t.refused; });
}

void Pserver::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  Actions actions;
  machine_->Fail(why, actions);
  Execute(std::move(actions));
}

void Pserver::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  // Outside the lock: the CRC takes most of the time of a large message.
  const Result<Envelope> envelope = Open(message, options_.token);
  const std::lock_guard lock(mutex_);
  if (!envelope.ok()) {
    Refuse(from, Token{}, envelope.status());  // without our token: whoever does not know it learns only that
    return;
  }
  Actions actions;
  const Caller caller{from, *envelope, message};
  if (envelope->kind == MessageKind::kHello) {
    OnHello(caller, actions);
  } else {
    Dispatch(caller, actions);
  }
  Execute(std::move(actions));
}

// Tells somebody who is no trainer of ours why not. What a trainer of ours does wrong ends the job instead.
void Pserver::Refuse(const std::shared_ptr<Connection>& connection, const Token& token, const Status& why) {
  const auto known = trainer_of_.find(connection.get());
  if (known != trainer_of_.end()) {
    Actions actions;
    machine_->Fail(why, actions);
    Execute(std::move(actions));
    return;
  }
  options_.report(StrCat("pserver ", facts_.address, " refused a connection: ", why));
  connection->Send(Seal({.kind = MessageKind::kError}, token, Payload::Of(WriteStatus(why))));
  connection->Close();
}

Status Pserver::CheckHello(const Caller& caller, const HelloBody& hello) const {
  const std::uint32_t id = caller.envelope.trainer;
  if (caller.envelope.job != job_hash_ || hello.job != options_.job) {
    return FailedPrecondition("E-rpc-job", "pserver ", facts_.address, " works for job ", Quote(options_.job),
                              ", this trainer for ", Quote(hello.job));
  }
  if (hello.trainers != 0 && hello.trainers != static_cast<std::uint32_t>(facts_.trainers)) {
    return InvalidArgument("E-plan-trainers", "plan: pserver ", facts_.address, " is made for ",
                           facts_.trainers, " trainers, trainer ", id, " for ", hello.trainers);
  }
  if (id >= static_cast<std::uint32_t>(facts_.trainers)) {
    return InvalidArgument(
        "E-plan-trainer-id", "plan: trainer_id ", id, " is out of range; pserver ", facts_.address,
        facts_.trainers == 1
            ? StrCat(" is made for 1 trainer (0)")
            : StrCat(" is made for ", facts_.trainers, " trainers (0 to ", facts_.trainers - 1, ")"));
  }
  const Trainer& trainer = trainers_[id];
  const std::uint64_t theirs = caller.envelope.contract;
  if (theirs != trainer.hash && theirs != trainer.startup_hash) {
    Status status = InvalidArgument("E-plan-mismatch", "plan: pserver ", facts_.address, " and trainer ", id,
                                    " were made by different plans");
    const bool startup =
        !StartsWith(hello.contract, "grad ") && hello.contract.find("\ngrad ") == std::string::npos;
    const std::string ours = startup ? trainer.contract.Startup().ToText() : trainer.contract.ToText();
    status.With(StrCat("first difference, ", FirstDifference(ours, hello.contract)));
    return std::move(status).With(
        "left: the pserver; right: the trainer. Transpile all roles from one program and configuration");
  }
  if (trainer.seen && caller.envelope.incarnation < trainer.incarnation) {
    return FailedPrecondition("E-rpc-fenced", "trainer ", id,
                              " was started again since; this one is the older");
  }
  if (trainer.seen && caller.envelope.incarnation > trainer.incarnation) {
    return FailedPrecondition("E-rpc-restart", "trainer ", id,
                              " was started a second time while the job ran");
  }
  return OkStatus();
}

void Pserver::OnHello(const Caller& caller, Actions& actions) {
  const Result<HelloBody> hello = ReadHello(caller.message.body.ToText());
  const Status status = hello.ok() ? CheckHello(caller, *hello) : hello.status();
  if (!status.ok()) {
    if (caller.envelope.trainer < trainers_.size()) trainers_[caller.envelope.trainer].refused = true;
    Refuse(caller.connection, options_.token, status);
    // A trainer of this job that does not fit will not come right by itself, and the others would wait for it
    // for ever.
    if (status.id() != "E-rpc-fenced" && status.id() != "E-rpc-job") machine_->Fail(status, actions);
    return;
  }
  const int id = static_cast<int>(caller.envelope.trainer);
  Trainer& trainer = trainers_[caller.envelope.trainer];
  if (ended_.has_value() && !trainer.seen) {  // it comes when the job is over
    const Status over =
        ended_->ok() ? Unavailable("E-peer-lost", "pserver ", facts_.address, " has ended") : *ended_;
    trainer.refused = true;
    Refuse(caller.connection, options_.token, over);
    return;
  }
  trainer.connection = caller.connection;
  trainer.incarnation = caller.envelope.incarnation;
  trainer.seen = true;
  trainer.heard = options_.clock->Now();
  trainer_of_[caller.connection.get()] = id;
  Welcome(id, caller.envelope.contract);
}

void Pserver::Welcome(int trainer, std::uint64_t contract) {
  WelcomeBody body;
  body.part_bytes = static_cast<std::uint32_t>(options_.part_bytes);
  body.window = static_cast<std::uint32_t>(MachineConfig().window);
  for (std::size_t p = 0; p < facts_.params.size(); ++p) {
    body.chunk_rows.push_back(static_cast<std::uint64_t>(store_->chunk_rows(static_cast<int>(p))));
  }
  for (const int param : trainers_[static_cast<std::size_t>(trainer)].param_of_grad) {
    body.chunk_rows.push_back(static_cast<std::uint64_t>(store_->chunk_rows(param)));
  }
  SendTo(trainer,
         {.kind = MessageKind::kWelcome, .contract = contract, .step = machine_->steps_ended(trainer)},
         Payload::Of(WriteWelcome(body)));
}

void Pserver::Dispatch(const Caller& caller, Actions& actions) {
  const auto known = trainer_of_.find(caller.connection.get());
  if (known == trainer_of_.end() || static_cast<std::uint32_t>(known->second) != caller.envelope.trainer ||
      trainers_[caller.envelope.trainer].incarnation != caller.envelope.incarnation) {
    Refuse(caller.connection, options_.token,
           FailedPrecondition("E-rpc-hello", "a trainer's first message must be its hello"));
    return;
  }
  Trainer& trainer = trainers_[caller.envelope.trainer];
  trainer.heard = options_.clock->Now();
  if (caller.envelope.contract != trainer.hash && caller.envelope.contract != trainer.startup_hash) {
    machine_->Fail(
        InvalidArgument("E-plan-mismatch", "plan: trainer ", known->second, " changed its plan on the way"),
        actions);
    return;
  }
  switch (caller.envelope.kind) {
    case MessageKind::kPush:
      return OnPush(caller, actions);
    case MessageKind::kEndStep:
      return OnEndStep(caller, actions);
    case MessageKind::kPull:
      return OnPull(caller, actions);
    case MessageKind::kAsk:
      return OnAsk(caller);
    case MessageKind::kComplete:
      return machine_->Complete(known->second, actions);
    case MessageKind::kError: {  // the trainer failed and says why before it goes
      const Status why = ReadStatus(caller.message.body.ToText());
      machine_->Gone(known->second, Status(why).In(StrCat("trainer ", known->second, " failed")), actions);
      return;
    }
    default:
      machine_->Fail(
          DataLoss("E-rpc-envelope", "trainer ", known->second, " sent a message only a pserver may send"),
          actions);
  }
}

// What a push is for, if this trainer may push it: the parameter of a gradient, or the first value itself.
std::optional<int> Pserver::ParamOfPush(const Trainer& trainer, const Envelope& envelope) const {
  if (envelope.variable < facts_.params.size()) {
    const ServedParam& param = facts_.params[envelope.variable];
    return trainer.contract.Starts(param.param.name) ? std::optional<int>(envelope.variable) : std::nullopt;
  }
  const std::size_t grad = envelope.variable - facts_.params.size();
  if (envelope.contract != trainer.hash || grad >= trainer.param_of_grad.size()) return std::nullopt;
  return trainer.param_of_grad[grad];
}

void Pserver::OnPush(const Caller& caller, Actions& actions) {
  const Trainer& trainer = trainers_[caller.envelope.trainer];
  const std::optional<int> param = ParamOfPush(trainer, caller.envelope);
  if (!param) {
    machine_->Fail(
        InvalidArgument("E-rpc-variable", "trainer ", caller.envelope.trainer, " pushed variable ",
                        caller.envelope.variable, ", which is neither a gradient nor a first value"),
        actions);
    return;
  }
  machine_->Push({.trainer = static_cast<int>(caller.envelope.trainer),
                  .param = *param,
                  .chunk = static_cast<int>(caller.envelope.chunk),
                  .step = caller.envelope.step,
                  .part = caller.envelope.part,
                  .bytes = caller.message.body},
                 actions);
}

void Pserver::OnEndStep(const Caller& caller, Actions& actions) {
  const Trainer& trainer = trainers_[caller.envelope.trainer];
  const Result<std::vector<std::uint32_t>> variables = ReadVariables(caller.message.body.ToText());
  if (!variables.ok()) {
    machine_->Fail(variables.status(), actions);
    return;
  }
  std::set<int> params;
  for (const std::uint32_t variable : *variables) {
    const std::size_t grad = variable - facts_.params.size();
    if (grad < trainer.param_of_grad.size()) params.insert(trainer.param_of_grad[grad]);
  }
  machine_->EndStep(static_cast<int>(caller.envelope.trainer), caller.envelope.step, params, actions);
}

void Pserver::OnPull(const Caller& caller, Actions& actions) {
  if (caller.envelope.variable >= facts_.params.size()) {
    machine_->Fail(InvalidArgument("E-rpc-variable", "trainer ", caller.envelope.trainer, " pulled variable ",
                                   caller.envelope.variable, ", which is no parameter"),
                   actions);
    return;
  }
  machine_->Pull(static_cast<int>(caller.envelope.trainer), static_cast<int>(caller.envelope.variable),
                 static_cast<int>(caller.envelope.chunk), caller.envelope.step, actions);
}

void Pserver::OnAsk(const Caller& caller) {
  const Envelope& e = caller.envelope;
  if (e.variable >= facts_.params.size()) return;
  if (e.chunk >= store_->chunk_count(static_cast<int>(e.variable))) return;
  SendTo(static_cast<int>(e.trainer),
         {.kind = MessageKind::kAnswer, .step = e.step, .variable = e.variable, .chunk = e.chunk},
         Payload::Of(Lacking(static_cast<int>(e.variable), static_cast<int>(e.chunk))));
}

// "trainer 3 (last heard 11 s ago)"; empty if the chunk waits for nobody.
std::string Pserver::Lacking(int param, int chunk) const {
  std::string text;
  for (const int t : machine_->Lacks(param, chunk)) {
    const Trainer& trainer = trainers_[static_cast<std::size_t>(t)];
    if (!text.empty()) text += ", ";
    text += StrCat("trainer ", t,
                   trainer.seen
                       ? StrCat(" (last heard ", Seconds(options_.clock->Now() - trainer.heard), " s ago)")
                       : std::string(" (not started yet)"));
  }
  return text;
}

void Pserver::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  const std::lock_guard lock(mutex_);
  const auto known = trainer_of_.find(from.get());
  if (known == trainer_of_.end()) return;
  const int id = known->second;
  trainer_of_.erase(known);
  Trainer& trainer = trainers_[static_cast<std::size_t>(id)];
  if (trainer.connection != from) return;
  trainer.connection = nullptr;
  Actions actions;
  const std::string how = why.ok() ? "it ended without completing" : why.message();
  machine_->Gone(id,
                 Unavailable("E-peer-lost", "trainer ", id, " is gone: ", how, " (step ",
                             machine_->steps_ended(id), ", seen by pserver ", facts_.address, ")"),
                 actions);
  Execute(std::move(actions));
}

void Pserver::Tick() {
  const std::lock_guard lock(mutex_);
  if (ended_.has_value()) return;
  const Nanoseconds now = options_.clock->Now();
  if (now - reported_ < kReportAfter) return;
  reported_ = now;
  std::string missing;
  for (int t = 0; t < facts_.trainers; ++t) {
    if (!trainers_[static_cast<std::size_t>(t)].seen) missing += StrCat(missing.empty() ? "" : ", ", t);
  }
  if (!missing.empty()) {
    options_.report(StrCat("waiting ", Seconds(now - started_), " s on pserver ", facts_.address,
                           ": for trainer ", missing, " to start"));
  }
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
    } else if (const auto* reply = std::get_if<ReplyAction>(&action)) {
      Reply(*reply);
    } else if (const auto* end = std::get_if<EndAction>(&action)) {
      ended_ = end->why;
      if (options_.on_end) options_.on_end();
    }
  }
}

void Pserver::Start(const MergeAction& merge, Actions& actions) {
  std::size_t bytes = 0;
  for (const Payload& part : merge.parts) bytes += part.size();
  if (bytes <= options_.inline_bytes) {
    store_->Merge(merge);
    machine_->MergeDone(merge.param, merge.chunk, actions);
    return;
  }
  options_.run([this, merge] {
    store_->Merge(merge);
    const std::lock_guard lock(mutex_);
    Actions next;
    machine_->MergeDone(merge.param, merge.chunk, next);
    Execute(std::move(next));
  });
}

void Pserver::Reply(const ReplyAction& reply) {
  if (reply.kind == MessageKind::kPulled) {
    ReplyChunk(reply);
    return;
  }
  const Trainer& trainer = trainers_[static_cast<std::size_t>(reply.trainer)];
  Envelope envelope{.kind = reply.kind,
                    .step = reply.step,
                    .credit = reply.credit,
                    .variable = static_cast<std::uint32_t>(reply.param),
                    .chunk = static_cast<std::uint32_t>(reply.chunk),
                    .part = reply.part};
  Payload body;
  if (reply.kind == MessageKind::kPushed && !facts_.params[static_cast<std::size_t>(reply.param)].start) {
    envelope.variable = static_cast<std::uint32_t>(facts_.params.size()) +
                        trainer.grad_of_param[static_cast<std::size_t>(reply.param)];
  }
  if (reply.kind == MessageKind::kError) body = Payload::Of(WriteStatus(reply.error));
  SendTo(reply.trainer, envelope, std::move(body));
}

void Pserver::ReplyChunk(const ReplyAction& reply) {
  const Tensor& chunk = store_->Snapshot(reply.param, reply.chunk, reply.step);
  Envelope envelope{.kind = MessageKind::kPulled,
                    .step = reply.step,
                    .credit = reply.credit,
                    .variable = static_cast<std::uint32_t>(reply.param),
                    .chunk = static_cast<std::uint32_t>(reply.chunk)};
  for (std::size_t begin = 0; begin < chunk.bytes(); begin += options_.part_bytes) {
    SendTo(reply.trainer, envelope,
           Payload::Of(chunk, begin, std::min(options_.part_bytes, chunk.bytes() - begin)));
    ++envelope.part;
  }
}

void Pserver::SendTo(int trainer, Envelope envelope, Payload body) {
  const Trainer& to = trainers_[static_cast<std::size_t>(trainer)];
  if (to.connection == nullptr) return;
  envelope.job = job_hash_;
  if (envelope.contract == 0) envelope.contract = to.hash;
  envelope.incarnation = to.incarnation;
  envelope.trainer = static_cast<std::uint32_t>(trainer);
  to.connection->Send(Seal(envelope, options_.token, std::move(body)));
}

}  // namespace penstock
