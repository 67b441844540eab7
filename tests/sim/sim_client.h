// A trainer's blocking client on the simulated network. The trainer runs in a thread of its own, but only
// while the simulation waits for it: it gets its turn when what it waits for is there, and gives it back
// where a process would block. So there is one order of everything for each seed.
//
//   SimClient client(net.transport(), SimClient::OptionsOf(net.clock()), turn);
//   std::thread trainer([&] { turn.Take(); ... client.Pull(handle, w) ... turn.Return(); });
//   while (...) client.MayGoOn() ? turn.Give() : net.RunUntil(...);
#pragma once

#include <functional>
#include <semaphore>

#include "executor/client/session_client.h"
#include "framework/runtime/clock.h"

namespace penstock::test {

// The one thread that may run now: the simulation's or a trainer's.
class Turn {
 public:
  // The simulation's side: lets the trainer run until it waits or has ended.
  void Give() {
    go_.release();
    back_.acquire();
  }
  // The trainer's side.
  void Take() { go_.acquire(); }
  void Return() { back_.release(); }

 private:
  std::binary_semaphore go_{0}, back_{0};
};

class SimClient : public client::SessionClient {
 public:
  SimClient(Transport& transport, client::SessionOptions options, Turn& turn)
      : client::SessionClient(session_), session_(transport, std::move(options)), turn_(turn) {}

  // Of the job "sim".
  static client::SessionOptions OptionsOf(Clock& clock) {
    client::SessionOptions options;
    options.job = "sim";
    options.resend_after = std::chrono::milliseconds(100);
    options.clock = &clock;
    return options;
  }
  client::Session& session() { return session_; }
  bool MayGoOn() const { return answer_ == nullptr || (*answer_)() || !session_.status().ok(); }

 private:
  Status Wait(const std::function<bool()>& answer) override {
    answer_ = &answer;
    while (!MayGoOn()) {
      turn_.Return();
      turn_.Take();
    }
    answer_ = nullptr;
    return session_.status();
  }

  client::Session session_;
  Turn& turn_;
  const std::function<bool()>* answer_ = nullptr;  // what it waits for
};

}  // namespace penstock::test
