#include "executor/client/client.h"

#include <algorithm>

#include "executor/observe/wait.h"

namespace penstock::client {
namespace {

constexpr Nanoseconds kAskBefore = std::chrono::seconds(1);  // so that the report has the answer
constexpr Nanoseconds kReportClosingEvery = std::chrono::seconds(10);
constexpr Nanoseconds kWatchEvery = std::chrono::milliseconds(200);
// After the loss of a connection, so that the end of a server's process is known as soon.
constexpr Nanoseconds kWatchLostEvery = std::chrono::milliseconds(10),
                      kWatchLostFor = std::chrono::seconds(1);
constexpr Nanoseconds kCloseGrace = std::chrono::milliseconds(500);
constexpr Nanoseconds kLeaveGrace = std::chrono::seconds(2);  // for the answers, usually there at once

}  // namespace

TrainerClient::TrainerClient(std::unique_ptr<Transport> transport, ClientOptions options)
    : SessionClient(session_),
      transport_(std::move(transport)),
      options_([&] {
        options.session.report = options.report;
        options.session.on_change = [this] {
          const std::lock_guard lock(mutex_);
          ++changes_;
          changed_.notify_all();
        };
        options.session.on_lost = [this] {
          const std::lock_guard lock(mutex_);
          watch_closely_until_ = options_.session.clock->Now() + kWatchLostFor;
          stopped_.notify_all();
        };
        return std::move(options);
      }()),
      session_(*transport_, options_.session),
      watch_([this] { Watch(); }) {}

TrainerClient::~TrainerClient() { Disconnect(); }

Status TrainerClient::Leave() {
  Status status = SessionClient::Leave();
  if (status.ok())
    WaitFor([this] { return session_.CompleteDone() || !session_.status().ok(); }, kLeaveGrace);
  Disconnect();
  return status;
}

void TrainerClient::Disconnect() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stopped_.notify_all();
  }
  if (!watch_.joinable()) return;
  watch_.join();  // after this, no link reconnects
  session_.Close();
  const auto closed = [this] { return session_.AllClosed(); };
  if (WaitFor(closed, kCloseGrace)) return;
  session_.Abort();
  while (!WaitFor(closed, kReportClosingEvery)) {
    options_.report("waiting for connections to end");
  }
}

Status TrainerClient::Attach(const Program& program) {
  Status status = SessionClient::Attach(program);
  if (session_.trainer() >= 0 && options_.on_trainer) options_.on_trainer(session_.trainer());
  return status;
}

void TrainerClient::Watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool closely = options_.session.clock->Now() < watch_closely_until_;
    stopped_.wait_for(lock, closely ? kWatchLostEvery : kWatchEvery);
    if (stop_) break;
    lock.unlock();
    session_.Tick();
    lock.lock();
  }
}

bool TrainerClient::WaitFor(const std::function<bool()>& answer, Nanoseconds limit) {
  const Nanoseconds end = options_.session.clock->Now() + limit;
  while (true) {
    std::uint64_t seen;
    {
      const std::lock_guard lock(mutex_);
      seen = changes_;
    }
    if (answer()) return true;  // not under the lock: the session takes its own
    const Nanoseconds left = end - options_.session.clock->Now();
    if (left <= Nanoseconds(0)) return false;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, left, [&] { return changes_ != seen; });
  }
}

Status TrainerClient::Wait(const std::function<bool()>& answer) {
  const auto settled = [&] { return !session_.status().ok() || answer(); };
  if (settled()) return session_.status();
  observe::Wait wait(options_.session.observer, *options_.session.clock, session_.step(),
                     options_.report_after);
  const Nanoseconds ask_before = std::min(kAskBefore, options_.report_after / 2);
  while (!WaitFor(settled, wait.ToNextReport() - ask_before)) {
    session_.Ask();
    if (WaitFor(settled, wait.ToNextReport())) break;
    options_.report(StrCat("waiting ", WholeSeconds(wait.Lasted()), " s in step ", session_.step(), ": ",
                           session_.ReportWait()));
    wait.Reported();
  }
  return session_.status();
}

}  // namespace penstock::client
