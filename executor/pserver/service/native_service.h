// A parameter server on the native wire: decodes messages (protocol/native_codec.h) into events of a handler,
// and encodes its replies.
//
//   NativeService service(*pserver);                                 // the pserver outlives it
//   PENSTOCK_ASSIGN_OR_RETURN(auto listener, transport.Listen(pserver->address(), service));
//
// Thread-safe. Messages are decoded, including the CRC of a large one, before the handler is called, without
// its locks. Caller::Reply encodes a reply and computes its CRC. Small replies to a batch
// (protocol/batch.h), and those to others that follow from it, travel together too.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "executor/pserver/service/service.h"
#include "framework/runtime/transport.h"

namespace penstock::pserver {

class NativeService : public ConnectionHandler {
 public:
  explicit NativeService(EventHandler& handler) : handler_(handler) {}

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override;

 private:
  void Read(const std::shared_ptr<Connection>& from, const Message& message);
  void ReadBatch(const std::shared_ptr<Connection>& from, const std::shared_ptr<Caller>& caller,
                 const Message& message);
  std::shared_ptr<Caller> CallerOf(const std::shared_ptr<Connection>& connection);

  EventHandler& handler_;
  std::mutex mutex_;
  std::map<const Connection*, std::shared_ptr<Caller>> callers_;  // peers that have sent something
};

}  // namespace penstock::pserver
