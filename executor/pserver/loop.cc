#include "executor/pserver/loop.h"

#include <algorithm>
#include <new>
#include <system_error>

#include "executor/pserver/memory_left.h"
#include "executor/pserver/refusal.h"
#include "framework/roles/views.h"

namespace penstock::pserver {
namespace {

constexpr auto kTickEvery = std::chrono::seconds(1);
constexpr auto kFlushEvery = std::chrono::milliseconds(20);

Status NoMemory(const Op& op, const std::string& why) {
  return FailedPrecondition("E-run-memory", "pserver ", roles::ServeView(op).address(), ": ", why);
}

}  // namespace

void PserverLoop::Post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  has_work_.notify_one();
}

void PserverLoop::Work() {
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

void PserverLoop::TickUntilOver(Pserver& pserver) {
  const Nanoseconds every = std::min<Nanoseconds>(kTickEvery, options_.pserver.report_after);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, every, [&] { return ended_ || cancelled_; })) {
    lock.unlock();
    pserver.Tick();
    lock.lock();
  }
  if (ended_) return;
  lock.unlock();
  pserver.Fail(Cancelled("E-cancelled", "pserver ", pserver.address(), " was cancelled"));
}

// Starts as many threads as the system allows; one is enough.
Status PserverLoop::StartWorkers(const Op& op) {
  try {
    while (static_cast<int>(workers_.size()) < options_.threads) workers_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    if (workers_.empty()) return NoMemory(op, StrCat("cannot start a thread: ", error.what()));
  }
  return OkStatus();
}

void PserverLoop::EndWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    has_work_.notify_all();
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

Status PserverLoop::Serve(const Program& program, const Op& op, Scope& scope) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = ended_ = false;
  }
  PserverOptions options = options_.pserver;
  options.run = [this](std::function<void()> work) { Post(std::move(work)); };
  options.on_end = [this] {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  };
  ShareHeaps();
  if (!MemoryLeft(kMemoryToStart)) {
    return NoMemory(op, StrCat("less than the ", kMemoryToStart >> 20, " MB that a server needs are left"));
  }
  Result<std::unique_ptr<Pserver>> made = [&]() -> Result<std::unique_ptr<Pserver>> {
    try {
      return Pserver::Make(program, op, scope, ops_, blocks_, std::move(options));
    } catch (const std::bad_alloc&) {
      return NoMemory(op, "not enough memory for its parameters");
    }
  }();
  if (!made.ok()) {
    TellTrainers(made.status(), op);
    return std::move(made).status();
  }
  const std::unique_ptr<Pserver> pserver = *std::move(made);
  const WorkersEnd at_end{*this};  // on every path: destroying a running thread ends the process
  if (Status started = StartWorkers(op); !started.ok()) {
    TellTrainers(started, op);
    return started;
  }
  Served served = pserver->served();
  served.run = [this](std::function<void()> work) { Post(std::move(work)); };
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener, wire_.Listen(std::move(served), *pserver));
  const std::unique_ptr<Dialer> dialer = pserver->meets_servers() ? wire_.MakeDialer() : nullptr;
  const CallsEnd calls_end{dialer.get()};
  if (dialer != nullptr) pserver->MeetServers(*dialer);
  options_.pserver.report(StrCat("pserver ", pserver->address(), " is ready"));
  TickUntilOver(*pserver);
  // Waits until the trainers have received their last replies and closed their connections.
  WaitWhile([&] {
    if (dialer != nullptr) pserver->Tick();  // retries messages to other servers
    return pserver->HasListeners();
  });
  if (dialer != nullptr) dialer->EndAll();
  listener.reset();
  EndWorkers();
  return *pserver->Ended();
}

}  // namespace penstock::pserver
