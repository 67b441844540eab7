#include "executor/pserver/loop.h"

#include <algorithm>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/pserver/memory/memory_left.h"
#include "executor/pserver/program_order.h"
#include "executor/pserver/program_router.h"
#include "executor/pserver/refusal.h"
#include "framework/roles/views.h"
#include "framework/runtime/compute_pool.h"

namespace penstock::pserver {
namespace {

constexpr auto kTickEvery = std::chrono::seconds(1);
// After the loss of a connection, so that the end of the peer's process is known as soon.
constexpr auto kTickLostEvery = std::chrono::milliseconds(20);
constexpr int kTicksLost = 50;
constexpr auto kFlushEvery = std::chrono::milliseconds(20);

Status NoMemory(const std::string& address, const std::string& why) {
  return FailedPrecondition("E-run-memory", "pserver ", address, ": ", why);
}

Status RequireMemoryToStart(const std::string& address) {
  if (MemoryLeft(kMemoryToStart)) return OkStatus();
  return NoMemory(address,
                  StrCat("less than the ", kMemoryToStart >> 20, " MB that a server needs are left"));
}

}  // namespace

void PserverLoop::Post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  has_work_.notify_one();
}

void PserverLoop::Work() {
  // While other workers have loops of their own, the compute pool gives none of its threads to this one.
  const ComputeTeam team(options_.threads);
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [&] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void PserverLoop::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void PserverLoop::TellTrainers(const Status& why, const Op& op) {
  const std::string& address = roles::ServeView(op).address();
  const PserverOptions& options = options_.pserver;
  Refusal refusal(why, roles::ServeView(op).trainers(), options.job, *options.clock);
  Served nothing{.run = [this](std::function<void()> work) { Post(std::move(work)); }};
  nothing.role.address = address;
  nothing.role.trainers = roles::ServeView(op).trainers();
  const Result<std::unique_ptr<Listener>> listener = wire_.Listen(std::move(nothing), refusal);
  if (!listener.ok()) return;  // the caller's error is more useful than this one
  const auto& warn = options.warn ? options.warn : options.report;
  warn(StrCat("pserver ", address, " cannot serve, and tells its trainers: ", why.message()));
  WaitWhile([&] { return refusal.HasListeners(); });
}

void PserverLoop::WaitWhile(const std::function<bool()>& is_heard) {
  while (is_heard()) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kFlushEvery, [&] { return cancelled_; })) return;
  }
}

// Nobody came to a program that no trainer runs: it is over with the others.
bool PserverLoop::AreOver(const Pservers& pservers) {
  bool completed = false, serves = false;
  for (const auto& each : pservers) {
    const std::optional<Status> end = each->Ended();
    if (end && !end->ok()) return true;
    completed |= end.has_value();
    serves |= !end && each->HasCome();
  }
  return completed && !serves;
}

Status PserverLoop::EndOf(const Pservers& pservers) {
  for (const auto& each : pservers) {
    const std::optional<Status> end = each->Ended();
    if (end && !end->ok()) return *end;
  }
  return OkStatus();
}

void PserverLoop::Tick(const Pservers& pservers) {
  std::vector<const Pserver*> programs;
  for (const auto& each : pservers) {
    each->Tick();
    programs.push_back(each.get());
  }
  const std::optional<Status> disorder = programs.size() > 1 ? OrderError(programs) : std::nullopt;
  if (!disorder) return;
  for (const auto& each : pservers) each->Fail(*disorder);
}

void PserverLoop::TickUntilOver(const Pservers& pservers) {
  const Nanoseconds seldom = std::min<Nanoseconds>(kTickEvery, options_.pserver.report_after);
  std::unique_lock lock(mutex_);
  int often = 0;  // ticks left that follow each other closely
  while (!cancelled_) {
    const Nanoseconds every = often > 0 ? kTickLostEvery : seldom;
    if (changed_.wait_for(lock, every, [&] { return ended_ || lost_ || cancelled_; }) && cancelled_) break;
    often = std::exchange(lost_, false) ? kTicksLost : std::max(often - 1, 0);
    const bool looks = std::exchange(ended_, false);
    lock.unlock();
    if (looks && AreOver(pservers)) {
      const Status end = EndOf(pservers);
      if (end.ok()) return;
      for (const auto& each : pservers) each->Fail(end);  // no effect on one that has ended
      return;
    }
    Tick(pservers);
    lock.lock();
  }
  lock.unlock();
  for (const auto& each : pservers)
    each->Fail(Cancelled("E-cancelled", "pserver ", each->address(), " was cancelled"));
}

// Starts as many threads as the system allows; one is enough.
Status PserverLoop::StartWorkers(const std::string& address) {
  try {
    while (static_cast<int>(workers_.size()) < options_.threads) workers_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    if (workers_.empty()) return NoMemory(address, StrCat("cannot start a thread: ", error.what()));
  }
  return OkStatus();
}

void PserverLoop::EndWorkers() {
  aside_.End();  // while there are workers for what it posts
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    has_work_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  aside_.End();  // of a job that has failed, something may be left
  const std::lock_guard lock(mutex_);
  work_.clear();
}

PserverOptions PserverLoop::MakeOptions() {
  PserverOptions options = options_.pserver;
  options.run = [this](std::function<void()> work) { Post(std::move(work)); };
  options.aside = [this](std::function<void()> work) {
    if (!aside_.Post(work)) Post(std::move(work));
  };
  options.on_end = [this] {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  };
  options.on_lost = [this] {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  };
  options.table_shards.most = wire_.CarriesShards() ? options_.threads : 1;
  if (!wire_.CarriesShards()) options.table_shards.exactly.reset();
  return options;
}

