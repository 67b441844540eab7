// A handler between the network and a server that counts the bytes of pushed bodies that the server holds:
// from arrival until the last owner is released. Trainer 0 does not count, because its gradients are never
// early.
//
//   HeldBytes held(service);
//   transport.Listen(address, held);
//   held.now()
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "executor/protocol/envelope.h"
#include "framework/runtime/transport.h"

namespace penstock::test {

class HeldBytes : public ConnectionHandler {
 public:
  explicit HeldBytes(ConnectionHandler& server) : server_(server) {}
  std::size_t now() const { return *now_; }

  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    const Result<protocol::Envelope> envelope = protocol::Open(message);
    if (envelope.ok() && envelope->kind == protocol::MessageKind::kPush && envelope->trainer > 0 &&
        message.body.size() > 0)
      message.body = Counted(message.body);
    server_.OnMessage(from, std::move(message));
  }
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override {
    server_.OnClosed(from, why);
  }

 private:
  Payload Counted(const Payload& body) const {
    auto copy = std::make_shared<std::vector<std::byte>>(body.size());
    body.CopyTo(copy->data());
    *now_ += body.size();
    const auto let_go = [now = now_, copy](const void*) { *now -= copy->size(); };
    const std::byte* const data = copy->data();
    return Payload(Bytes{std::shared_ptr<const void>(data, let_go), data, body.size()});
  }

  ConnectionHandler& server_;
  const std::shared_ptr<std::size_t> now_ = std::make_shared<std::size_t>(0);
};

}  // namespace penstock::test
