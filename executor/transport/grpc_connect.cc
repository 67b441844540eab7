#include "executor/transport/grpc_connect.h"

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/transport/address.h"
#include "executor/transport/dial.h"
#include "executor/transport/grpc_stream.h"
#include "executor/transport/relay.h"
#include "executor/transport/tls.h"

namespace penstock::transport {
namespace {

constexpr auto kRetryFirst = std::chrono::milliseconds(100);
constexpr auto kRetryMost = std::chrono::milliseconds(1000);

class ClientStream : public Stream, public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientStream(std::string address, ConnectionHandler& handler, const GrpcTransportOptions& options,
               std::shared_ptr<ClientStreams> streams)
      : Stream(handler), address_(std::move(address)), options_(options), streams_(std::move(streams)) {
    wake_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  }
  // Not on the dialing thread: ClientStreams sees to it.
  ~ClientStream() override {
    if (dialer_.joinable()) dialer_.join();
  }

  void Start() {
    self_ = shared_from_this();
    streams_->Begin();
    try {
      dialer_ = std::thread([this] { DialUntilThere(); });
    } catch (const std::system_error& error) {
      const Status why = Unavailable("E-rpc-thread", "cannot start a thread: ", error.what());
      alarm_.Set(std::chrono::system_clock::now(), [this, why](bool) { End(why); });
    }
  }
  void Abort() override {
    aborted_ = true;
    const std::uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (ok) heard_ = true;
    Read(ok);
  }
  void OnWriteDone(bool ok) override { Written(ok); }
  void OnDone(const grpc::Status& status) override {
    if (status.ok()) return End(OkStatus());
    // The gate has let us in, and nothing came: in TLS that is a certificate that one side does not take.
    if (relay_ != nullptr && !heard_ && !aborted_) {
      return End(FailedPrecondition("E-rpc-tls", "TLS does not come about (", status.error_message(),
                                    "); check the certificates, their names, and PENSTOCK_TLS_MUTUAL"));
    }
    const bool silent = status.error_message().find("keepalive watchdog") != std::string::npos;
    End(Unavailable("E-rpc-stream", silent ? std::string("its connection broke") : status.error_message()));
  }

 protected:
  void BeginWrite(const grpc::ByteBuffer* frame) override { StartWrite(frame); }
  void BeginRead(grpc::ByteBuffer* frame) override { StartRead(frame); }
  void BeginEnd() override {
    StartWritesDone();
    RemoveHold();
  }

 private:
  void DialUntilThere() {
    const Result<std::shared_ptr<grpc::ChannelCredentials>> credentials = ClientCredentialsOf(options_.tls);
    if (!credentials.ok()) return End(credentials.status());
    const DialOptions dial{.token = options_.token,
                           .tls = ClientSpeaksTls(options_.tls),
                           .patience = std::max<Nanoseconds>(options_.patience, std::chrono::seconds(1))};
    std::string told;
    for (auto wait = kRetryFirst;; wait = std::min(wait * 2, kRetryMost)) {
      Result<Dialed> dialed = Dial(address_, dial, wake_.get());
      if (dialed.ok()) return Begin(*std::move(dialed), *credentials);
      const Status& why = dialed.status();
      if (aborted_) break;
      if (why.code() != StatusCode::kUnavailable) return End(why);
      // A server that is still to start refuses; anything else may need somebody's help.
      if (why.id() != "E-rpc-connect" && why.message() != told) {
        told = why.message();
        options_.report(StrCat("pserver ", address_, ": ", told, "; trying again"));
      }
      pollfd polled{wake_.get(), POLLIN, 0};
      poll(&polled, 1, static_cast<int>(wait.count()));
      if (aborted_) break;
    }
    End(Unavailable("E-rpc-stream", "the connection was given up"));
  }

  void Begin(Dialed dialed, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    TuneChannel([&](const char* name, int value) { arguments.SetInt(name, value); });
    if (ClientSpeaksTls(options_.tls)) {
      Result<std::unique_ptr<Relay>> relay = Relay::Start(std::move(dialed.socket));
      if (!relay.ok()) return End(relay.status());
      relay_ = *std::move(relay);
      arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetSslTargetNameOverride(HostOf(address_));
      channel_ = grpc::CreateCustomChannel(relay_->target(), credentials, arguments);
    } else {
      channel_ = grpc::CreateCustomInsecureChannelFromFd(address_, dialed.socket.Release(), arguments);
    }
    stub_.emplace(channel_);
    context_.AddMetadata(kPassKey, dialed.pass);
    stub_->PrepareBidiStreamingCall(&context_, kTalkMethod, grpc::StubOptions(), this);
    AddHold();  // until BeginEnd: writes are started from any thread
    StartCall();
    if (aborted_) context_.TryCancel();
    Started();
  }

  // The last thing that happens; the owner may end this object at once.
  void End(const Status& why) {
    Over(why);
    const std::shared_ptr<ClientStreams> streams = streams_;
    streams->End(std::move(self_));
  }

  const std::string address_;
  const GrpcTransportOptions options_;
  Descriptor wake_;
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> heard_ = false;
  std::unique_ptr<Relay> relay_;  // outlives the channel
  std::shared_ptr<grpc::Channel> channel_;
  std::optional<grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>> stub_;
  grpc::ClientContext context_;
  grpc::Alarm alarm_;
  const std::shared_ptr<ClientStreams> streams_;
  std::shared_ptr<Connection> self_;
  std::thread dialer_;
};

}  // namespace

void ClientStreams::Begin() {
  const std::lock_guard lock(mutex_);
  ++live_;
}

void ClientStreams::End(std::shared_ptr<Connection> stream) {
  const std::lock_guard lock(mutex_);
  over_.push_back(std::move(stream));
  --live_;
  changed_.notify_all();
}

std::vector<std::shared_ptr<Connection>> ClientStreams::TakeOver() {
  const std::lock_guard lock(mutex_);
  return std::exchange(over_, {});
}

void ClientStreams::WaitForAll() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return live_ == 0; });
}

std::shared_ptr<Connection> ConnectByGrpc(const std::string& address, ConnectionHandler& handler,
                                          const GrpcTransportOptions& options,
                                          const std::shared_ptr<ClientStreams>& streams) {
  auto stream = std::make_shared<ClientStream>(address, handler, options, streams);
  streams->TakeOver();  // not the last users of gRPC: the new one is there
  stream->Start();
  return stream;
}

}  // namespace penstock::transport
