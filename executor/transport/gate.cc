#include "executor/transport/gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

#include "executor/transport/unix_socket.h"

namespace penstock::transport {
namespace {

constexpr auto kSweepEvery = std::chrono::milliseconds(100);
constexpr auto kIdle = std::chrono::seconds(1);
// The time from the end of a stream to the end of its connection, in which its last bytes reach the other
// side.
constexpr Nanoseconds kLeave = std::chrono::milliseconds(500);
constexpr std::size_t kAcceptsInARow = 64;
// Descriptors reserved for other uses of the process.
constexpr std::size_t kOwnDescriptors = 64;
// Without a token any process of this machine passes the gate, so few connections may wait to be admitted.
constexpr std::size_t kNewcomersWithoutToken = 2;

// Returns the process's limit of descriptors divided by `divisor`, within [least, most].
std::size_t OfDescriptors(std::size_t divisor, std::size_t least, std::size_t most) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::size_t all = known ? static_cast<std::size_t>(limit.rlim_cur) : 1 << 20;
  return std::clamp((std::max(all, kOwnDescriptors) - kOwnDescriptors) / divisor, least, most);
}

}  // namespace

Gate::Gate(std::string address, GateOptions options)
    : address_(std::move(address)),
      options_(std::move(options)),
      waiting_max_(OfDescriptors(4, 4, 128)),
      guests_max_(OfDescriptors(4, 4, 4096)),
      newcomers_max_(options_.token.empty() ? kNewcomersWithoutToken : guests_max_),
      strangers_(options_.report, &SystemClock()) {}

Result<std::unique_ptr<Gate>> Gate::Open(const std::string& address, GateOptions options) {
  std::unique_ptr<Gate> gate(new Gate(address, std::move(options)));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses, Resolve(address, true));
  if (gate->options_.token.empty()) {
    if (!AllLoopback(addresses)) {
      return FailedPrecondition("E-rpc-token-missing", "a server at ", address,
                                " can be reached from other machines, and needs a job token: set "
                                "PENSTOCK_JOB_TOKEN, the same for all processes of the job");
    }
    gate->options_.report(
        StrCat("warning: no job token is set (PENSTOCK_JOB_TOKEN): any process of this machine "
               "can take part in the job at ",
               address));
  }
  PENSTOCK_RETURN_IF_ERROR(gate->Listen(addresses));
  gate->ListenLocally();
  return gate;
}

Status Gate::Listen(const std::vector<SocketAddress>& addresses) {
  int error = 0;
  for (const SocketAddress& address : addresses) {
    Descriptor listener(
        socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    const int on = 1;
    const int apart = addresses.size() > 1 ? 1 : 0;  // "[::]" alone takes IPv4 too
    const bool listens =
        listener.valid() && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (address.storage.ss_family != AF_INET6 ||
         setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &apart, sizeof(apart)) == 0) &&
        bind(listener.get(), address.get(), address.size) == 0 && listen(listener.get(), SOMAXCONN) == 0;
    if (listens) {
      listeners_.push_back(std::move(listener));
    } else if (error == 0 || errno == EADDRINUSE) {
      error = errno;
    }
  }
  wake_.Reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // Some of several addresses may fail, but not because another server uses the port: its clients would reach
  // this server.
  if (!listeners_.empty() && error != EADDRINUSE && wake_.valid()) return OkStatus();
  const std::string why = error == EADDRINUSE      ? std::string("the port is in use")
                          : error == EADDRNOTAVAIL ? std::string("the address is not this machine's")
                                                   : std::string(std::strerror(error));
  return Unavailable("E-rpc-bind", "cannot listen on ", address_, ": ", why);
}

// If this fails, processes of this host use TCP too.
void Gate::ListenLocally() {
  const Result<ProofBytes> id = MakeNonce();
  if (!options_.local || options_.tls || !id.ok()) return;
  server_id_.assign(id->data(), kServerIdBytes);
  Result<Descriptor> listener = ListenUnix(server_id_);
  if (listener.ok()) local_listener_ = *std::move(listener);
}

Status Gate::Start(Ways ways) {
  ways_ = std::move(ways);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return Unavailable("E-rpc-thread", "cannot start a thread for ", address_, ": ", error.what());
  }
  return OkStatus();
}

void Gate::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  listeners_.clear();
  local_listener_.Reset();
  waiting_.clear();
}

void Gate::Wake() {
  const std::uint64_t one = 1;
  if (wake_.valid()) (void)!write(wake_.get(), &one, sizeof(one));
}

std::optional<std::string> Gate::Claim(std::string_view pass) {
  const std::lock_guard lock(mutex_);
  if (pass.size() != kPassBytes) return std::nullopt;
  const auto guest = guests_.find(pass.substr(0, 2 * kProofBytes));
  if (guest == guests_.end() || guest->second.claimed || guest->second.ended) return std::nullopt;
  unsigned difference = 0;
  for (std::size_t i = 0; i < pass.size(); ++i)
    difference |= static_cast<unsigned char>(pass[i] ^ guest->second.pass[i]);
  if (difference != 0) return std::nullopt;
  guest->second.claimed = true;
  return guest->first;
}

