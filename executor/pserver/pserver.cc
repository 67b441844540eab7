#include "executor/pserver/pserver.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "executor/pserver/machine/policies/policy_of.h"
#include "executor/pserver/memory/memory_left.h"
#include "executor/pserver/pserver_guard.h"
#include "framework/text/job_facts.h"

namespace penstock::pserver {
namespace {

// How long final replies may take: by then a live trainer has read its last one.
constexpr Nanoseconds kLastReplies = std::chrono::seconds(5);
// How long a failed server stays to tell late trainers, which would otherwise wait for it. No process
// outlives its job by more than 10 s.
constexpr Nanoseconds kTellLatecomers = std::chrono::seconds(9);

// Decides which params are pushed by turn: none if the gradients that all trainers may push early fit into
// options.early_bytes, otherwise all large dense ones.
void BoundEarlyBytes(const PserverOptions& options, MachineConfig& config) {
  const auto is_large = [&](const MachineConfig::Param& param) {
    return !param.start && param.pushed_row_bytes == 0 && !param.bytes_of_chunks.empty() &&
           param.bytes_of_chunks.front() > options.inline_bytes;
  };
  std::size_t bytes = 0;
  for (const MachineConfig::Param& param : config.params) {
    if (is_large(param))
      bytes = std::accumulate(param.bytes_of_chunks.begin(), param.bytes_of_chunks.end(), bytes);
  }
  config.early_bytes = options.early_bytes;
  if (bytes * static_cast<std::size_t>(config.trainers - 1) <= config.early_bytes) return;
  for (MachineConfig::Param& param : config.params) param.by_turn = is_large(param);
}

}  // namespace

Result<std::unique_ptr<Pserver>> Pserver::Make(const Program& program, const Op& listen_and_serv,
                                               Scope& scope, const OpRegistry& ops, BlockRunner& blocks,
                                               PserverOptions options) {
  PENSTOCK_ASSIGN_OR_RETURN(roles::PserverFacts facts, protocol::ReadServer(ops, program, listen_and_serv));
  std::unique_ptr<Pserver> server(new Pserver(std::move(facts), blocks, std::move(options)));
  PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program.meta()));
  PENSTOCK_ASSIGN_OR_RETURN(const std::set<std::string> restored,
                            server->BeginCheckpoints(program, policies.backup_trainers, scope));
  PENSTOCK_ASSIGN_OR_RETURN(
      server->store_,
      ChunkStore::Make(program, server->facts_, scope, server->options_.chunk_limit,
                       server->options_.part_bytes, server->options_.table_shards, *server->options_.disk));
  server->queues_ = std::make_unique<ChunkQueues>(server->store_->queue_count(), server->options_.run);
  MachineConfig config;
  config.trainers = server->facts_.trainers;
  config.has_lr_block = server->facts_.lr_block >= 0;
  config.counts_steps = !server->facts_.counters.empty();
  config.part_bytes = server->options_.part_bytes;
  config.params = server->store_->Shapes();
  if (server->checkpoints_ != nullptr) {
    PENSTOCK_RETURN_IF_ERROR(server->checkpoints_->Complete(scope, *server->store_));
    config.first_step = server->checkpoints_->first_step();
    config.cut_every = server->checkpoints_->every();
    for (MachineConfig::Param& param : config.params) param.restored = restored.contains(param.name);
    server->BeginRecovery(config);
    const CheckpointOptions& saves = server->options_.checkpoints;
    server->cut_clock_.Begin(server->options_.clock->Now(),
                             {.share = saves.share.value_or(1), .least = saves.least});
  }
  if (server->meets_servers()) {
    config.servers = static_cast<int>(server->facts_.exchange.servers.size());
    config.server = server->facts_.exchange.self;
  }
  server->notes_ = JobNotes(server->options_.observer, config.trainers, config.params,
                            server->facts_.mode == roles::ServeMode::kSync);
  if (observe::Observer* const observer = server->options_.observer)
    server->trace_ = ServerTrace(observer->tracer(), server->facts_);
  config.backup_trainers = policies.backup_trainers;
  config.trainer_loss = server->options_.trainer_loss;
  PENSTOCK_RETURN_IF_ERROR(server->RequireReturns(policies.backup_trainers));
  if (config.backup_trainers >= config.trainers) {
    return InvalidArgument("E-plan-backup-trainers", "pserver ", server->facts_.address,
                           ": backup_trainers is ", config.backup_trainers, ", and there are ",
                           config.trainers, " trainers");
  }
  if (config.backup_trainers > 0) PENSTOCK_RETURN_IF_ERROR(server->RequireBackups(config));
  std::unique_ptr<UpdatePolicy> policy = PolicyOf(server->facts_, policies);
  // Turns count each trainer's gradients.
  const bool shrinks = config.trainer_loss == TrainerLoss::kShrink;
  if (policy->MergesInTurn() && !shrinks) BoundEarlyBytes(server->options_, config);
  server->machine_ = std::make_unique<StateMachine>(std::move(config), std::move(policy));
  return server;
}

