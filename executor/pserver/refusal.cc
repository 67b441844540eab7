#include "executor/pserver/refusal.h"

#include "framework/base/hash.h"

namespace penstock::pserver {
namespace {

// No process outlives its job by more than 10 s.
constexpr Nanoseconds kTellTrainers = std::chrono::seconds(9);

}  // namespace

Refusal::Refusal(Status why, int trainers, const std::string& job, Clock& clock)
    : why_(std::move(why)),
      trainers_(static_cast<std::size_t>(trainers)),
      job_hash_(Fnv1a64(job)),
      clock_(clock),
      started_(clock.Now()) {}

void Refusal::OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                      protocol::Event event) {
  const bool is_trainer = !std::holds_alternative<protocol::ServerHello>(event);
  {
    const std::lock_guard lock(mutex_);
    if (is_trainer && sender.job == job_hash_) told_.insert(sender.trainer);
    open_.insert(from.get());
  }
  OnUnreadable(from, why_);
}

void Refusal::OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) {
  from->Reply({}, protocol::Failure{why});
  from->Close();
}

void Refusal::OnClosed(const std::shared_ptr<Caller>& from, const Status&) {
  const std::lock_guard lock(mutex_);
  open_.erase(from.get());
}

bool Refusal::HasListeners() const {
  const std::lock_guard lock(mutex_);
  return (!open_.empty() || told_.size() < trainers_) && clock_.Now() - started_ < kTellTrainers;
}

}  // namespace penstock::pserver
