#include "framework/runtime/completion.h"

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock {

struct Completion::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> result;
  std::vector<std::function<void(const Status&)>> calls;
};

Completion Completion::Of(Status status) {
  auto state = std::make_shared<State>();
  state->result = std::move(status);
  return Completion(std::move(state));
}

bool Completion::done() const {
  if (state_ == nullptr) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->result.has_value();
}

Status Completion::Wait() const {
  if (state_ == nullptr) return OkStatus();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->result.has_value(); });
  return *state_->result;
}

std::optional<Status> Completion::WaitFor(Nanoseconds limit) const {
  if (state_ == nullptr) return OkStatus();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, limit, [this] { return state_->result.has_value(); });
  return state_->result;
}

void Completion::Then(std::function<void(const Status&)> call) const {
  if (state_ == nullptr) return call(OkStatus());
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->result) return state_->calls.push_back(std::move(call));
  }
  call(*state_->result);
}

Promise::Promise() : state_(std::make_shared<Completion::State>()) {}

void Promise::Finish(Status status) const {
  const std::shared_ptr<Completion::State> state = state_;  // a woken thread may destroy this promise
  std::vector<std::function<void(const Status&)>> calls;
  {
    const std::lock_guard lock(state->mutex);
    PENSTOCK_CHECK(!state->result, "a promise was finished twice");
    state->result = std::move(status);
    calls.swap(state->calls);
  }
  state->changed.notify_all();
  for (const auto& call : calls) call(*state->result);
}

}  // namespace penstock