Result<std::set<std::string>> Pserver::BeginCheckpoints(const Program& program, int backup_trainers,
                                                        Scope& scope) {
  if (!options_.checkpoints.used()) return std::set<std::string>();
  PENSTOCK_ASSIGN_OR_RETURN(checkpoints_, Checkpoints::Make(*options_.disk, options_.checkpoints, facts_,
                                                            program, backup_trainers));
  PENSTOCK_ASSIGN_OR_RETURN(std::set<std::string> restored, checkpoints_->Restore(scope));
  if (const std::uint64_t step = checkpoints_->restored_step(); step > 0) {
    options_.report(StrCat("pserver ", facts_.address, " continues after step ", step, " from ",
                           checkpoints_->FolderOf(step)));
  }
  return restored;
}

// A trainer that returns must find the others in its step, or one step ahead, unless they do not wait for it.
Status Pserver::RequireReturns(int backup_trainers) const {
  const TrainerLoss loss = options_.trainer_loss;
  if (loss == TrainerLoss::kAbort) return OkStatus();
  const bool sync = facts_.mode == roles::ServeMode::kSync;
  const bool waits = sync && facts_.counters.empty() && backup_trainers == 0;
  const bool hybrid = ModeOfJob(facts_.job_facts) == "hybrid";
  const bool keeps = facts_.keeps_backups;  // what a process has read
  if (!sync && facts_.mode != roles::ServeMode::kGeo && loss == TrainerLoss::kWait && !hybrid && !keeps)
    return OkStatus();
  if (!waits || hybrid) {
    return Unimplemented("E-trainer-loss-mode", "pserver ", facts_.address,
                         " can only end the job when a trainer dies: ",
                         hybrid ? "trainers keep the dense parameters themselves"
                                : "its trainers do not wait for each other")
        .With(sync || hybrid || keeps || facts_.mode == roles::ServeMode::kGeo
                  ? "use synchronous training, or on_trainer_loss=abort"
                  : "use synchronous training, or on_trainer_loss=wait or abort");
  }
  if (loss == TrainerLoss::kShrink) return store_->RequireLiveMeans();
  store_->KeepVersions();
  return OkStatus();
}

// With backup trainers a step lacks some gradients, and different ones on each server. So no norm covers all
// gradients, and each update must use their mean.
Status Pserver::RequireBackups(const MachineConfig& config) const {
  const auto clips = [](const MachineConfig::Param& param) { return param.clips; };
  if (std::any_of(config.params.begin(), config.params.end(), clips)) {
    return Unimplemented("E-contract-policy", kBackupTrainersPolicy,
                         " does not run where pservers clip by a ",
                         "norm over all gradients; transpile without it, or with clip=local");
  }
  return store_->RequireMeans();
}

