// Shared by tests of connections: a handler that stores incoming messages, and bodies to send.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::test {

// Stores incoming messages until they are taken.
class Inbox : public ConnectionHandler {
 public:
  void OnMessage(const std::shared_ptr<Connection>&, Message message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
    const std::lock_guard lock(mutex_);
    closed_ = why;
    changed_.notify_all();
  }
  Message Take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return !messages_.empty(); }))
      return {"nothing came", {}};
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  bool Has(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return messages_.size() >= count; });
  }
  Status Closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return closed_.has_value(); }))
      return InternalError("E-test", "not closed");
    return *closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::optional<Status> closed_;
};

inline Payload Pattern(std::size_t size, int seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 31 + i / 4096 + static_cast<unsigned>(seed));
  return Payload::Of(std::move(text));
}

}  // namespace penstock::test
