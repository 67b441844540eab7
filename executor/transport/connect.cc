#include "executor/transport/connect.h"

#include <grpcpp/alarm.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/transport/dial.h"
#include "executor/transport/grpc_connect.h"
#include "executor/transport/local_link.h"
#include "executor/transport/peer_connection.h"
#include "executor/transport/tcp_stream.h"
#include "executor/transport/tls.h"

namespace penstock::transport {
namespace {

// Attempts follow each other after a fifth of the time since the first, so that a peer that starts a moment
// later costs no more than that moment, and trainers that wait for one server begin together.
constexpr auto kRetryFirst = std::chrono::milliseconds(2);
constexpr auto kRetryMost = std::chrono::milliseconds(1000);

std::chrono::milliseconds NextRetry(std::chrono::milliseconds wait) {
  return std::min(wait + std::max(wait / 4, std::chrono::milliseconds(1)), kRetryMost);
}

class ClientConnection : public PeerConnection {
 public:
  ClientConnection(std::string address, ConnectionHandler& handler, const GrpcTransportOptions& options,
                   std::shared_ptr<ClientConnections> connections)
      : PeerConnection(handler),
        address_(std::move(address)),
        options_(options),
        connections_(std::move(connections)) {
    wake_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  // Never runs on the dialing thread: ClientConnections holds ended connections.
  ~ClientConnection() override {
    if (dialer_.joinable()) dialer_.join();
  }

  void Start() {
    self_ = shared_from_this();
    connections_->Begin();
    try {
      dialer_ = std::thread([this] { DialUntilThere(); });
    } catch (const std::system_error& error) {
      const Status why = Unavailable("E-rpc-thread", "cannot start a thread: ", error.what());
      alarm_.Set(std::chrono::system_clock::now(), [this, why](bool) { EndWithout(why); });
    }
  }
  bool refused() const override { return refused_; }
  void Abort() override {
    StopDialing();
    PeerConnection::Abort();
  }

 protected:
  void OnLarge() override {
    if (large_.exchange(true)) return;
    const std::lock_guard lock(dial_mutex_);
    changed_.notify_all();
  }
  // The owner may destroy this object as soon as End is called.
  void OnOver() override {
    StopDialing();
    const std::shared_ptr<ClientConnections> connections = connections_;
    connections->End(std::move(self_));
  }

 private:
  void StopDialing() {
    const std::lock_guard lock(dial_mutex_);
    stopped_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    changed_.notify_all();
  }

  void DialUntilThere() {
    const Result<std::shared_ptr<grpc::ChannelCredentials>> credentials = ClientCredentialsOf(options_.tls);
    if (!credentials.ok()) return EndWithout(credentials.status());
    const DialOptions dial{.token = options_.token,
                           .tls = ClientSpeaksTls(options_.tls),
                           .local = options_.carrier == Carrier::kAuto,
                           .patience = std::max<Nanoseconds>(options_.patience, std::chrono::seconds(1))};
    std::string told;
    for (auto wait = kRetryFirst;; wait = NextRetry(wait)) {
      Result<Dialed> dialed = Dial(address_, dial, wake_.get());
      if (dialed.ok()) return Begin(*std::move(dialed), dial, dial.tls ? *credentials : nullptr);
      const Status& why = dialed.status();
      if (stopped_) break;
      if (why.code() != StatusCode::kUnavailable) return EndWithout(why);
      // A server that has not started yet refuses connections; other errors may need a person's help.
      refused_ = why.id() == "E-rpc-not-listening";
      if (!refused_ && why.id() != "E-rpc-connect" && why.message() != told) {
        told = why.message();
        options_.report(StrCat(options_.peer, " ", address_, ": ", told, "; trying again"));
      }
      pollfd polled{wake_.get(), POLLIN, 0};
      poll(&polled, 1, static_cast<int>(wait.count()));
      if (stopped_) break;
    }
    EndWithout(Unavailable("E-rpc-stream", "the connection was given up"));
  }

  void Begin(Dialed dialed, const DialOptions& dial, const std::shared_ptr<grpc::ChannelCredentials>& tls) {
    options_.tell(StrCat(options_.peer, " ", address_, ": connected by ", NameOf(dialed, dial)));
    if (dialed.local) {
      std::shared_ptr<LocalLink> link;
      (void)Carry([&](ConnectionHandler& member) -> Result<std::shared_ptr<Connection>> {
        link = std::make_shared<LocalLink>(std::move(dialed.socket), member, LocalEnd::kClient);
        return std::shared_ptr<Connection>(link);
      });
      return link->Run();
    }
    const std::string lead = dialed.pass;
    const Result<bool> carried = Carry(
        [&](ConnectionHandler& member) { return OpenStream(address_, std::move(dialed), member, tls); });
    if (!carried.ok()) return EndWithout(carried.status());
    WaitForLarge();
    tls == nullptr ? CarryBodies(dial, lead) : OpenMore(dial, tls, lead);
  }

  // A connection with small messages only needs no second stream. If the second stream cannot be opened, the
  // first carries all messages.
  void WaitForLarge() {
    std::unique_lock lock(dial_mutex_);
    changed_.wait(lock, [&] { return stopped_ || large_; });
  }

  void OpenMore(DialOptions dial, const std::shared_ptr<grpc::ChannelCredentials>& tls,
                const std::string& lead) {
    dial.local = false;
    for (int i = 1; i < options_.streams && !stopped_; ++i) {
      Result<Dialed> dialed = Dial(address_, dial, wake_.get());
      if (!dialed.ok()) return;
      const Result<bool> carried = Carry([&](ConnectionHandler& member) {
        return OpenStream(address_, *std::move(dialed), member, tls, lead);
      });
      if (!carried.ok() || !*carried) return;
    }
  }

  // Runs the stream of bodies on this thread until the connection ends.
  void CarryBodies(DialOptions dial, const std::string& lead) {
    if (options_.streams < 2 || stopped_) return;
    dial.local = false;
    dial.follows = Follows::kBodies;
    Result<Dialed> dialed = Dial(address_, dial, wake_.get());
    if (!dialed.ok() || !SendAll(dialed->socket, lead)) return;
    std::shared_ptr<TcpStream> stream;
    const Result<bool> carried = Carry(
        [&](ConnectionHandler& member) -> Result<std::shared_ptr<Connection>> {
          stream = std::make_shared<TcpStream>(std::move(dialed->socket), member);
          return std::shared_ptr<Connection>(stream);
        },
        Takes::kLarge);
    if (carried.ok() && *carried) stream->Run();
  }

  static std::string_view NameOf(const Dialed& dialed, const DialOptions& dial) {
    if (dialed.local) return "a unix socket and shared memory";
    return dial.tls ? "TCP with TLS" : "TCP";
  }

  const std::string address_;
  const GrpcTransportOptions options_;
  Descriptor wake_;
  grpc::Alarm alarm_;
  const std::shared_ptr<ClientConnections> connections_;
  std::shared_ptr<Connection> self_;
  std::thread dialer_;

  std::mutex dial_mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopped_ = false;  // no more streams may be opened
  std::atomic<bool> large_ = false;    // a large body was sent or received
  std::atomic<bool> refused_ = false;  // by the last attempt
};

}  // namespace

void ClientConnections::Begin() {
  const std::lock_guard lock(mutex_);
  ++live_;
}

void ClientConnections::End(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  over_.push_back(std::move(connection));
  --live_;
  changed_.notify_all();
}

std::vector<std::shared_ptr<Connection>> ClientConnections::TakeOver() {
  const std::lock_guard lock(mutex_);
  return std::exchange(over_, {});
}

void ClientConnections::WaitForAll() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return live_ == 0; });
}

std::shared_ptr<Connection> ConnectTo(const std::string& address, ConnectionHandler& handler,
                                      const GrpcTransportOptions& options,
                                      const std::shared_ptr<ClientConnections>& connections) {
  auto connection = std::make_shared<ClientConnection>(address, handler, options, connections);
  connections->TakeOver();  // destroys ended connections; the new one keeps gRPC in use
  connection->Start();
  return connection;
}

}  // namespace penstock::transport
