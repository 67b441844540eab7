#include "executor/pserver/loop.h"

#include "executor/pserver/refusal.h"

namespace penstock {
namespace {

constexpr auto kTickEvery = std::chrono::seconds(1);
constexpr auto kFlushEvery = std::chrono::milliseconds(20);

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
  const auto address = op.GetOr<std::string>("endpoint", "");
  const PserverOptions& options = options_.pserver;
  Refusal refusal(why, op.GetOr<std::int32_t>("Fanin", 1), options.job, *options.clock);
  const Result<std::unique_ptr<Listener>> listener = transport_.Listen(address, refusal);
  if (!listener.ok()) return;  // why there is no server is worth more than why nobody can be told
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
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTickEvery, [&] { return ended_ || cancelled_; })) {
    lock.unlock();
    pserver.Tick();
    lock.lock();
  }
  if (ended_) return;
  lock.unlock();
  pserver.Fail(Cancelled("E-cancelled", "pserver ", pserver.address(), " was cancelled"));
}

void PserverLoop::EndWorkers(std::vector<std::thread>& workers) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    has_work_.notify_all();
  }
  for (std::thread& worker : workers) worker.join();
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
  Result<std::unique_ptr<Pserver>> made =
      Pserver::Make(program, op, scope, ops_, blocks_, std::move(options));
  if (!made.ok()) {
    TellTrainers(made.status(), op);
    return std::move(made).status();
  }
  const std::unique_ptr<Pserver> pserver = *std::move(made);
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener,
                            transport_.Listen(pserver->address(), *pserver));
  options_.pserver.report(StrCat("pserver ", pserver->address(), " is ready"));
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(options_.threads));
  for (int i = 0; i < options_.threads; ++i) workers.emplace_back([this] { Work(); });
  TickUntilOver(*pserver);
  // For the last replies: trainers close when they have them.
  WaitWhile([&] { return pserver->HasListeners(); });
  listener.reset();
  EndWorkers(workers);
  return *pserver->Ended();
}

}  // namespace penstock
