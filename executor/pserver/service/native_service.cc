#include "executor/pserver/service/native_service.h"

#include <new>
#include <utility>

#include "executor/protocol/native_codec.h"

namespace penstock::pserver {
namespace {

class NativeCaller : public Caller {
 public:
  explicit NativeCaller(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  void Reply(const protocol::Sender& to, protocol::Reply reply) override {
    connection_->Send(protocol::Encode(to, reply, protocol::ChecksumOver(*connection_)));
  }
  bool ReadsChecksums() const override { return !connection_->local(); }
  void Admit() override { connection_->Admit(); }
  void Close() override { connection_->Close(); }

 private:
  const std::shared_ptr<Connection> connection_;
};

}  // namespace

std::shared_ptr<Caller> NativeService::CallerOf(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Caller>& caller = callers_[connection.get()];
  if (caller == nullptr) caller = std::make_shared<NativeCaller>(connection);
  return caller;
}

void NativeService::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  try {
    Read(from, message);
  } catch (const std::bad_alloc&) {
    handler_.OnNoMemory();
  }
}

void NativeService::Read(const std::shared_ptr<Connection>& from, const Message& message) {
  Result<protocol::Decoded<protocol::Event>> event =
      protocol::DecodeEvent(message, protocol::ChecksumOver(*from));
  const std::shared_ptr<Caller> caller = CallerOf(from);
  if (event.ok()) {
    handler_.OnEvent(caller, event->sender, std::move(event->message));
  } else {
    handler_.OnUnreadable(caller, event.status());
  }
}

void NativeService::OnClosed(const std::shared_ptr<Connection>& from, const Status& why) {
  std::shared_ptr<Caller> caller;
  {
    const std::lock_guard lock(mutex_);
    const auto known = callers_.find(from.get());
    if (known == callers_.end()) return;
    caller = std::move(known->second);
    callers_.erase(known);
  }
  handler_.OnClosed(caller, why);
}

}  // namespace penstock::pserver
