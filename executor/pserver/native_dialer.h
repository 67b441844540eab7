// Calls of a parameter server to others on the native wire: events become messages of
// protocol/native_codec.h, what comes back replies of a handler. The other end of each is a NativeService.
//
//   NativeDialer dialer(transport);                                  // which outlives it
//   const std::shared_ptr<Callee> other = dialer.Dial("10.0.0.2:6174", handler);
//   other->Send(sender, protocol::Sums{.step = 7, .bytes = sums});
//   ...
//   dialer.EndAll();                                                 // before it is destroyed
//
// Thread-safe. Decoding is done before the handler is called and takes none of its locks.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "executor/pserver/service.h"
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
  std::map<const Connection*, Call> calls_;  // that are open
};

}  // namespace penstock::pserver
