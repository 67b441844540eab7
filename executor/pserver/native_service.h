// The native wire of a parameter server: messages of protocol/native_codec.h become events of a handler, its
// replies messages.
//
//   NativeService service(*pserver);                                 // which outlives it
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(pserver->address(), service));
//
// Thread-safe. Decoding, with the CRC of a large message, is done before the handler is called and takes none
// of its locks. A reply is encoded, and its CRC computed, in Caller::Reply.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "executor/pserver/service.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

class NativeService : public ConnectionHandler {
 public:
  explicit NativeService(EventHandler& handler) : handler_(handler) {}

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

 private:
  void Read(const std::shared_ptr<Connection>& from, const Message& message);
  std::shared_ptr<Caller> CallerOf(const std::shared_ptr<Connection>& connection);

  EventHandler& handler_;
  std::mutex mutex_;
  std::map<const Connection*, std::shared_ptr<Caller>> callers_;  // of those that have sent something
};

}  // namespace penstock::pserver