Pserver::Pserver(roles::PserverFacts facts, BlockRunner& blocks, PserverOptions options)
    : facts_(std::move(facts)),
      blocks_(blocks),
      options_(Guarded(std::move(options))),
      portions_([this](std::function<void()> work) { options_.aside(std::move(work)); }, kPortionsBytes),
      admission_(facts_, options_.job),
      others_(facts_.exchange, options_.job, facts_.job_facts,
              {.clock = options_.clock,
               .observer = options_.observer,
               .resend_after = options_.resend_after,
               .connect_deadline = options_.start_deadline,
               .reconnect_deadline = options_.reconnect_deadline,
               .proven = options_.proven}),
      trainers_(static_cast<std::size_t>(facts_.trainers)),
      strangers_(options_.report, options_.clock),
      saves_(options_.checkpoint_folder, *options_.disk),
      reports_(options_.report_after) {
  started_ = options_.clock->Now();
}

Served Pserver::served() const {
  Served served{.role = facts_, .backup_trainers = machine_->backup_trainers()};
  served.row_policies = store_->HasRowPolicies();
  for (std::size_t p = 0; p < facts_.params.size(); ++p)
    served.chunk_rows.push_back(store_->chunk_rows(static_cast<int>(p)));
  return served;
}

PserverOptions Pserver::Guarded(PserverOptions options) {
  const auto guarded = [this](std::function<void(std::function<void()>)> run) {
    return [this, run = std::move(run)](std::function<void()> work) {
      run([this, work = std::move(work)] { Guard(work); });
    };
  };
  options.aside = guarded(options.aside ? std::move(options.aside) : options.run);
  options.run = guarded(std::move(options.run));
  return options;
}

void Pserver::FailForMemory() {
  try {
    Fail(FailedPrecondition("E-run-memory", "pserver ", facts_.address, ": not enough memory to go on"));
  } catch (const std::bad_alloc&) {  // too little to tell the trainers: the connections just end
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
  const Nanoseconds now = options_.clock->Now();
  const Nanoseconds since = now - ended_at_;
  bool lost = false;  // trainers that may come back for their last reply
  for (int id = 0; id < facts_.trainers; ++id) {
    const std::optional<Lost>& gone = At(id).lost;
    lost = lost || (gone && now - gone->at <= options_.reconnect_deadline && MayComeBack(id));
  }
  if ((!trainer_of_.empty() || lost) && since < kLastReplies) return true;
  if (ended_->ok() && others_.AnyAtWork() && since < kLastReplies) return true;
  return !ended_->ok() && (lost || !admission_.Awaited().empty()) && since < kTellLatecomers;
}

// The state machine has ended. Tables are put into the scope first, without the lock: it takes as long as
// they are large, and nothing else uses them any more.
void Pserver::OnEnd(const Status& why) {
  if (!why.ok() || !store_->HasTables()) return End(why);
  options_.run([this] {
    Status published = OkStatus();
    try {
      published = store_->PublishTables();
    } catch (const std::bad_alloc&) {
      published = FailedPrecondition("E-run-memory", "pserver ", facts_.address,
                                     ": not enough memory to put its tables into the scope");
    }
    const std::lock_guard lock(mutex_);
    if (!ended_.has_value()) End(published);
  });
}

void Pserver::End(const Status& why) {
  ended_ = why;
  ended_at_ = options_.clock->Now();
  const std::vector<int> awaited = admission_.Awaited();
  if (!why.ok() && !awaited.empty()) {
    const auto& warn = options_.warn ? options_.warn : options_.report;
    warn(StrCat("pserver ", facts_.address, " has failed, and tells trainer ", ListOf(awaited),
                " if it starts within ", WholeSeconds(kTellLatecomers), " s: ", why.message()));
  }
  ReportLate();
  why.ok() ? others_.Complete() : others_.Fail(why);
  if (options_.on_end) options_.on_end();
}

void Pserver::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  Actions actions;
  machine_->Fail(why, actions);
  Execute(std::move(actions));
}

void Pserver::OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                      protocol::Event event) {
  RowIds row_ids;
  if (const auto* pull = std::get_if<protocol::PullRows>(&event))
    Guard([&] { row_ids = RowIds::Of(pull->ids); });
  Decide([&] { Take({from, sender, static_cast<int>(sender.trainer), std::move(row_ids)}, event); });
}

// One after the other under one lock. A batch has no request for rows.
void Pserver::OnEvents(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                       std::vector<protocol::Event> events) {
  Decide([&] {
    const From known{from, sender, static_cast<int>(sender.trainer)};
    for (const protocol::Event& event : events) Take(known, event);
  });
}

