#include "executor/transport/dial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "executor/transport/address.h"
#include "executor/transport/unix_socket.h"

namespace penstock::transport {
namespace {

// A socket whose waits all end at one deadline, or when the `wake` event is set.
class Line {
 public:
  Line(Descriptor socket, Nanoseconds patience, int wake)
      : socket_(std::move(socket)), end_(SystemClock().Now() + patience), wake_(wake) {}

  Status Connect(const SocketAddress& to) {
    if (connect(socket_.get(), to.get(), to.size) == 0) return OkStatus();
    if (errno != EINPROGRESS) return Failed(errno);
    PENSTOCK_RETURN_IF_ERROR(Wait(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? OkStatus() : Failed(error);
  }
  Status Write(const std::string& bytes) {
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == static_cast<ssize_t>(bytes.size()) ? OkStatus() : Failed(sent < 0 ? errno : EAGAIN);
  }
  // Reads exactly `size` bytes: the bytes that follow belong to the transport.
  Result<std::string> Read(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      PENSTOCK_RETURN_IF_ERROR(Wait(POLLIN));
      const ssize_t got = recv(socket_.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
      if (got == 0) return Unavailable("E-rpc-connect", "the connection was closed");
      if (got < 0 && errno != EAGAIN && errno != EINTR) return Failed(errno);
      if (got > 0) have += static_cast<std::size_t>(got);
    }
    return bytes;
  }
  Descriptor Take() { return std::move(socket_); }

 private:
  static Status Failed(int error) {
    if (error == ECONNREFUSED) return Unavailable("E-rpc-not-listening", std::strerror(error));
    const bool route = error == EHOSTUNREACH || error == ENETUNREACH || error == EACCES || error == EPERM;
    return Unavailable(route ? "E-rpc-route" : "E-rpc-connect", std::strerror(error));
  }
  Status Wait(short events) {
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - SystemClock().Now());
      if (left.count() <= 0) return Unavailable("E-rpc-connect", "no answer");
      pollfd polled[] = {{socket_.get(), events, 0}, {wake_, POLLIN, 0}};
      const int ready = poll(polled, 2, static_cast<int>(left.count()));
      if (ready < 0 && errno != EINTR) return Failed(errno);
      if (polled[1].revents != 0) return Cancelled("E-cancelled", "the connection was given up");
      if (ready > 0 && polled[0].revents != 0) return OkStatus();
    }
  }

  Descriptor socket_;
  const Nanoseconds end_;
  const int wake_;
};

Status CheckVerdict(const VerdictRead& verdict, const DialOptions& options, const Nonces& nonces) {
  if (verdict.verdict == Verdict::kFull)
    return Unavailable("E-rpc-full", "the server has as many connections as it takes (ulimit -n there)");
  PENSTOCK_ASSIGN_OR_RETURN(const ProofBytes want, ProofOf(Prover::kServer, options.token, nonces));
  if (verdict.verdict == Verdict::kWelcome && SameProof(verdict.proof, want)) return OkStatus();
  return FailedPrecondition("E-rpc-token",
                            "the job token is wrong; both sides must have the same PENSTOCK_JOB_TOKEN");
}

// A unix socket delivers the challenge as one record.
Result<std::string> ReadRecord(Line& line) { return line.Read(kChallengeBytes); }

// Over TCP another protocol's server may answer, which may send less than a challenge and then wait.
Result<std::string> ReadFromStream(Line& line) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string challenge, line.Read(kHeadBytes));
  if (IsHttp2Settings(challenge)) {
    return FailedPrecondition("E-wire-differs", "it speaks Fluid's wire, and this process the native one; ",
                              "give all processes of the job the same PENSTOCK_WIRE (--wire)");
  }
  if (challenge.substr(0, kMagic.size()) != kMagic) return challenge;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string nonce, line.Read(kChallengeBytes - kHeadBytes));
  return challenge + nonce;
}

