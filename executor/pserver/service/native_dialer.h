// Connections of a parameter server to other servers on the native wire: encodes events
// (protocol/native_codec.h), passes decoded replies to a handler. The other end of each is a NativeService.
//
//   NativeDialer dialer(transport);                                  // the transport outlives it
//   const std::shared_ptr<Callee> other = dialer.Dial("10.0.0.2:6174", handler);
//   other->Send(sender, protocol::Sums{.step = 7, .bytes = sums});
//   ...
//   dialer.EndAll();                                                 // before it is destroyed
//
// Thread-safe. Messages are decoded before the handler is called, without its locks.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "executor/pserver/service/service.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

class NativeDialer : public Dialer, public ConnectionHandler {
 public:
  explicit NativeDialer(Transport& transport) : transport_(transport) {}

  std::shared_ptr<Callee> Dial(const std::string& address, ReplyHandler& handler) override;
  void EndAll() override;
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

 private:
  struct Call {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<Callee> callee;
    ReplyHandler* handler = nullptr;
  };
  Call CallOf(const Connection* connection);

  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<const Connection*, Call> calls_;  // open connections
};

}  // namespace penstock::pserver
