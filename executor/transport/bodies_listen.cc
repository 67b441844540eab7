#include "executor/transport/bodies_listen.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <mutex>
#include <optional>
#include <utility>

#include "executor/transport/proof.h"
#include "executor/transport/tcp_stream.h"

namespace penstock::transport {

// A socket whose connection is not known yet, and then the stream on it.
class BodiesServer::Guest {
 public:
  explicit Guest(Descriptor socket) : socket_(std::move(socket)) {
    fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
  }

  // Reads the pass of the connection that the socket belongs to. The gate ends a socket that does not send it
  // in time.
  std::optional<std::string> ReadLead() const {
    std::string lead(kPassBytes, '\0');
    const ssize_t size = recv(socket_.get(), lead.data(), lead.size(), MSG_WAITALL);
    if (size != static_cast<ssize_t>(lead.size())) return std::nullopt;
    return lead;
  }
  std::shared_ptr<TcpStream> Become(ConnectionHandler& member) {
    const std::lock_guard lock(mutex_);
    stream_ = std::make_shared<TcpStream>(std::move(socket_), member);
    if (aborted_) stream_->Abort();
    return stream_;
  }
  void Abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (stream_ != nullptr) return stream_->Abort();
    shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  Descriptor socket_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::shared_ptr<TcpStream> stream_;
};

void BodiesServer::Enter(Descriptor socket, const std::string& id) {
  const auto guest = std::make_shared<Guest>(std::move(socket));
  const auto carry = [this, guest, id] {
    const std::optional<std::string> lead = guest->ReadLead();
    const std::shared_ptr<PeerConnection> connection = lead ? find_(*lead) : nullptr;
    if (connection != nullptr) {
      gate_.Admit(id);
      std::shared_ptr<TcpStream> stream;
      const auto open = [&](ConnectionHandler& member) -> Result<std::shared_ptr<Connection>> {
        stream = guest->Become(member);
        return std::shared_ptr<Connection>(stream);
      };
      const Result<bool> carried = connection->Carry(open, PeerConnection::Takes::kLarge);
      if (carried.ok() && *carried) stream->Run();
    }
    gate_.Leave(id);
  };
  if (!threads_.Start(carry, [guest] { guest->Abort(); })) gate_.Leave(id);
}

}  // namespace penstock::transport
