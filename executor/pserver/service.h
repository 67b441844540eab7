// What stands between a parameter server and a wire: a service decodes what its connections bring, makes
// events of it, and writes the replies. A server knows events and callers, and no wire.
//
//   NativeService service(*pserver);                                 // an EventHandler
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(pserver->address(), service));
#pragma once

#include <memory>

#include "executor/protocol/events.h"
#include "framework/base/status.h"

namespace penstock::pserver {

// Whoever is at the other end of a connection. Thread-safe; nothing waits, and after the end of the
// connection nothing has an effect.
class Caller {
 public:
  virtual ~Caller() = default;
  // `to` is the trainer that the caller is, empty if it is none of ours.
  virtual void Reply(const protocol::Sender& to, protocol::Reply reply) = 0;
  // Whether what it is sent is summed over on its way, so that sums made early are of use.
  virtual bool ReadsSums() const { return false; }
  // It is a trainer of ours: bounds that there are for strangers end.
  virtual void Admit() = 0;
  // Sends what is on its way, then ends the connection.
  virtual void Close() = 0;
};

// Takes what a service has read. Calls for one caller come one at a time, from any thread, and must not wait;
// OnClosed is the last one.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                       protocol::Event event) = 0;
  // A message that is none.
  virtual void OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) = 0;
  virtual void OnClosed(const std::shared_ptr<Caller>& from, const Status& why) = 0;
  // Memory ran out before a message was read.
  virtual void OnNoMemory() = 0;
};

}  // namespace penstock::pserver
