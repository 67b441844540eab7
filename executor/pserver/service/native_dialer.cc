#include "executor/pserver/service/native_dialer.h"

#include <chrono>
#include <utility>

#include "executor/protocol/native_codec.h"

namespace penstock::pserver {
namespace {

constexpr auto kCloseGrace = std::chrono::milliseconds(500);  // for messages in transit

class NativeCallee : public Callee {
 public:
  explicit NativeCallee(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  void Send(const protocol::Sender& from, protocol::Event event) override {
    connection_->Send(protocol::Encode(from, event, protocol::ChecksumOver(*connection_)));
  }
  void Close() override { connection_->Close(); }
  bool refused() const override { return connection_->refused(); }

 private:
  const std::shared_ptr<Connection> connection_;
};

}  // namespace

// Messages that arrive before the call is registered wait for the lock.
std::shared_ptr<Callee> NativeDialer::Dial(const std::string& address, ReplyHandler& handler) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Connection> connection = transport_.Connect(address, *this);
  auto callee = std::make_shared<NativeCallee>(connection);
  const Connection* key = connection.get();
  calls_[key] = {std::move(connection), callee, &handler};
  return callee;
}

NativeDialer::Call NativeDialer::CallOf(const Connection* connection) {
  const std::lock_guard lock(mutex_);
  const auto known = calls_.find(connection);
  return known == calls_.end() ? Call() : known->second;
}

void NativeDialer::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  const Call call = CallOf(from.get());
  if (call.handler == nullptr) return;
  Result<protocol::Decoded<protocol::Reply>> reply =
      protocol::DecodeReply(message, protocol::ChecksumOver(*from));
  if (reply.ok()) {
    call.handler->OnReply(call.callee, std::move(reply->message));
  } else {
    call.handler->OnUnreadableReply(call.callee, reply.status());
  }
}

void NativeDialer::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  const Call call = CallOf(from.get());
  if (call.handler == nullptr) return;
  call.handler->OnCalleeClosed(call.callee, why);
  const std::lock_guard lock(mutex_);
  calls_.erase(from.get());
  ended_.notify_all();
}

void NativeDialer::EndAll() {
  std::unique_lock lock(mutex_);
  for (const auto& [connection, call] : calls_) call.connection->Close();
  const auto none = [&] { return calls_.empty(); };
  if (ended_.wait_for(lock, kCloseGrace, none)) return;
  for (const auto& [connection, call] : calls_) call.connection->Abort();
  ended_.wait(lock, none);
}

}  // namespace penstock::pserver
