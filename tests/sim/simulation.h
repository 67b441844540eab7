// Runs trainers and pservers on the simulated network: the objects of real processes, without threads or
// sockets.
//
//   Simulation sim(job, 4, seed, {.lost = 0.1});       // 4 steps of every trainer
//   ASSERT_TRUE(sim.Run());
//   sim.trainer(1).session().status()
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "executor/client/session.h"
#include "executor/pserver/pserver.h"
#include "executor/pserver/service/native_dialer.h"
#include "executor/pserver/service/native_service.h"
#include "tests/sim/held_bytes.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {

inline constexpr auto kTick = std::chrono::milliseconds(50);

struct Server {
  Program program;
  Scope scope;
  std::unique_ptr<pserver::Pserver> pserver;
  std::unique_ptr<pserver::NativeService> service;
  std::unique_ptr<pserver::NativeDialer> dialer;
  std::unique_ptr<HeldBytes> held;
  std::unique_ptr<Listener> listener;
  std::vector<std::string> reports;
  std::vector<Status> reactions;
  bool killed = false;
  bool stopped = false;  // its threads have stopped: it answers but computes nothing
};

// A scripted trainer: pulls version 0; then pushes, ends the step and pulls, `steps` times; then completes.
class Trainer {
 public:
  Trainer(const ToyJob& job, int id, int steps, Network& net, client::SessionOptions options)
      : job_(job),
        id_(id),
        steps_(steps),
        net_(net),
        waits_for_pushes_(job.async || options.joins != client::Joins::kAtZero),
        session_(net.TransportOf(StrCat("trainer ", id)), std::move(options)) {}

  Status Start() {
    const Program startup = job_.TrainerStartup(id_);
    PENSTOCK_RETURN_IF_ERROR(session_.Attach(startup));
    PENSTOCK_RETURN_IF_ERROR(Declare());
    return silent_ ? OkStatus() : Begin();
  }
  // The process ends: no message leaves it any more.
  void Die() {
    dead_ = true;
    session_.Abort();
  }
  bool dead() const { return dead_; }
  bool completing() const { return completing_; }

  // Continues if the event for which it waits has happened.
  Status Step() {
    if (completing_ || silent_ || !session_.status().ok()) return session_.status();
    if (!started_) return Begin();
    if (!session_.PullsDone() || !session_.RowsDone()) return OkStatus();
    if (waits_for_pushes_ && !session_.EarlierPushesDone(session_.step())) return OkStatus();
    if (looking_) {
      looking_ = false;
      return PushAll();
    }
    ToyValues& seen = seen_.emplace_back();
    for (std::size_t i = 0; i < job_.params.size(); ++i) {
      if (job_.params[i].table) continue;
      const auto values = pulled_[i].Span<float>();
      seen[job_.params[i].name].assign(values.begin(), values.end());
    }
    const std::uint64_t step = session_.step();
    if (resumed_at_ + step == static_cast<std::uint64_t>(steps_)) {
      completing_ = true;
      return session_.Complete();
    }
    if (!std::exchange(trains_, true)) {
      PENSTOCK_RETURN_IF_ERROR(session_.Attach(job_.Trainer(id_)));
      PENSTOCK_RETURN_IF_ERROR(DeclarePushes());
    }
    looking_ = true;
    return LookUpAll();
  }

  void BeSilent() { silent_ = true; }  // only attaches its program
  void SkipGradient(std::uint64_t step, std::size_t param) { skip_at_step_[step] = param; }
  // Looks up row `id` in this step instead of the rows of ToyIds.
  void LookUpInstead(std::uint64_t step, std::int64_t id) { odd_ids_[step] = id; }
  void KeepLast(Status status) { last_ = std::move(status); }
  const Status& last() const { return last_; }
  client::Session& session() { return session_; }
  const std::vector<ToyValues>& seen() const { return seen_; }  // from first_step() on
  std::uint64_t first_step() const { return first_step_; }
  // The job's complete steps of this trainer before this start of it.
  std::uint64_t resumed_at() const { return resumed_at_; }
  int id() const { return id_; }