void Pserver::Take(const From& from, const protocol::Event& event) {
  if (refused_.contains(from.caller.get())) return;  // it was told why
  Actions actions;
  if (std::holds_alternative<protocol::ServerHello>(event)) {
    On(from, std::get<protocol::ServerHello>(event), actions);
  } else if (const std::optional<int> server = others_.Find(from.caller.get())) {
    OnServer(*server, event, actions);
  } else {
    if (!std::holds_alternative<protocol::Hello>(event) && !IsOfTrainer(from, event)) return;
    if (trainer_of_.contains(from.caller.get())) notes_.Received(from.trainer, event);
    std::visit([&](const auto& message) { On(from, message, actions); }, event);
  }
  Execute(std::move(actions));
}

void Pserver::OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) {
  Decide([&] {
    if (!refused_.contains(from.get())) Unreadable(from, why);
  });
}

void Pserver::OnClosed(const std::shared_ptr<Caller>& from, const Status& why) {
  Decide([&] { Closed(from, why); });
}

void Pserver::MeetServers(Dialer& dialer) {
  Decide([&] { others_.Dial(dialer, *this); });
}

void Pserver::OnReply(const std::shared_ptr<Callee>& from, protocol::Reply reply) {
  Decide([&] {
    const std::optional<int> server = others_.Find(from.get());
    if (!server) return;
    Actions actions;
    Replied(*server, reply, actions);
    Execute(std::move(actions));
  });
}

void Pserver::OnUnreadableReply(const std::shared_ptr<Callee>& from, const Status& why) {
  Decide([&] {
    const std::optional<int> server = others_.Find(from.get());
    if (!server) return;
    Actions actions;
    machine_->Fail(Status(why).In(others_.NameOf(*server)), actions);
    Execute(std::move(actions));
  });
}

void Pserver::OnCalleeClosed(const std::shared_ptr<Callee>& from, const Status& why) {
  Decide([&] {
    if (const std::optional<int> server = others_.Find(from.get())) CalleeClosed(*server, why);
  });
}

// On request the servers agree on the last step of the job (checkpoint/stop_request.h).
void Pserver::LookForStop() {
  if ((checkpoints_ == nullptr && key_saves_ == nullptr) || stopping_ == Stopping::kKnows) return;
  if (Ended().has_value()) return;
  checkpoint::StopRequest& stop = key_saves_ != nullptr ? key_saves_->stop() : checkpoints_->stop();
  const std::uint64_t first = key_saves_ != nullptr ? key_saves_->first_step() : checkpoints_->first_step();
  // In geo-SGD, trainers add their parts after later exchanges: nothing is held.
  const bool geo = checkpoints_ != nullptr && checkpoints_->is_geo();
  if (stopping_ == Stopping::kNo) {
    if (!stop.Asked()) return;
    std::uint64_t begun = 0;
    Decide([&] { begun = geo ? machine_->next_cut() - first : machine_->HoldUpdates(); });
    if (const Status answered = stop.Answer(first + begun); !answered.ok()) {
      Fail(answered);
      return;
    }
    stopping_ = Stopping::kHolds;
  }
  const std::optional<std::uint64_t> last = stop.LastStep();
  if (!last) return;
  stopping_ = Stopping::kKnows;
  options_.report(StrCat("pserver ", facts_.address, " stops after step ", *last, ", as it was asked to"));
  if (geo) return;
  Decide([&] {
    Actions actions;
    machine_->StopAt(*last - first, actions);
    Execute(std::move(actions));
  });
}

void Pserver::Tick() {
  LookForStop();
  LookForCut();
  Decide([&] {
    GiveUpLost();
    GiveUpLostServers();
    ReportAwaited();
    if (ended_.has_value() && !ended_->ok()) return;
    const Status status = others_.Tick();
    if (status.ok() || ended_.has_value()) return;
    Actions actions;
    machine_->Fail(status, actions);
    Execute(std::move(actions));
  });
}

}  // namespace penstock::pserver
