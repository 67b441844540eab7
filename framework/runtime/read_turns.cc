#include "framework/runtime/read_turns.h"

namespace penstock {
namespace {

thread_local ReadTurns* turns_of_thread = nullptr;
thread_local std::size_t number_of_thread = 0;

}  // namespace

ReadTurns::Member::Member(ReadTurns& turns, int number) {
  turns_of_thread = &turns;
  number_of_thread = static_cast<std::size_t>(number);
}

ReadTurns::Member::~Member() {
  ReadTurns& turns = *turns_of_thread;
  turns_of_thread = nullptr;
  const std::lock_guard lock(turns.mutex_);
  turns.ended_[number_of_thread] = true;
  turns.changed_.notify_all();
}

ReadTurns::Turn::Turn(std::int64_t queue, bool takes) : queue_(queue), takes_(takes) {
  if (turns_of_thread == nullptr) return;
  ReadTurns& turns = *turns_of_thread;
  std::unique_lock lock(turns.mutex_);
  turns.changed_.wait(lock, [&] {
    if (turns.aborted_) return true;
    const std::vector<bool>& taken = turns.TakenFrom(queue_);
    for (std::size_t before = 0; before < number_of_thread; ++before) {
      if (!taken[before] && !turns.ended_[before]) return false;
    }
    return true;
  });
}

ReadTurns::Turn::~Turn() {
  if (turns_of_thread == nullptr || !takes_) return;
  ReadTurns& turns = *turns_of_thread;
  const std::lock_guard lock(turns.mutex_);
  turns.TakenFrom(queue_)[number_of_thread] = true;
  turns.changed_.notify_all();
}

bool ReadTurns::Turn::aborted() const { return turns_of_thread != nullptr && turns_of_thread->aborted_; }

void ReadTurns::Abort() {
  aborted_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

std::vector<bool>& ReadTurns::TakenFrom(std::int64_t queue) {
  return taken_.try_emplace(queue, ended_.size(), false).first->second;
}

}  // namespace penstock
