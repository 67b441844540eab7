#include "tests/sim/network.h"

#include <algorithm>

namespace penstock::test {

// One end of a connection; the two ends know each other.
class Network::Link : public Connection, public std::enable_shared_from_this<Link> {
 public:
  // `address`: where the listener is. `owner`, `peer`: the processes at this end and at the other one.
  Link(Network& net, std::string address, std::string owner, std::string peer)
      : net_(net), address_(std::move(address)), owner_(std::move(owner)), peer_(std::move(peer)) {}

  void Send(Message message) override {
    if (closed_ || (closing_ && net_.faults_.breaks > 0)) return;
    if (handler_ != nullptr && other_.lock() == nullptr) {
      waiting_.push_back(std::move(message));
      return;
    }
    if (net_.CutFor(owner_, peer_) > Nanoseconds(0)) {
      ++net_.cut_off_;
      return;
    }
    if (net_.faults_.breaks > 0 && net_.Uniform() < net_.faults_.breaks) return Break();
    if (net_.Uniform() < net_.faults_.lost) return;
    const int copies = net_.Uniform() < net_.faults_.twice ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const double chance = i == 0 || net_.faults_.late == 0 ? net_.faults_.late : 0.5;
      const bool late = chance > 0 && net_.Uniform() < chance;
      net_.After(net_.Delay() * (late ? 20 : 1), [to = other_.lock(), message] {
        if (to == nullptr || to->closed_) return;
        ++to->net_.messages_;
        to->handler_->OnMessage(to, message);
      });
    }
  }

  bool refused() const override { return refused_; }
  void Close() override { End(net_.faults_.delay_max, OkStatus()); }
  void Abort() override { End(Nanoseconds(0), Unavailable("E-rpc-stream", "its connection broke")); }

  // Retries until the listener exists.
  void Dial() {
    if (closed_) return;
    const auto listener = net_.listeners_.find(address_);
    const bool cut = std::max(net_.CutFor(owner_, peer_), net_.CutFor(peer_, owner_)) > Nanoseconds(0);
    const bool reachable = !cut && net_.unreachable_until_[address_] <= net_.clock_.Now();
    refused_ = reachable && listener == net_.listeners_.end();
    if (!reachable || refused_) {
      net_.After(std::chrono::milliseconds(50), [self = shared_from_this()] { self->Dial(); });
      return;
    }
    auto far = std::make_shared<Link>(net_, address_, peer_, owner_);
    far->handler_ = listener->second;
    far->other_ = shared_from_this();
    far_ = far;
    other_ = far;
    for (Message& message : std::exchange(waiting_, {})) Send(std::move(message));
  }

  void set_handler(ConnectionHandler& handler) { handler_ = &handler; }
  const std::string& address() const { return address_; }
  void LoseOther() {
    if (far_ != nullptr) far_->closed_ = true;
    net_.After(net_.CutFor(peer_, owner_), [self = shared_from_this()] {
      self->Closed(Unavailable("E-rpc-stream", "its connection broke"));
    });
  }

 private:
  // Each end learns at its own time that the connection has broken.
  void Break() {
    if (closing_) return;
    ++net_.breaks_;
    const Status why = Unavailable("E-rpc-stream", "its connection broke");
    Nanoseconds& until = net_.unreachable_until_[address_];
    if (until <= net_.clock_.Now() && net_.Uniform() < 0.5)
      until = net_.clock_.Now() + Nanoseconds(static_cast<std::int64_t>(net_.Uniform() * 5e9));
    const std::shared_ptr<Link> other = other_.lock();
    for (const std::shared_ptr<Link>& end : {shared_from_this(), other}) {
      if (end == nullptr) continue;
      end->closing_ = true;  // nothing more leaves it
      net_.After(net_.Delay() * 20, [end, why] { end->Closed(why); });
    }
  }
  void End(Nanoseconds grace, const Status& why) {
    if (closing_) return;
    closing_ = true;
    net_.After(grace, [self = shared_from_this(), why] { self->Closed(why); });
    if (auto other = other_.lock()) {
      const Nanoseconds cut = net_.CutFor(owner_, peer_);
      net_.After(std::max(grace, cut), [other, why] { other->Closed(why); });
    }
  }
  void Closed(const Status& why) {
    if (closed_) return;
    closed_ = true;
    handler_->OnClosed(shared_from_this(), why);
  }

  Network& net_;
  const std::string address_, owner_, peer_;
  ConnectionHandler* handler_ = nullptr;
  std::weak_ptr<Link> other_;
  std::shared_ptr<Link> far_;  // the dialling end keeps both alive
  std::vector<Message> waiting_;
  bool closing_ = false;
  bool closed_ = false;
  bool refused_ = false;
};

class Network::SimListener : public Listener {
 public:
  SimListener(Network& net, std::string address) : net_(net), address_(std::move(address)) {}
  ~SimListener() override { net_.listeners_.erase(address_); }

 private:
  Network& net_;
  const std::string address_;
};

Result<std::unique_ptr<Listener>> Network::SimTransport::Listen(const std::string& address,
                                                                ConnectionHandler& handler) {
  if (!net_.listeners_.emplace(address, &handler).second)
    return Unavailable("E-rpc-bind", address, " is in use");
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(net_, address));
}

std::shared_ptr<Connection> Network::SimTransport::Connect(const std::string& address,
                                                           ConnectionHandler& handler) {
  auto link = std::make_shared<Link>(net_, address, process_, address);
  link->set_handler(handler);
  net_.dialled_.push_back(link);
  net_.After(net_.Delay(), [link] { link->Dial(); });
  return link;
}

Transport& Network::TransportOf(const std::string& process) {
  return transports_.try_emplace(process, *this, process).first->second;
}

void Network::Cut(const std::string& from, const std::string& to, Nanoseconds duration) {
  Nanoseconds& until = cut_until_[{from, to}];
  until = std::max(until, clock_.Now() + duration);
}

Nanoseconds Network::CutFor(const std::string& from, const std::string& to) const {
  const auto cut = cut_until_.find({from, to});
  return cut == cut_until_.end() ? Nanoseconds(0) : std::max(Nanoseconds(0), cut->second - clock_.Now());
}

void Network::Kill(const std::string& address) {
  for (const std::weak_ptr<Link>& dialled : dialled_) {
    const std::shared_ptr<Link> link = dialled.lock();
    if (link != nullptr && link->address() == address) link->LoseOther();
  }
}

void Network::After(Nanoseconds delay, std::function<void()> what) {
  events_.emplace(std::pair(clock_.Now() + delay, made_++), std::move(what));
}

void Network::RunMeanwhile() {
  if (meanwhiles_ > 1) return;
  ++meanwhiles_;
  RunUntil([] { return false; }, Delay());
  --meanwhiles_;
}

bool Network::RunUntil(const std::function<bool()>& done, Nanoseconds limit) {
  const Nanoseconds end = clock_.Now() + limit;
  while (!done()) {
    if (events_.empty() || events_.begin()->first.first > end) return false;
    const auto event = events_.extract(events_.begin());
    clock_.Advance(event.key().first - clock_.Now());
    event.mapped()();
  }
  return true;
}

}  // namespace penstock::test
