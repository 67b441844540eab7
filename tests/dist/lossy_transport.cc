#include "tests/dist/lossy_transport.h"

#include <utility>

namespace penstock::test {
namespace {

Message CopyOf(const Message& message) {
  Message copy{.head = message.head, .body = {}};
  if (message.body.size() > 0) copy.body = Payload::Of(message.body.ToText());
  return copy;
}

}  // namespace

Later::Later() : thread_([this] { Run(); }) {}

Later::~Later() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Later::Call(std::chrono::microseconds delay, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  due_.emplace(std::chrono::steady_clock::now() + delay, std::move(function));
  changed_.notify_all();
}

void Later::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (due_.empty()) {
      changed_.wait(lock);
    } else if (const Time next = due_.begin()->first; next > std::chrono::steady_clock::now()) {
      changed_.wait_until(lock, next);
    } else {
      const auto first = due_.extract(due_.begin());
      lock.unlock();
      first.mapped()();
      lock.lock();
    }
  }
}

class LossyTransport::End : public Connection, public std::enable_shared_from_this<End> {
 public:
  explicit End(LossyTransport& transport) : transport_(transport) {}

  void SetInner(std::shared_ptr<Connection> inner) {
    const std::lock_guard lock(mutex_);
    inner_ = std::move(inner);
  }
  void Send(Message message) override {
    if (transport_.Uniform() < transport_.faults_.lost) {
      ++transport_.lost_;
      return;
    }
    if (transport_.Uniform() < transport_.faults_.twice) {
      ++transport_.repeated_;
      SendLater(CopyOf(message));
    }
    SendLater(std::move(message));
  }
  void Close() override {  // after all messages in transit
    transport_.later_.Call(transport_.faults_.delay_max, [inner = Inner()] { inner->Close(); });
  }
  void Abort() override { Inner()->Abort(); }
  void Admit() override { Inner()->Admit(); }

 private:
  void SendLater(Message message) {
    transport_.later_.Call(transport_.Delay(),
                           [inner = Inner(), message = std::move(message)] { inner->Send(message); });
  }
  std::shared_ptr<Connection> Inner() {
    const std::lock_guard lock(mutex_);
    return inner_;
  }

  LossyTransport& transport_;
  std::mutex mutex_;
  std::shared_ptr<Connection> inner_;
};

class LossyTransport::AtClient : public ConnectionHandler {
 public:
  AtClient(ConnectionHandler& handler, std::shared_ptr<End> end) : handler_(handler), end_(std::move(end)) {}
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    end_->SetInner(from);
    handler_.OnMessage(end_, std::move(message));
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
    handler_.OnClosed(end_, why);
  }

 private:
  ConnectionHandler& handler_;
  const std::shared_ptr<End> end_;
};

class LossyTransport::AtServer : public ConnectionHandler {
 public:
  AtServer(LossyTransport& transport, ConnectionHandler& handler)
      : transport_(transport), handler_(handler) {}
  void OnMessage(const std::shared_ptr<Connection>& from, Message message) override {
    handler_.OnMessage(EndOf(from), std::move(message));
  }
  void OnClosed(const std::shared_ptr<Connection>& from, const Status& why) override {
    const std::shared_ptr<End> end = EndOf(from);
    handler_.OnClosed(end, why);
    const std::lock_guard lock(mutex_);
    ends_.erase(from.get());
  }

 private:
  std::shared_ptr<End> EndOf(const std::shared_ptr<Connection>& from) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<End>& end = ends_[from.get()];
    if (end == nullptr) {
      end = std::make_shared<End>(transport_);
      end->SetInner(from);
    }
    return end;
  }

  LossyTransport& transport_;
  ConnectionHandler& handler_;
  std::mutex mutex_;
  std::map<Connection*, std::shared_ptr<End>> ends_;
};

LossyTransport::LossyTransport(std::unique_ptr<Transport> inner, std::uint64_t seed, MessageFaults faults)
    : inner_(std::move(inner)), faults_(faults), random_(seed) {}

LossyTransport::~LossyTransport() = default;

double LossyTransport::Uniform() {
  const std::lock_guard lock(mutex_);
  return std::uniform_real_distribution<double>()(random_);
}

std::chrono::microseconds LossyTransport::Delay() {
  return std::chrono::microseconds(
      static_cast<std::int64_t>(Uniform() * static_cast<double>(faults_.delay_max.count())));
}

Result<std::unique_ptr<Listener>> LossyTransport::Listen(const std::string& address,
                                                         ConnectionHandler& handler) {
  auto at_server = std::make_unique<AtServer>(*this, handler);
  ConnectionHandler& to = *at_server;
  {
    const std::lock_guard lock(mutex_);
    handlers_.push_back(std::move(at_server));
  }
  return inner_->Listen(address, to);
}

std::shared_ptr<Connection> LossyTransport::Connect(const std::string& address, ConnectionHandler& handler) {
  auto end = std::make_shared<End>(*this);
  auto at_client = std::make_unique<AtClient>(handler, end);
  ConnectionHandler& to = *at_client;
  {
    const std::lock_guard lock(mutex_);
    handlers_.push_back(std::move(at_client));
  }
  end->SetInner(inner_->Connect(address, to));
  return end;
}

}  // namespace penstock::test
