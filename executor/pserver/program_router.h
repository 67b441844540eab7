// Serves the programs of several transpiles at one address, such as a GAN's two: each has a Pserver of its
// own, with its own steps, versions and barriers. A peer belongs to the program of its first hello.
//
//   ProgramRouter router({discriminator.get(), generator.get()});
//   NativeService service(router);
//
// Thread-safe. The pservers must outlive it.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "executor/pserver/pserver.h"
#include "executor/pserver/service/service.h"

namespace penstock::pserver {

class ProgramRouter : public EventHandler {
 public:
  explicit ProgramRouter(std::vector<Pserver*> pservers) : pservers_(std::move(pservers)) {}

  void OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
               protocol::Event event) override;
  void OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnClosed(const std::shared_ptr<Caller>& from, const Status& why) override;
  void OnNoMemory() override;

 private:
  Pserver& Of(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
              const protocol::Event& event);
  // The pserver that works for the same job facts; without facts, one that would admit the peer; otherwise
  // the first, which refuses it.
  Pserver& Choose(const protocol::Sender& sender, const protocol::Event& event) const;

  const std::vector<Pserver*> pservers_;
  std::mutex mutex_;
  std::map<const Caller*, Pserver*> chosen_;  // of connected callers
};

}  // namespace penstock::pserver