Result<Nonces> Challenge(Line& line, const DialOptions& options, Result<std::string> (*read)(Line&)) {
  Nonces nonces;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string challenge, read(line));
  PENSTOCK_RETURN_IF_ERROR(ReadChallenge(challenge, nonces));
  if (nonces.tls == options.tls) return nonces;
  return FailedPrecondition(
      "E-rpc-tls", nonces.tls
                       ? "the server speaks TLS; set PENSTOCK_TLS_CA here"
                       : "the server does not speak TLS; set PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY there");
}

Result<Dialed> Prove(Line line, const DialOptions& options, Nonces nonces) {
  PENSTOCK_ASSIGN_OR_RETURN(nonces.client, MakeNonce());
  PENSTOCK_ASSIGN_OR_RETURN(const ProofBytes proof, ProofOf(Prover::kClient, options.token, nonces));
  PENSTOCK_RETURN_IF_ERROR(line.Write(WriteAnswer(options.follows, nonces.client, proof)));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, line.Read(kVerdictBytes));
  PENSTOCK_ASSIGN_OR_RETURN(const VerdictRead verdict, ReadVerdict(bytes));
  PENSTOCK_RETURN_IF_ERROR(CheckVerdict(verdict, options, nonces));
  PENSTOCK_ASSIGN_OR_RETURN(const ProofBytes stream, ProofOf(Prover::kStream, options.token, nonces));
  return Dialed{.socket = line.Take(), .pass = WritePass(nonces.server, stream)};
}

// Proves the token on the server's unix socket if it can be reached, else on `line`.
Result<Dialed> Enter(Line line, const DialOptions& options, int wake) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nonces nonces, Challenge(line, options, ReadFromStream));
  Descriptor local;
  if (options.local && nonces.local) local = ConnectUnix({nonces.server.data(), kServerIdBytes});
  if (!local.valid()) return Prove(std::move(line), options, nonces);
  PENSTOCK_RETURN_IF_ERROR(line.Write(WriteMoved()));
  Line near(std::move(local), options.patience, wake);
  PENSTOCK_ASSIGN_OR_RETURN(const Nonces again, Challenge(near, options, ReadRecord));
  PENSTOCK_ASSIGN_OR_RETURN(Dialed dialed, Prove(std::move(near), options, again));
  dialed.local = true;
  return dialed;
}

}  // namespace

Status RequireNotNative(const std::string& address, Nanoseconds patience) {
  const Result<std::vector<SocketAddress>> addresses = Resolve(address, false);
  if (!addresses.ok()) return OkStatus();
  for (const SocketAddress& to : *addresses) {
    Descriptor made(socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!made.valid()) continue;
    Line line(std::move(made), patience, -1);
    if (!line.Connect(to).ok()) continue;
    const Result<std::string> head = line.Read(kMagic.size());
    if (!head.ok() || *head != kMagic) return OkStatus();
    return FailedPrecondition(
        "E-wire-differs", "pserver ", address,
        " speaks the native wire, and this process Fluid's; give all processes of the job "
        "the same PENSTOCK_WIRE (--wire)");
  }
  return OkStatus();
}

Result<Dialed> Dial(const std::string& address, const DialOptions& options, int wake) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses, Resolve(address, false));
  if (options.token.empty() && !AllLoopback(addresses)) {
    return FailedPrecondition("E-rpc-token-missing",
                              "it is on another machine, which needs a job token: set "
                              "PENSTOCK_JOB_TOKEN, the same for all processes of the job");
  }
  Status last = Unavailable("E-rpc-connect", "no address");
  for (const SocketAddress& to : addresses) {
    Descriptor made(socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!made.valid()) {
      last = Unavailable("E-rpc-connect", std::strerror(errno));
      continue;
    }
    const int on = 1;
    setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    Line line(std::move(made), options.patience, wake);
    last = line.Connect(to);
    if (last.ok()) return Enter(std::move(line), options, wake);
    if (last.code() == StatusCode::kCancelled) return last;
  }
  return last;
}

}  // namespace penstock::transport