 private:
  // Once it is known with which step the trainer begins.
  Status Begin() {
    if (!session_.Join()) return OkStatus();
    if (job_.resume && !session_.first_step()) return OkStatus();
    first_step_ = session_.step();
    resumed_at_ = job_.resume ? *session_.first_step() - first_step_ : 0;
    if (id_ == 0) PENSTOCK_RETURN_IF_ERROR(PushStartValues());
    PENSTOCK_RETURN_IF_ERROR(PullAll());
    started_ = true;
    return OkStatus();
  }
  std::vector<std::int64_t> IdsOf(const ToyParam& table, std::uint64_t step) const {
    const auto odd = odd_ids_.find(step);
    if (odd != odd_ids_.end()) return {odd->second};
    return job_.IdsOf(table, id_, resumed_at_ + step);
  }
  Status LookUpAll() {
    for (std::size_t i = 0; i < job_.params.size(); ++i) {
      if (!job_.params[i].table) continue;
      PENSTOCK_RETURN_IF_ERROR(
          session_.PullRows(tables_[i], IdsOf(job_.params[i], session_.step()), pulled_[i]));
    }
    return OkStatus();
  }
  Status PushTable(std::size_t i, std::uint64_t step) {
    const ToyParam& table = job_.params[i];
    const auto values = pulled_[i].Span<float>();
    std::vector<float>& seen = seen_.back()[StrCat("rows of ", table.name)];
    seen.assign(values.begin(), values.end());
    const std::vector<float> gradient = ToyGradient(seen, table.name, id_, resumed_at_ + step);
    SelectedRows rows{IdsOf(table, step), table.shape[0], Tensor(DType::kFp32, pulled_[i].shape())};
    std::copy(gradient.begin(), gradient.end(), rows.value.Span<float>().begin());
    return session_.PushRows(pushes_[i], rows);
  }
  Status PushAll() {
    ToyValues& seen = seen_.back();
    const std::uint64_t step = session_.step();
    std::vector<std::size_t> order(job_.params.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), net_.random());
    for (const std::size_t i : order) {
      if (job_.params[i].table) {
        if (i != skip_at_step_[step]) PENSTOCK_RETURN_IF_ERROR(PushTable(i, step));
        continue;
      }
      Tensor gradient(DType::kFp32, job_.params[i].shape);
      const std::vector<float> values =
          ToyGradient(seen[job_.params[i].name], job_.params[i].name, id_, resumed_at_ + step);
      std::copy(values.begin(), values.end(), gradient.Span<float>().begin());
      Tensor& residual = residuals_[i];
      if (!residual.initialized()) {
        residual = Tensor(DType::kFp32, gradient.shape());
        std::fill(residual.Span<float>().begin(), residual.Span<float>().end(), 0.0f);
      }
      if (i == skip_at_step_[step] || job_.params[i].start) continue;
      PENSTOCK_RETURN_IF_ERROR(session_.Push(pushes_[i], gradient, residual));
      if (job_.async || net_.Uniform() < 0.5) continue;
      PENSTOCK_RETURN_IF_ERROR(session_.PullNext(pulls_[i], pulled_[i]));
      pulled_early_.insert(i);
    }
    if (job_.async && job_.lr_block) PENSTOCK_RETURN_IF_ERROR(session_.CountStep(peers_));
    if (!job_.async) PENSTOCK_RETURN_IF_ERROR(session_.EndStep(peers_));
    return PullAll();
  }

  struct Skips {  // by default nothing is skipped
    std::map<std::uint64_t, std::size_t> at;
    std::size_t& operator[](std::uint64_t step) { return at.emplace(step, std::size_t(-1)).first->second; }
  };

  RemotePiece Remote(const ToyParam& param, const std::string& name) const {
    return {.pserver = job_.servers[static_cast<std::size_t>(param.server)],
            .name = name,
            .dtype = DType::kFp32,
            .shape = param.shape,
            .trainer_id = id_};
  }
  Status Declare() {
    for (const ToyParam& param : job_.params) {
      if (param.table) {
        pulls_.emplace_back();
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const PullHandle handle, session_.DeclarePull(Remote(param, param.name)));
      pulls_.push_back(handle);
    }
    pulled_.resize(pulls_.size());
    PENSTOCK_ASSIGN_OR_RETURN(peers_, session_.DeclarePeers(job_.servers));
    return OkStatus();
  }
  // The tensors are destroyed before the server receives them.
  Status PushStartValues() {
    for (const ToyParam& param : job_.params) {
      if (!param.start) continue;
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle, session_.DeclarePush(Remote(param, param.name)));
      Tensor value(DType::kFp32, param.shape);
      const std::vector<float> values = ToyStart(param);
      std::copy(values.begin(), values.end(), value.Span<float>().begin());
      PENSTOCK_RETURN_IF_ERROR(session_.Push(handle, value));
      std::fill(value.Span<float>().begin(), value.Span<float>().end(), -1.0f);
    }
    return OkStatus();
  }
  Status DeclarePushes() {
    for (const ToyParam& param : job_.params) {
      tables_.emplace_back();
      if (param.table) {
        PENSTOCK_ASSIGN_OR_RETURN(tables_.back(), session_.DeclareRows(Remote(param, param.name)));
      }
      if (param.start) {
        pushes_.emplace_back();
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(const PushHandle handle,
                                session_.DeclarePush(Remote(param, job_.GradName(param, id_))));
      pushes_.push_back(handle);
    }
    return OkStatus();
  }
  Status PullAll() {
    for (std::size_t i = 0; i < pulls_.size(); ++i) {
      if (job_.params[i].table || pulled_early_.contains(i)) continue;
      PENSTOCK_RETURN_IF_ERROR(session_.Pull(pulls_[i], pulled_[i]));
    }
    pulled_early_.clear();
    return OkStatus();
  }

  const ToyJob& job_;
  const int id_;
  const int steps_;
  Network& net_;
  const bool waits_for_pushes_;  // as fetch_barrier does
  client::Session session_;
  std::vector<PushHandle> pushes_;
  std::vector<PullHandle> pulls_;
  std::vector<RowsHandle> tables_;
  std::vector<Tensor> pulled_;
  std::map<std::size_t, Tensor> residuals_;  // by parameter
  std::set<std::size_t> pulled_early_;       // parameters requested before the end of the current step
  PeersHandle peers_;
  std::vector<ToyValues> seen_;
  Skips skip_at_step_;
  std::map<std::uint64_t, std::int64_t> odd_ids_;
  Status last_;
  bool looking_ = false;  // the rows of this step are requested, and no gradient is sent yet
  bool silent_ = false;
  bool started_ = false;
  bool trains_ = false;  // its main program is attached
  bool dead_ = false;
  std::uint64_t first_step_ = 0, resumed_at_ = 0;
  bool completing_ = false;
};

