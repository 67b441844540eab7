// A queue of batches from a user's reader, which runs in a thread of its own, to the `read` ops of programs.
// The op finds the queue by its number, which a variable of the scope holds.
//
//   const std::shared_ptr<BatchQueue> queue = BatchQueue::Make(2);
//   while (queue->Push({images, labels})) ...       // the reader's thread; false once the queue is closed
//   queue->End();
//   PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Batch> batch, queue->Pop());    // nullopt: at its end
//
// Thread-safe. The queue lives until the last pointer to it is released; then its number is invalid.
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
  // The queue holds at most `capacity` batches; at least one.
  static std::shared_ptr<BatchQueue> Make(std::size_t capacity);
  // Returns the queue with this number; null if it does not exist or was released.
  static std::shared_ptr<BatchQueue> Find(std::int64_t number);
  // Makes the calls that now wait in Pop or Peek, on all queues, return kCancelled; later calls wait as
  // usual.
  static void CancelWaits();

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  std::int64_t number() const { return number_; }
  std::size_t size() const;

  // For the reader. Push blocks while the queue is full and returns false once the queue is closed.
  bool Push(Batch batch);
  void End();               // Pop returns the batches in the queue, then nullopt
  void Fail(Status error);  // Pop returns the batches in the queue, then the error

  // For the program. Blocks until the queue has a batch. nullopt: the queue is at its end; later calls return
  // nullopt too. kFailedPrecondition E-read-not-started; kCancelled; the error given to Fail.
  Result<std::optional<Batch>> Pop();
  // The same batch, error or end as the next Pop, but leaves the batch in the queue. A thread with a turn
  // (read_turns.h) waits for its turn. If other threads pop meanwhile, its Pop returns a later batch.
  Result<std::optional<Batch>> Peek();
  // The batch of the next Pop, if it is in the queue already. Never waits, not for a turn either.
  std::optional<Batch> TryPeek() const;
  // Drops the batches in the queue. Until Open, Push returns false and Pop an error.
  void Close();
  void Open();

 private:
  enum class State { kClosed, kOpen, kEnded };
  BatchQueue(std::size_t capacity, std::int64_t number) : capacity_(capacity), number_(number) {}

  Result<std::optional<Batch>> Next(bool takes);

  const std::size_t capacity_;
  const std::int64_t number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  State state_ = State::kClosed;
  Status error_;
  int waiting_ = 0;    // calls that wait in Pop or Peek
  int cancelled_ = 0;  // how many of those calls must return
};

}  // namespace penstock
