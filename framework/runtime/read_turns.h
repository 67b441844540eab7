// The order in which threads that run the same program at once take batches from its readers: that of the
// threads' numbers, so that which thread gets which batch does not depend on timing.
//
//   ReadTurns turns(4);                                // for one run of each thread
//   ... thread r:  const ReadTurns::Member here(turns, r);
//                  queue->Pop();                       // after threads 0 to r-1 have popped, or have ended
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace penstock {

class ReadTurns {
 public:
  explicit ReadTurns(int threads) : ended_(static_cast<std::size_t>(threads), false) {}

  // Makes the calling thread thread number `number` while in scope. Its end ends all its turns.
  class Member {
   public:
    Member(ReadTurns& turns, int number);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
  };

  // Ends the waits for turns, now and later. A thread that waits for a batch itself notices when its queue
  // changes. From any thread.
  void Abort();

  // Waits until the turn of the calling thread at this queue has come, and ends it at the end of the scope.
  // Without effect on a thread that is no member.
  class Turn {
   public:
    explicit Turn(std::int64_t queue);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool aborted() const;

   private:
    const std::int64_t queue_;
  };

 private:
  std::vector<bool>& TakenFrom(std::int64_t queue);

  std::atomic<bool> aborted_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ended_;                          // by thread
  std::map<std::int64_t, std::vector<bool>> taken_;  // by queue and thread
};

}  // namespace penstock
