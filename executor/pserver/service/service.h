// The interface between a parameter server and a wire: a service decodes what its connections bring into
// events, and encodes the replies. A server handles events and callers, independently of the wire.
//
//   NativeService service(*pserver);                                 // an EventHandler
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(pserver->address(), service));
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/protocol/events.h"
#include "framework/base/status.h"

namespace penstock::pserver {

// The peer at the other end of a connection. Thread-safe; no call blocks, and after the end of the connection
// no call has an effect.
class Caller {
 public:
  virtual ~Caller() = default;
  // `to` is the trainer that the caller is; empty if it is none of ours.
  virtual void Reply(const protocol::Sender& to, protocol::Reply reply) = 0;
  // Whether replies carry checksums of their bodies: then they are computed once for all callers.
  virtual bool ReadsChecksums() const { return false; }
  // The caller is one of our trainers: lifts the limits for unknown peers.
  virtual void Admit() = 0;
  // Sends pending replies, then ends the connection.
  virtual void Close() = 0;
};

// Handles what a service has read. Calls for one caller come one at a time, from any thread, and must not
// wait; OnClosed is the last call.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void OnEvent(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                       protocol::Event event) = 0;
  // Several of one sender, in order, which came in one message.
  virtual void OnEvents(const std::shared_ptr<Caller>& from, const protocol::Sender& sender,
                        std::vector<protocol::Event> events) {
    for (protocol::Event& event : events) OnEvent(from, sender, std::move(event));
  }
  // An invalid message.
  virtual void OnUnreadable(const std::shared_ptr<Caller>& from, const Status& why) = 0;
  virtual void OnClosed(const std::shared_ptr<Caller>& from, const Status& why) = 0;
  // Memory ran out before a message was read.
  virtual void OnNoMemory() = 0;
};

// A connection that this server makes to another server. Thread-safe; no call blocks, and after the end of
// the connection no call has an effect.
class Callee {
 public:
  virtual ~Callee() = default;
  virtual void Send(const protocol::Sender& from, protocol::Event event) = 0;
  // Sends pending events, then ends the connection.
  virtual void Close() = 0;
  // As Connection::refused.
  virtual bool refused() const { return false; }
};

// Handles the replies. Calls for one callee come one at a time, from any thread but never inside a call of
// Dial or Callee, and must not wait; OnCalleeClosed is the last call.
class ReplyHandler {
 public:
  virtual ~ReplyHandler() = default;
  virtual void OnReply(const std::shared_ptr<Callee>& from, protocol::Reply reply) = 0;
  virtual void OnUnreadableReply(const std::shared_ptr<Callee>& from, const Status& why) = 0;
  virtual void OnCalleeClosed(const std::shared_ptr<Callee>& from, const Status& why) = 0;
};

class Dialer {
 public:
  virtual ~Dialer() = default;
  // Returns at once; keeps trying until the server answers or the callee is closed. The handler must live
  // until OnCalleeClosed.
  virtual std::shared_ptr<Callee> Dial(const std::string& address, ReplyHandler& handler) = 0;
  // Ends open connections, and returns when no call of a handler is running or will come.
  virtual void EndAll() = 0;
};

}  // namespace penstock::pserver