void Gate::Admit(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto guest = guests_.find(id);
  if (guest != guests_.end()) guest->second.admitted = true;
}

void Gate::Leave(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto guest = guests_.find(id);
    if (guest == guests_.end()) return;
    guest->second.leaving = true;
    guest->second.since = SystemClock().Now();
  }
  Wake();
}

void Gate::Refuse(const std::string& who, std::string_view why) {
  strangers_.Report(StrCat(address_, " refused a connection from ", who, ": ", why));
}

void Gate::Run() {
  while (true) {
    Wait();
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    Sweep();
    SweepGuests();
    strangers_.Tick();
  }
}

// Waits until a socket is ready or the next deadline passes, and reads from the ready sockets.
void Gate::Wait() {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  for (const Descriptor& listener : listeners_) {
    polled.push_back({listener.get(), static_cast<short>(short_since_ ? 0 : POLLIN), 0});
  }
  polled.push_back({local_listener_.get(), static_cast<short>(short_since_ ? 0 : POLLIN), 0});
  const std::size_t waiting_at = polled.size();
  // A connection that has proved the token is not read from: the next bytes are for gRPC.
  for (const Waiting& waiting : waiting_)
    polled.push_back({waiting.socket.get(), static_cast<short>(waiting.proved ? POLLRDHUP : POLLIN), 0});
  bool guests = false;
  {
    const std::lock_guard lock(mutex_);
    guests = std::any_of(guests_.begin(), guests_.end(),
                         [](const auto& entry) { return !entry.second.admitted || entry.second.leaving; });
  }
  const auto limit = short_since_ || guests || !waiting_.empty() ? kSweepEvery : kIdle;
  if (poll(polled.data(), polled.size(), static_cast<int>(std::chrono::milliseconds(limit).count())) < 0)
    return;
  std::uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof(count));
  std::size_t at = waiting_at;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    const short events = polled[at++].revents;
    if (events == 0) return false;
    return waiting.proved || !Read(waiting);
  });
  for (const Descriptor& listener : listeners_) Accept(listener);
  if (local_listener_.valid()) AcceptLocal();
}

void Gate::Accept(const Descriptor& listener) {
  for (std::size_t i = 0; i < kAcceptsInARow; ++i) {
    SocketAddress from{};
    from.size = sizeof(from.storage);
    Descriptor socket(accept4(listener.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (OnAcceptError(errno)) continue;
      return;
    }
    if (short_since_) {
      options_.report(StrCat(address_, " accepts connections again, after ",
                             WholeSeconds(SystemClock().Now() - *short_since_), " s"));
      short_since_.reset();
    }
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    Greet(std::move(socket), from.ToText(), false);
  }
}

void Gate::AcceptLocal() {
  for (std::size_t i = 0; i < kAcceptsInARow; ++i) {
    Descriptor socket(accept4(local_listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (OnAcceptError(errno)) continue;
      return;
    }
    if (IsSameUser(socket)) {
      Greet(std::move(socket), "a process of this host", true);
    } else {
      Refuse("a process of this host", "it runs as another user");
    }
  }
}

// Returns whether to accept again at once.
bool Gate::OnAcceptError(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return false;
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
    return true;  // the error concerns only that one connection
  if (!waiting_.empty()) {
    Evict();
    return true;
  }
  if (!short_since_) {
    short_since_ = SystemClock().Now();
    options_.report(StrCat(address_, " accepts no connections for now: ", std::strerror(error),
                           "; it goes on when descriptors are free (ulimit -n)"));
  }
  return false;
}

// Drops the oldest connection without a proof; if all have proved the token, the oldest of all.
void Gate::Evict() {
  auto victim = std::find_if(waiting_.begin(), waiting_.end(), [](const Waiting& w) { return !w.proved; });
  if (victim == waiting_.end()) victim = waiting_.begin();
  Refuse(victim->who, "too many connections wait to prove the job token");
  waiting_.erase(victim);
}

void Gate::Greet(Descriptor socket, std::string who, bool local) {
  if (waiting_.size() >= waiting_max_) Evict();
  Result<ProofBytes> nonce = MakeNonce();
  if (!nonce.ok()) return Refuse(who, nonce.status().message());
  std::copy(server_id_.begin(), server_id_.end(), nonce->begin());
  Waiting waiting{.socket = std::move(socket),
                  .who = std::move(who),
                  .since = SystemClock().Now(),
                  .nonces = {.tls = options_.tls, .local = local_listener_.valid(), .server = *nonce},
                  .answer = {},
                  .local = local};
  if (SendAll(waiting.socket, WriteChallenge(waiting.nonces))) waiting_.push_back(std::move(waiting));
}

bool Gate::Read(Waiting& waiting) {
  char bytes[kAnswerBytes];
  const ssize_t size = recv(waiting.socket.get(), bytes, kAnswerBytes - waiting.answer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) {
    Refuse(waiting.who, "it closed before it proved the job token");
    return false;
  }
  waiting.answer.append(bytes, static_cast<std::size_t>(size));
  if (StartsWith(waiting.answer, kHttp2Preface)) {
    Refuse(waiting.who,
           "it speaks Fluid's wire, and this pserver the native one; give all processes of the job the same "
           "PENSTOCK_WIRE (E-wire-differs)");
    return false;
  }
  if (waiting.answer.size() < kAnswerBytes) return true;
  return !IsMoved(waiting.answer) && CheckAnswer(waiting);
}

bool Gate::CheckAnswer(Waiting& waiting) {
  const Result<AnswerRead> answer = ReadAnswer(waiting.answer, waiting.nonces);
  if (!answer.ok() || (answer->follows == Follows::kBodies && (waiting.local || !ways_.bodies))) {
    Refuse(waiting.who, "it does not speak penstock's protocol");
    return false;
  }
  const Result<ProofBytes> want = ProofOf(Prover::kClient, options_.token, waiting.nonces);
  if (!want.ok() || !SameProof(answer->proof, *want)) {
    Refuse(waiting.who, "its proof of the job token is wrong (E-rpc-token)");
    SendAll(waiting.socket, WriteVerdict(Verdict::kWrongToken, {}));
    return false;
  }
  waiting.follows = answer->follows;
  waiting.proved = true;
  return true;
}

void Gate::Sweep() {
  const Nanoseconds now = SystemClock().Now();
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.proved && TryEnter(waiting)) return true;
    if (now - waiting.since < options_.patience) return false;
    if (waiting.proved) SendAll(waiting.socket, WriteVerdict(Verdict::kFull, {}));
    Refuse(waiting.who, waiting.proved ? "there are as many connections as there may be"
                                       : "it did not prove the job token in time");
    return true;
  });
}

