#include "executor/pserver/service/native_service.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "executor/protocol/batch.h"
#include "executor/protocol/message_text.h"
#include "executor/protocol/native_codec.h"
#include "framework/base/log.h"
#include "framework/base/strings.h"

namespace penstock::pserver {
namespace {

// The small replies that this thread makes while it handles a batch of events: those to a caller travel
// together, at the latest when the batch is handled.
class ReplyBatches {
 public:
  ReplyBatches() : before_(std::exchange(of_thread_, this)) {}
  ~ReplyBatches() {
    of_thread_ = before_;
    for (OfCaller& each : callers_) Send(each);
  }
  ReplyBatches(const ReplyBatches&) = delete;
  ReplyBatches& operator=(const ReplyBatches&) = delete;

  static ReplyBatches* OfThread() { return of_thread_; }

  // Returns false if the reply must be sent by itself.
  bool Add(const std::shared_ptr<Connection>& connection, const protocol::Sender& to,
           const protocol::Reply& reply) {
    const auto known = std::ranges::find(callers_, connection, &OfCaller::connection);
    OfCaller& of = known != callers_.end() ? *known : callers_.emplace_back(connection);
    const bool takes = protocol::BatchWriter::Takes(reply);
    if (!takes || of.to != to) Send(of);
    if (!takes) return false;
    of.to = to;
    of.batch.Add(reply);
    if (of.batch.full()) Send(of);
    return true;
  }
  void Flush(const std::shared_ptr<Connection>& connection) {
    const auto known = std::ranges::find(callers_, connection, &OfCaller::connection);
    if (known != callers_.end()) Send(*known);
  }

 private:
  struct OfCaller {
    explicit OfCaller(std::shared_ptr<Connection> its) : connection(std::move(its)) {}
    std::shared_ptr<Connection> connection;
    protocol::Sender to;
    protocol::BatchWriter batch;
  };
  static void Send(OfCaller& of) {
    if (of.batch.empty()) return;
    of.connection->Send(of.batch.Take(of.to, protocol::ChecksumOver(*of.connection)));
  }

  static inline thread_local ReplyBatches* of_thread_ = nullptr;
  ReplyBatches* const before_;
  std::vector<OfCaller> callers_;  // a few
};

void ShowEvent(const protocol::Sender& from, const protocol::Event& event) {
  if (protocol::ShowsMessage(event))
    Log(LogSeverity::kInfo, StrCat("from trainer ", from.trainer, ": ", protocol::TextOf(event)));
}

class NativeCaller : public Caller {
 public:
  explicit NativeCaller(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  void Reply(const protocol::Sender& to, protocol::Reply reply) override {
    if (protocol::ShowsMessage(reply))
      Log(LogSeverity::kInfo, StrCat("to trainer ", to.trainer, ": ", protocol::TextOf(reply)));
    if (ReplyBatches* batches = ReplyBatches::OfThread(); batches != nullptr) {
      if (batches->Add(connection_, to, reply)) return;
    }
    connection_->Send(protocol::Encode(to, reply, protocol::ChecksumOver(*connection_)));
  }
  bool ReadsChecksums() const override { return !connection_->local(); }
  void Admit() override { connection_->Admit(); }
  void Close() override {
    if (ReplyBatches* batches = ReplyBatches::OfThread(); batches != nullptr) batches->Flush(connection_);
    connection_->Close();
  }

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
  const std::shared_ptr<Caller> caller = CallerOf(from);
  if (protocol::IsBatch(message)) return ReadBatch(from, caller, message);
  Result<protocol::Decoded<protocol::Event>> event =
      protocol::DecodeEvent(message, protocol::ChecksumOver(*from));
  if (event.ok()) {
    ShowEvent(event->sender, event->message);
    handler_.OnEvent(caller, event->sender, std::move(event->message));
  } else {
    handler_.OnUnreadable(caller, event.status());
  }
}

void NativeService::ReadBatch(const std::shared_ptr<Connection>& from, const std::shared_ptr<Caller>& caller,
                              const Message& message) {
  auto events = protocol::DecodeEvents(message, protocol::ChecksumOver(*from));
  if (!events.ok()) return handler_.OnUnreadable(caller, events.status());
  for (const protocol::Event& event : events->messages) ShowEvent(events->sender, event);
  const ReplyBatches batches;
  handler_.OnEvents(caller, events->sender, std::move(events->messages));
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
