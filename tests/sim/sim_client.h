// A trainer's blocking client on the simulated network. The trainer runs on its own thread, but only while
// the simulation waits for it: it gets its turn when the event for which it waits has happened, and returns
// it where a process would block. Each seed therefore has one order of all events.
//
//   SimClient client(net.transport(), SimClient::OptionsOf(net), turn);
//   std::thread trainer([&] { turn.Take(); ... client.Pull(handle, w) ... turn.Return(); });
//   while (...) client.MayGoOn() ? turn.Give() : net.RunUntil(...);
#pragma once

#include <functional>
#include <semaphore>

#include "executor/client/session_client.h"
#include "tests/sim/network.h"

namespace penstock::test {

// Passes control between the simulation's thread and a trainer's; only one of them runs.
class Turn {
 public:
  // On the simulation's thread: lets the trainer run until it waits or ends.
  void Give() {
    go_.release();
    back_.acquire();
  }
  // On the trainer's thread.
  void Take() { go_.acquire(); }
  void Return() { back_.release(); }

 private:
  std::binary_semaphore go_{0}, back_{0};
};

class SimClient : public client::SessionClient {
 public:
  SimClient(Transport& transport, client::SessionOptions options, Turn& turn)
      : client::SessionClient(session_), session_(transport, std::move(options)), turn_(turn) {}

  // The options for the job "sim".
  static client::SessionOptions OptionsOf(Network& net) {
    client::SessionOptions options;
    options.job = "sim";
    options.resend_after = std::chrono::milliseconds(100);
    options.clock = &net.clock();
    options.reconnect_deadline = net.reconnect_deadline();
    return options;
  }
  client::Session& session() { return session_; }
  // Tests read the scopes of trainers that have completed.
  bool LeavesPulls() const override { return true; }
  bool MayGoOn() const { return answer_ == nullptr || (*answer_)() || !session_.status().ok(); }

  Status Wait(const std::function<bool()>& answer) override {
    answer_ = &answer;
    while (!MayGoOn()) {
      turn_.Return();
      turn_.Take();
    }
    answer_ = nullptr;
    return session_.status();
  }

 private:
  client::Session session_;
  Turn& turn_;
  const std::function<bool()>* answer_ = nullptr;  // the condition for which it waits
};

}  // namespace penstock::test
