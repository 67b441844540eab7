// The end of something that was started: wait for it, ask for it, or leave a callback.
//
//   const Promise promise;                          // who does the work
//   Completion completion = promise.completion();   // who wants it done
//   ... on a thread:  promise.Finish(OkStatus());
//   PENSTOCK_RETURN_IF_ERROR(completion.Wait());
//
// Copies stand for the same end. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock {

class [[nodiscard]] Completion {
 public:
  Completion() = default;  // done, ok
  // Done already.
  static Completion Of(Status status);

  bool done() const;
  // Blocks until done. Later calls return the same at once.
  Status Wait() const;
  // Blocks for at most `limit`. nullopt: not done yet.
  std::optional<Status> WaitFor(Nanoseconds limit) const;
  // Calls `call` once with the result: on the thread that finishes, or here at once if it is done. It must
  // not wait for other work of that thread. Callbacks run in the order in which they were given.
  void Then(std::function<void(const Status&)> call) const;

 private:
  friend class Promise;
  struct State;
  explicit Completion(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // null: done, ok
};

class Promise {
 public:
  Promise();

  Completion completion() const { return Completion(state_); }
  // Once; wakes all waits and runs the callbacks.
  void Finish(Status status) const;

 private:
  std::shared_ptr<Completion::State> state_;
};

}  // namespace penstock
