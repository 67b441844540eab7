// Makes threads that run the same program concurrently take batches from each reader in the order of the
// threads' numbers, so that timing does not decide which thread gets which batch.
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

  // Makes the calling thread the member with this number while in scope. When it ends, later threads no
  // longer wait for this one.
  class Member {
   public:
    Member(ReadTurns& turns, int number);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
  };

  // Ends all waits for turns, current and later ones. A thread that has its turn and waits for a batch
  // notices the abort only when its queue changes. From any thread.
  void Abort();

  // The calling thread's turn at this queue: the constructor waits for it, the destructor ends it if the
  // thread takes a batch. No effect on a thread that is not a member.
  class Turn {
   public:
    Turn(std::int64_t queue, bool takes);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool aborted() const;

   private:
    const std::int64_t queue_;
    const bool takes_;
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