bool Gate::TryEnter(Waiting& waiting) {
  {
    const std::lock_guard lock(mutex_);
    const auto newcomers = static_cast<std::size_t>(std::count_if(
        guests_.begin(), guests_.end(), [](const auto& entry) { return !entry.second.admitted; }));
    if (newcomers >= newcomers_max_ || guests_.size() >= guests_max_) return false;
  }
  const Result<ProofBytes> proof = ProofOf(Prover::kServer, options_.token, waiting.nonces);
  const Result<ProofBytes> stream = ProofOf(Prover::kStream, options_.token, waiting.nonces);
  Guest guest{.handle = Descriptor(fcntl(waiting.socket.get(), F_DUPFD_CLOEXEC, 0)),
              .who = waiting.who,
              .pass = {},
              .since = SystemClock().Now()};
  if (!proof.ok() || !stream.ok() || !guest.handle.valid()) return false;
  guest.pass = WritePass(waiting.nonces.server, *stream);
  guest.claimed = waiting.local || waiting.follows == Follows::kBodies;
  const std::string id = guest.pass.substr(0, 2 * kProofBytes);
  {
    const std::lock_guard lock(mutex_);  // before the other side can open its stream
    guests_.emplace(id, std::move(guest));
  }
  if (!SendAll(waiting.socket, WriteVerdict(Verdict::kWelcome, *proof))) {
    Leave(id);
    return true;
  }
  if (waiting.local) {
    ways_.local(std::move(waiting.socket), id);
  } else if (waiting.follows == Follows::kBodies) {
    ways_.bodies(std::move(waiting.socket), id);
  } else {
    ways_.grpc(std::move(waiting.socket));
  }
  return true;
}

void Gate::SweepGuests() {
  const Nanoseconds now = SystemClock().Now();
  std::vector<std::string> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = guests_.begin(); at != guests_.end();) {
      Guest& guest = at->second;
      if (guest.admitted && !guest.leaving) {
        ++at;
        continue;
      }
      pollfd polled{guest.handle.get(), POLLRDHUP, 0};
      const bool closed = poll(&polled, 1, 0) > 0;
      const bool over = now - guest.since >= (guest.leaving ? kLeave : options_.patience);
      if (over && !closed && !guest.leaving && !guest.ended) late.push_back(guest.who);
      if (over || (closed && !guest.claimed)) {
        shutdown(guest.handle.get(), SHUT_RDWR);
        guest.ended = true;
      }
      // While a claimed stream is open, only Leave ends its connection.
      const bool out = (closed || over) && (!guest.claimed || guest.leaving);
      at = out ? guests_.erase(at) : std::next(at);
    }
  }
  for (const std::string& who : late) Refuse(who, "it sent no hello that was accepted in time");
}

}  // namespace penstock::transport
