// The end of an asynchronous operation: wait for it, poll it, or register a callback.
//
//   const Promise promise;                          // for the worker
//   Completion completion = promise.completion();   // for the waiting side
//   ... on a thread:  promise.Finish(OkStatus());
//   PENSTOCK_RETURN_IF_ERROR(completion.Wait());
//
// Copies refer to the same operation. Thread-safe.
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
  // A completion that is already done.
  static Completion Of(Status status);

  bool done() const;
  // Blocks until done. Later calls return the same status at once.
  Status Wait() const;
  // Blocks for at most `limit`. nullopt: not done yet.
  std::optional<Status> WaitFor(Nanoseconds limit) const;
  // Calls `call` once with the result: on the thread that finishes, or at once if it is done. The callback
  // must not wait for other work of that thread. Callbacks run in the order of registration.
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
  // Call once; wakes all waiting threads and runs the callbacks.
  void Finish(Status status) const;

 private:
  std::shared_ptr<Completion::State> state_;
};

}  // namespace penstock
