#include "executor/pserver/refusal.h"

#include "executor/protocol/bodies.h"
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

void Refusal::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  const Result<protocol::Envelope> envelope = protocol::Open(message);
  const Status& why = envelope.ok() ? why_ : envelope.status();
  if (envelope.ok()) {
    const std::lock_guard lock(mutex_);
    if (envelope->job == job_hash_) told_.insert(envelope->trainer);
    open_.insert(from.get());
  }
  from->Send(
      protocol::Seal({.kind = protocol::MessageKind::kError}, Payload::Of(protocol::WriteStatus(why))));
  from->Close();
}

void Refusal::OnClosed(const std::shared_ptr<Connection>& from, const Status&) {
  const std::lock_guard lock(mutex_);
  open_.erase(from.get());
}

bool Refusal::HasListeners() const {
  const std::lock_guard lock(mutex_);
  return (!open_.empty() || told_.size() < trainers_) && clock_.Now() - started_ < kTellTrainers;
}

}  // namespace penstock::pserver
