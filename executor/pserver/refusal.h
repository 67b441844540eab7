// A server that cannot serve its program stays for a while to tell the trainers why, which would otherwise
// wait for it to start. It takes the server's place behind a service. Thread-safe.
//
//   Refusal refusal(why, 2, "my job", clock);
//   NativeService service(refusal);
//   ... transport.Listen(address, service), while refusal.HasListeners()
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "executor/pserver/service/service.h"
#include "framework/runtime/clock.h"

namespace penstock::pserver {

class Refusal : public EventHandler {
 public:
  // Expects `trainers` trainers; those of other jobs are told too, and not counted.
  Refusal(Status why, int trainers, const std::string& job, Clock& clock);

  void OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
               protocol::Event event) override;
  void OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnClosed(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnNoMemory() override {}
  // Whether a trainer is being told, or has not come yet. False 9 s after the start in any case.
  bool HasListeners() const;

 private:
  const Status why_;
  const std::size_t trainers_;
  const std::uint64_t job_hash_;
  Clock& clock_;
  const Nanoseconds started_;

  mutable std::mutex mutex_;
  std::set<std::uint32_t> told_;
  std::set<const Caller*> open_;  // callers that were told and are still connected
};

}  // namespace penstock::pserver
