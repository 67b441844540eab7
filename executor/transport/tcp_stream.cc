#include "executor/transport/tcp_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "executor/transport/address.h"
#include "framework/tensor/tensor.h"

namespace penstock::transport {
namespace {

using Sizes = std::array<std::uint32_t, 2>;  // of head and body
constexpr Sizes kEnd = {~std::uint32_t{0}, 0};

Status Broke() { return Unavailable("E-rpc-stream", "its connection broke"); }

// Lets the kernel detect a lost host in the same time as gRPC's pings (grpc_stream.cc).
void FindLostHosts(const Descriptor& socket) {
  const auto set = [&](int level, int name, int value) {
    setsockopt(socket.get(), level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 13'000);
}

// Turns off pacing on loopback, where bytes are only copied: a system that paces its senders (BBR) would set
// timers for them. If the system does not allow this, nothing changes.
void SendWithoutPacing(const Descriptor& socket) {
  SocketAddress peer{.storage = {}, .size = sizeof(sockaddr_storage)};
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) return;
  if (!peer.IsLoopback()) return;
  constexpr std::string_view kReno = "reno";
  setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

// Returns the pieces to write; their heads are stored in `heads`.
std::vector<iovec> PiecesOf(const std::deque<Message>& messages, std::vector<std::string>& heads) {
  std::vector<iovec> pieces;
  heads.reserve(messages.size());  // so that their bytes never move
  for (const Message& message : messages) {
    const Sizes sizes = {static_cast<std::uint32_t>(message.head.size()),
                         static_cast<std::uint32_t>(message.body.size())};
    std::string& head = heads.emplace_back(reinterpret_cast<const char*>(sizes.data()), sizeof(sizes));
    head.append(message.head);
    pieces.push_back({head.data(), head.size()});
    for (const Bytes& piece : message.body.pieces())
      pieces.push_back({const_cast<std::byte*>(piece.data), piece.size});
  }
  return pieces;
}

}  // namespace

TcpStream::TcpStream(Descriptor socket, ConnectionHandler& handler)
    : socket_(std::move(socket)), handler_(handler) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
  FindLostHosts(socket_);
  SendWithoutPacing(socket_);
}

void TcpStream::Run() {
  Status why;
  try {
    std::thread writer([this] { Write(); });
    try {
      why = Read();
    } catch (const std::bad_alloc&) {  // ends the connection, not the process
      why = FailedPrecondition("E-run-memory", "there is no memory for what a connection carries");
    }
    {
      const std::lock_guard lock(mutex_);
      if (said_end_ && why.id() == "E-rpc-stream") why = OkStatus();  // a break after our end is no error
      EndNow(why);
      why = why_;  // this side ended it, for its own reason
    }
    writer.join();
  } catch (const std::system_error& error) {
    why = Unavailable("E-rpc-thread", "cannot start a thread: ", error.what());
    const std::lock_guard lock(mutex_);
    EndNow(why);
  }
  {
    std::deque<Message> dropped;  // destroyed without the lock, because a destructor may run any code
    const std::lock_guard lock(mutex_);
    dropped.swap(queue_);
  }
  handler_.OnClosed(shared_from_this(), why);
}

void TcpStream::Send(Message message) {
  PENSTOCK_CHECK(message.head.size() <= kMaxHeadBytes && message.body.size() <= kMaxBodyBytes,
                 "a message is too large");
  const std::lock_guard lock(mutex_);
  if (ended_ || closing_) return;
  queue_.push_back(std::move(message));
  changed_.notify_one();
}

void TcpStream::Close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_one();
}

void TcpStream::Abort() {
  const std::lock_guard lock(mutex_);
  EndNow(Unavailable("E-rpc-stream", "the connection was given up"));
}

void TcpStream::EndNow(const Status& why) {
  if (ended_) return;
  ended_ = true;
  why_ = why;
  shutdown(socket_.get(), SHUT_RDWR);
  changed_.notify_one();
}

bool TcpStream::Receive(void* to, std::size_t size) const {
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = recv(socket_.get(), static_cast<char*>(to) + have, size - have, MSG_WAITALL);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return true;
}

Status TcpStream::Read() {
  while (true) {
    Sizes sizes;
    if (!Receive(sizes.data(), sizeof(sizes))) return Broke();
    if (sizes == kEnd) return OkStatus();
    const auto [head, body] = sizes;
    if (head > kMaxHeadBytes || body > kMaxBodyBytes)
      return DataLoss("E-rpc-frame", "a message of ", head, " + ", body,
                      " bytes on a stream of large bodies");
    Message message;
    message.head.resize(head);
    if (!Receive(message.head.data(), head)) return Broke();
    if (body > 0) {
      Room room = handler_.RoomFor(shared_from_this(), message.head, body);
      if (room.data == nullptr) {
        std::shared_ptr<Buffer> buffer = Buffer::Allocate(body);
        room.data = buffer->data();
        room.owner = std::move(buffer);
      }
      if (!Receive(room.data, body)) return Broke();
      message.body.Append({std::move(room.owner), room.data, body});
    }
    handler_.OnMessage(shared_from_this(), std::move(message));
  }
}

void TcpStream::Write() {
  while (true) {
    std::deque<Message> messages;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ || closing_ || !queue_.empty(); });
      if (ended_) return;
      said_end_ = queue_.empty();
      messages.swap(queue_);
    }
    if (messages.empty()) return SayEnd();
    if (!WriteAll(messages)) {
      const std::lock_guard lock(mutex_);
      return EndNow(Broke());
    }
  }
}

// The other side reads the end and closes. If it has closed already, the reading thread notices.
void TcpStream::SayEnd() const { (void)!send(socket_.get(), kEnd.data(), sizeof(kEnd), MSG_NOSIGNAL); }

bool TcpStream::WriteAll(const std::deque<Message>& messages) const try {
  constexpr std::size_t kPiecesMax = 64;  // per call; the kernel allows 1,024
  std::vector<std::string> heads;
  std::vector<iovec> pieces = PiecesOf(messages, heads);
  for (std::size_t at = 0; at < pieces.size();) {
    msghdr message{};
    message.msg_iov = &pieces[at];
    message.msg_iovlen = std::min(kPiecesMax, pieces.size() - at);
    ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    for (; sent > 0; ++at) {
      iovec& piece = pieces[at];
      if (static_cast<std::size_t>(sent) < piece.iov_len) {
        piece.iov_base = static_cast<char*>(piece.iov_base) + sent;
        piece.iov_len -= static_cast<std::size_t>(sent);
        break;
      }
      sent -= static_cast<ssize_t>(piece.iov_len);
    }
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace penstock::transport
