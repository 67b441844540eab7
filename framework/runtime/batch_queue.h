// Batches on their way from a user's reader, on a thread of its own, to the `read` ops of programs. A
// variable of the scope holds the queue's number; the op finds the queue by it.
//
//   const std::shared_ptr<BatchQueue> queue = BatchQueue::Make(2);
//   while (queue->Push({images, labels})) ...       // the reader's thread: false once nobody wants more
//   queue->End();
//   PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Batch> batch, queue->Pop());    // nullopt: no more
//
// Thread-safe. A queue belongs to whoever holds the pointer; its number means nothing after that.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock {

// One tensor for each variable that the reader fills.
using Batch = std::vector<Tensor>;

class BatchQueue {
 public:
  // `capacity` batches wait at most; at least one.
  static std::shared_ptr<BatchQueue> Make(std::size_t capacity);
  // The queue of that number; null if there is none, or no more.
  static std::shared_ptr<BatchQueue> Find(std::int64_t number);
  // Ends the waits in Pop of all queues with kCancelled; later ones wait as usual.
  static void CancelWaits();

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  std::int64_t number() const { return number_; }
  std::size_t size() const;

  // Reader's side. Push blocks while the queue is full, and is false once it is closed.
  bool Push(Batch batch);
  void End();               // what is in it is read, then it is at its end
  void Fail(Status error);  // what is in it is read, then each Pop gives the error

  // Program's side. Blocks until there is a batch. nullopt: at its end, now and in later calls.
  // kFailedPrecondition E-read-not-started; kCancelled; what Fail gave.
  Result<std::optional<Batch>> Pop();
  // Drops what is in it; Push is false and Pop refused until Open.
  void Close();
  void Open();

 private:
  enum class State { kClosed, kOpen, kEnded };
  BatchQueue(std::size_t capacity, std::int64_t number) : capacity_(capacity), number_(number) {}

  const std::size_t capacity_;
  const std::int64_t number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  State state_ = State::kClosed;
  Status error_;
  int waiting_ = 0;    // in Pop
  int cancelled_ = 0;  // of those, how many are to leave
};

}  // namespace penstock
