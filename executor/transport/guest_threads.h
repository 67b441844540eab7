// The threads of a server. Each runs one connection or stream until it ends.
//
//   if (!threads.Start([link] { link->Run(); }, [link] { link->Abort(); })) ... refuse it
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <thread>

namespace penstock::transport {

class GuestThreads {
 public:
  GuestThreads() = default;
  GuestThreads(const GuestThreads&) = delete;
  GuestThreads& operator=(const GuestThreads&) = delete;
  // Aborts all, and waits for them to end.
  ~GuestThreads();

  // `abort` must make `carry` return soon in any state. Returns false if the system provides no thread. Call
  // from one thread at a time.
  bool Start(std::function<void()> carry, std::function<void()> abort);

 private:
  struct Guest {
    std::function<void()> abort;
    std::atomic<bool> over = false;
    std::thread thread;
  };
  std::list<Guest> guests_;
};

}  // namespace penstock::transport
