// A server that cannot serve its program stays for a while to tell the trainers why: they would wait for one
// that is still to start.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "executor/protocol/envelope.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

class Refusal : public ConnectionHandler {
 public:
  // `trainers` come, if they do; those of another job are told too, and not counted.
  Refusal(Status why, int trainers, const std::string& job, Clock& clock);

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;
  // Whether somebody is being told, or a trainer has yet to come. False 10 s after the start at the latest.
  bool HasListeners() const;

 private:
  const Status why_;
  const std::size_t trainers_;
  const std::uint64_t job_hash_;
  Clock& clock_;
  const Nanoseconds started_;

  mutable std::mutex mutex_;
  std::set<std::uint32_t> told_;
  std::set<const Connection*> open_;  // of those who were told
};

}  // namespace penstock::pserver