Result<PserverLoop::Pservers> PserverLoop::MakePservers(std::span<const ServedProgram> programs,
                                                        Scope& scope) {
  const PserverOptions options = MakeOptions();
  const Op& first = *programs[0].op;
  if (programs.size() > 1 && !wire_.TellsProgramsApart()) {
    return InvalidArgument("E-server-programs", "pserver ", roles::ServeView(first).address(), " serves ",
                           programs.size(), " programs, which Fluid's wire does not tell apart")
        .With("leave PENSTOCK_WIRE out, or give each program pservers of its own");
  }
  if (programs.size() > 1 && options.checkpoints.used()) {
    return Unimplemented("E-checkpoint-mode", "pserver ", roles::ServeView(first).address(),
                         " makes no checkpoints: it serves ", programs.size(),
                         " programs, which have no common step");
  }
  if (programs.size() > 1 && options.trainer_loss != TrainerLoss::kAbort) {
    return Unimplemented("E-trainer-loss-mode", "pserver ", roles::ServeView(first).address(),
                         " can only end the job when a trainer dies: it serves ", programs.size(),
                         " programs, which have no common step")
        .With("use on_trainer_loss=abort");
  }
  Pservers pservers;
  for (const ServedProgram& each : programs) {
    try {
      PENSTOCK_ASSIGN_OR_RETURN(
          std::unique_ptr<Pserver> made,
          Pserver::Make(*each.program, *each.op, scope, ops_, blocks_, PserverOptions(options)));
      pservers.push_back(std::move(made));
    } catch (const std::bad_alloc&) {
      return NoMemory(roles::ServeView(first).address(), "not enough memory for its parameters");
    }
  }
  return pservers;
}

// Connects each pserver that needs it to the other servers of its program, and ends the calls on every path.
struct PserverLoop::Meeting {
  Meeting(Wire& wire, const Pservers& pservers) {
    for (const auto& each : pservers) {
      if (!each->meets_servers()) continue;
      dialers.push_back(wire.MakeDialer());
      if (dialers.back() == nullptr) continue;
      meet.push_back(each.get());
      each->MeetServers(*dialers.back());
    }
  }
  ~Meeting() { End(); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  void End() {
    for (const auto& each : dialers) {
      if (each != nullptr) each->EndAll();
    }
  }

  std::vector<std::unique_ptr<Dialer>> dialers;
  std::vector<Pserver*> meet;
};

Status PserverLoop::Serve(const Program& program, const Op& op, Scope& scope) {
  const ServedProgram one{.program = &program, .op = &op};
  return ServeTogether({&one, 1}, scope);
}

Status PserverLoop::ServeTogether(std::span<const ServedProgram> programs, Scope& scope) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = ended_ = false;
  }
  const Op& first = *programs[0].op;
  ShareHeaps();
  const std::string& address = roles::ServeView(first).address();
  PENSTOCK_RETURN_IF_ERROR(RequireMemoryToStart(address));
  const Result<Pservers> made = MakePservers(programs, scope);
  if (!made.ok()) {
    TellTrainers(made.status(), first);
    return made.status();
  }
  const WorkersEnd at_end{*this};  // on every path: destroying a running thread ends the process
  if (Status started = StartWorkers(address); !started.ok()) {
    TellTrainers(started, first);
    return started;
  }
  return ServeAll(*made);
}

Status PserverLoop::ServeKeys(KeyServerFacts facts) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = ended_ = false;
  }
  ShareHeaps();
  PENSTOCK_RETURN_IF_ERROR(RequireMemoryToStart(facts.address));
  facts.ops = &ops_;
  Pservers one(1);
  KeyServerFacts with_ops = facts;
  with_ops.ops = &ops_;
  PENSTOCK_ASSIGN_OR_RETURN(one.front(), Pserver::MakeForKeys(with_ops, blocks_, MakeOptions()));
  const WorkersEnd at_end{*this};
  PENSTOCK_RETURN_IF_ERROR(StartWorkers(facts.address));
  return ServeAll(one);
}

Status PserverLoop::ServeAll(const Pservers& pservers) {
  std::vector<Pserver*> listed;
  for (const auto& each : pservers) listed.push_back(each.get());
  ProgramRouter router(listed);
  EventHandler& handler = listed.size() > 1 ? static_cast<EventHandler&>(router) : *listed.front();
  Served served = listed.front()->served();
  served.run = [this](std::function<void()> work) { Post(std::move(work)); };
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener, wire_.Listen(std::move(served), handler));
  Meeting meeting(wire_, pservers);
  const std::string programs = listed.size() > 1 ? StrCat(" for ", listed.size(), " programs") : "";
  options_.pserver.report(StrCat("pserver ", listed.front()->address(), " is ready", programs));
  TickUntilOver(pservers);
  // Waits until the trainers have received their last replies and closed their connections.
  WaitWhile([&] {
    for (Pserver* each : meeting.meet) each->Tick();  // retries messages to other servers
    return std::any_of(listed.begin(), listed.end(),
                       [](const Pserver* each) { return each->Ended().has_value() && each->HasListeners(); });
  });
  meeting.End();
  listener.reset();
  EndWorkers();
  return EndOf(pservers);
}

}  // namespace penstock::pserver