class Simulation {
 public:
  Simulation(ToyJob job, int steps, std::uint64_t seed, Faults faults)
      : Simulation(job, steps, seed, faults, job.trainers) {}
  // Only the first `present` trainers of the job start. `proven`: see PserverOptions.
  // `joins`: what the death of a trainer means; kAtZero: it ends the job.
  Simulation(ToyJob job, int steps, std::uint64_t seed, Faults faults, int present, bool proven = true,
             client::Joins joins = client::Joins::kAtZero)
      : job_(std::move(job)), proven_(proven), joins_(joins), net_(seed, faults) {
    runner_.meanwhile = [this] { net_.RunMeanwhile(); };
    for (std::size_t s = 0; s < job_.servers.size(); ++s) {
      disks_.push_back(job_.disk != nullptr ? job_.disk : std::make_shared<FaultyDisk>(seed));
      servers_.emplace_back();
      StartServer(static_cast<int>(s), 0);
    }
    for (int t = 0; t < present; ++t) AddTrainer(t, job_, steps, {});
  }

  // `restarts`: how often it was started before, by itself.
  void StartServer(int index, std::uint64_t restarts) {
    std::unique_ptr<Server>& place = servers_[static_cast<std::size_t>(index)];
    if (place != nullptr) dead_.push_back(std::move(place));  // pending events refer to it
    place = std::make_unique<Server>();
    Server& server = *place;
    server.program = job_.Pserver(index);
    job_.Start(index, server.scope);
    pserver::PserverOptions options;
    options.job = "sim";
    options.proven = proven_;
    options.chunk_limit = 32;
    options.part_bytes = 20;
    options.early_bytes = job_.early_bytes.value_or(options.early_bytes);
    options.inline_bytes = job_.all_by_turn || net_.Uniform() < 0.5 ? 0 : 1000;
    options.run = [this, &server](std::function<void()> work) {
      net_.After(net_.Delay(), [&server, work = std::move(work)] {
        if (!server.stopped) work();
      });
    };
    options.report = [&server, this](const std::string& line) {
      server.reports.push_back(line);
      Note(line);
    };
    options.on_reaction = [&server](const Status& why) { server.reactions.push_back(why); };
    options.clock = &net_.clock();
    options.resend_after = std::chrono::milliseconds(100);
    options.reconnect_deadline = net_.reconnect_deadline();
    options.disk = &disk(index);
    if (job_.checkpoint_every > 0) {
      options.checkpoints = {.folder = "ckpt",
                             .every = job_.checkpoint_every,
                             .resume = job_.resume,
                             .servers = job_.servers,
                             .run = job_.run,
                             .restarts_max = 100,
                             .restarts = restarts};
    }
    if (job_.checkpoint_share) {
      options.checkpoints = {.folder = "ckpt",
                             .every = pserver::CheckpointOptions::kNoInterval,
                             .share = job_.checkpoint_share,
                             .least = kTick,
                             .keep = 1000,
                             .servers = job_.servers,
                             .run = "sim.0"};
    }
    using pserver::TrainerLoss;
    if (joins_ == client::Joins::kAtLowest) options.trainer_loss = TrainerLoss::kWait;
    if (joins_ == client::Joins::kAtHighest) options.trainer_loss = TrainerLoss::kShrink;
    auto made = pserver::Pserver::Make(server.program, *server.program.main().ops().back().op, server.scope,
                                       SimOps(), runner_, options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    server.pserver = std::move(made).value();
    server.service = std::make_unique<pserver::NativeService>(*server.pserver);
    server.held = std::make_unique<HeldBytes>(*server.service);
    net_.After(net_.Delay() * 10, [this, &server] {
      if (server.killed) return;
      server.listener = std::move(net_.transport().Listen(server.pserver->address(), *server.held)).value();
      if (server.pserver->meets_servers()) {
        server.dialer = std::make_unique<pserver::NativeDialer>(net_.TransportOf(server.pserver->address()));
        server.pserver->MeetServers(*server.dialer);
      }
      if (server.dialer != nullptr || net_.reconnect_deadline() > Nanoseconds(0)) Tick(server);
    });
  }
  // Kills a server. The servers that it called do not notice; it only falls silent.
  void Kill(int index) {
    Server& dead = server(index);
    net_.Kill(dead.pserver->address());
    dead.listener.reset();
    dead.killed = true;
  }

  // Kills a server, and starts it again by itself: from what its disk has, with initial values if that is
  // nothing.
  void KillAndRestart(int index) {
    Kill(index);
    server(index).stopped = true;
    net_.After(net_.Delay() * 20, [this, index] {
      if (disk(index).crashed()) disk(index).Restart();
      before_restart(index);
      Note(StrCat("server ", index, " is started again"));
      StartServer(index, ++restarts_);
      after_restart(index);
    });
  }

  std::function<void(int server)> before_restart = [](int) {};  // its disk works again
  std::function<void(int server)> after_restart = [](int) {};   // it has restored what its disk has

  Trainer& AddTrainer(int id, const ToyJob& job, int steps, client::SessionOptions options) {
    if (options.job.empty()) options.job = "sim";
    options.resend_after = job.resend_after;
    options.clock = &net_.clock();
    options.reconnect_deadline = net_.reconnect_deadline();
    options.joins = joins_;
    options.report = [this, id](const std::string& line) { Note(StrCat("trainer ", id, ": ", line)); };
    options.retention_bytes = job.retention_bytes.value_or(options.retention_bytes);
    trainers_.push_back(std::make_unique<Trainer>(job, id, steps, net_, options));
    Trainer& trainer = *trainers_.back();
    net_.After(net_.Delay() * 10, [this, &trainer] {
      if (trainer.dead()) return;
      const Status status = trainer.Start();
      ASSERT_TRUE(status.ok()) << status.ToString();
      Tick(trainer);
    });
    return trainer;
  }

  bool Run() {
    return Run([] {});
  }
  // Runs until all processes are done, or all know of a failure. Calls `check` before each event.
  bool Run(const std::function<void()>& check, Nanoseconds limit = std::chrono::minutes(10)) {
    return net_.RunUntil(
        [&] {
          check();
          const bool servers = std::all_of(servers_.begin(), servers_.end(), [](const auto& s) {
            return s->pserver == nullptr || s->killed || s->pserver->Ended().has_value();
          });
          const bool trainers = std::all_of(trainers_.begin(), trainers_.end(), [](const auto& t) {
            return t->dead() || t->session().CompleteDone() || !t->session().status().ok();
          });
          return servers && trainers;
        },
        limit);
  }

  // What happened and when, for failure messages: what processes report, and what tests note.
  void Note(const std::string& what) {
    story_ += StrCat("\n  ", net_.clock().Now() / std::chrono::milliseconds(1), " ms: ", what);
  }
  const std::string& story() const { return story_; }

  // What each trainer waits for, for failure messages.
  std::string Waiting() {
    std::string text;
    for (const auto& trainer : trainers_)
      text += StrCat("\n  step ", trainer->session().step(), ": ", trainer->session().WaitingFor(), " ",
                     trainer->last().ToString());
    return text;
  }

  Network& net() { return net_; }
  SimBlockRunner& runner() { return runner_; }
  Server& server(int i) { return *servers_[static_cast<std::size_t>(i)]; }
  FaultyDisk& disk(int i) { return *disks_[job_.checkpoint_share ? 0 : static_cast<std::size_t>(i)]; }
  std::uint64_t restarts() const { return restarts_; }
  Trainer& trainer(int i) { return *trainers_[static_cast<std::size_t>(i)]; }
  int trainer_count() const { return static_cast<int>(trainers_.size()); }  // processes
  const ToyJob& job() const { return job_; }

 private:
  void Tick(Server& server) {
    if (server.killed) return;
    server.pserver->Tick();
    const std::optional<Status> end = server.pserver->Ended();
    if (end && !end->ok() && server.listener && !server.pserver->HasListeners()) {  // its process ends
      net_.Kill(server.pserver->address());
      server.listener.reset();
    }
    net_.After(kTick, [this, &server] { Tick(server); });
  }
  void Tick(Trainer& trainer) {
    if (trainer.dead()) return;
    trainer.KeepLast(trainer.Step());  // the session's status has an error that ends the job
    trainer.session().Tick();
    net_.After(kTick / 10, [this, &trainer] { Tick(trainer); });
  }

  const ToyJob job_;
  const bool proven_;
  const client::Joins joins_;
  SimBlockRunner runner_;
  Network net_;
  std::vector<std::shared_ptr<FaultyDisk>> disks_;  // by server
  std::vector<std::unique_ptr<Server>> servers_, dead_;
  std::uint64_t restarts_ = 0;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::string story_;
};

}  // namespace penstock::test
