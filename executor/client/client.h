// The trainer's RpcClient: a Session whose operations it waits for. A wait uses no CPU, is reported after 10
// s, 20 s, 40 s and so on, and ends at once when a peer is gone or the run is cancelled.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "executor/client/session_client.h"
#include "executor/observe/report_times.h"

namespace penstock::client {

struct ClientOptions {
  SessionOptions session;
  std::function<void(const std::string&)> report;  // prints a line for the user
  std::function<void(int)> on_trainer;  // gets this trainer's id once a program gives it; may be empty
  Nanoseconds report_after = observe::kReportAfter;  // first report of a wait; then at each doubling
};

class TrainerClient : public SessionClient {
 public:
  TrainerClient(std::unique_ptr<Transport> transport, ClientOptions options);
  // Closes open connections; unless Complete was called, the servers consider this trainer dead.
  ~TrainerClient() override;
  Status Attach(const Program& program) override;
  // For a KeyClient.
  Session& session() { return session_; }
  Status Wait(const std::function<bool()>& answer) override;
  // Then closes the connections: afterwards it can only be destroyed.
  Status Leave() override;

 private:
  void Disconnect();
  bool WaitFor(const std::function<bool()>& answer, Nanoseconds limit);
  void Watch();

  const std::unique_ptr<Transport> transport_;
  ClientOptions options_;
  std::mutex mutex_;                 // guards what follows; never held together with the session's
  std::condition_variable changed_;  // wakes the waiting thread
  std::condition_variable stopped_;  // wakes the watch
  std::uint64_t changes_ = 0;
  bool stop_ = false;
  Nanoseconds watch_closely_until_{0};
  Session session_;
  std::thread watch_;  // resends and reconnects; sleeps otherwise
};

}  // namespace penstock::client
