// Empty in a build without Gloo, which uses gloo_absent.cc.
#ifdef PENSTOCK_WITH_GLOO
#include "executor/collective/gloo/gloo_links.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "executor/transport/address.h"
#include "executor/transport/descriptor.h"

namespace penstock::collective {
namespace {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

constexpr milliseconds kUnlimited = std::chrono::hours(24 * 365);
constexpr milliseconds kLingerLimit(300);
constexpr milliseconds kCloseLimit(1000);
constexpr std::uint64_t kNoticeSlot = 100;

// Carries an error of the store through Gloo, as an exception.
struct StoreFailure {
  Status status;
};

// Gives Gloo the caller's store, with a prefix for all keys.
class StoreOfGloo : public gloo::rendezvous::Store {
 public:
  StoreOfGloo(const KeyValues& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    if (Status status = store_.set(prefix_ + key, std::string(data.begin(), data.end())); !status.ok())
      throw StoreFailure{std::move(status)};
  }
  std::vector<char> get(const std::string& key) override {
    const Result<std::string> value = store_.get(prefix_ + key);
    if (!value.ok()) throw StoreFailure{value.status()};
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  const KeyValues& store_;
  const std::string prefix_;
};

using Buffer = std::unique_ptr<UnboundBuffer>;

// If the buffer of a message is destroyed, Gloo delivers no later message of that connection. Notices must
// arrive even after an operation was given up, so they have connections of their own.
class GlooLinks : public Links {
 public:
  GlooLinks(std::shared_ptr<gloo::Context> context, std::shared_ptr<gloo::Context> notices, int rank,
            int size)
      : context_(std::move(context)), notices_(std::move(notices)), rank_(rank), size_(size) {}
  ~GlooLinks() override { Close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Transit> Send(int to, Channel channel, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transit> Receive(int from, Channel channel, std::span<std::byte> bytes) override;
  void Listen(NoticeHandler handler) override;
  void Tell(int to, const Notice& notice) override;
  void Interrupt() override;
  void Linger(const std::function<bool()>& heard) override;
  void Close() override;

 private:
  class GlooTransit;
  struct Told {
    std::unique_ptr<Notice> notice;
    Buffer buffer;
  };

  void ServeNotices();
  LinkEnd PostNoticeReceive(Notice& notice);
  template <typename Start>
  std::unique_ptr<Transit> Begin(bool sends, void* data, std::size_t bytes, const Start& start);

  std::mutex mutex_;
  std::shared_ptr<gloo::Context> context_, notices_;  // null after Close, or if there is one rank
  const int rank_, size_;
  std::set<GlooTransit*> transits_;
  std::vector<Told> told_;
  NoticeHandler handler_;
  Buffer listening_;
  bool interrupted_ = false, closing_ = false;
  bool deaf_ = false;  // set late in Close, so ranks that close at the same time hear each other
  std::thread listener_;
};

class GlooLinks::GlooTransit : public Transit {
 public:
  GlooTransit(GlooLinks& links, bool sends) : links_(links), sends_(sends) {}
  ~GlooTransit() override {
    {
      const std::lock_guard lock(links_.mutex_);
      links_.transits_.erase(this);
    }
    buffer_.reset();  // returns once Gloo's thread no longer uses the memory
  }

  LinkEnd Wait() override {
    if (buffer_ == nullptr) return unsent_;
    try {
      const bool done = sends_ ? buffer_->waitSend(kUnlimited) : buffer_->waitRecv(kUnlimited);
      return done ? LinkEnd::kDone : LinkEnd::kInterrupted;
    } catch (const std::exception&) {
      return LinkEnd::kBroken;
    }
  }
  void Interrupt() {
    if (buffer_ == nullptr) return;
    sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
  }

 private:
  friend class GlooLinks;
  GlooLinks& links_;
  const bool sends_;
  Buffer buffer_;
  LinkEnd unsent_ = LinkEnd::kInterrupted;  // the result of Wait without a buffer
};

template <typename Start>
std::unique_ptr<Transit> GlooLinks::Begin(bool sends, void* data, std::size_t bytes, const Start& start) {
  auto transit = std::make_unique<GlooTransit>(*this, sends);
  {
    const std::lock_guard lock(mutex_);
    if (interrupted_ || closing_) return transit;
    transit->buffer_ = context_->createUnboundBuffer(data, bytes);
    transits_.insert(transit.get());
  }
  try {
    start(*transit->buffer_);
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    transit->buffer_.reset();
    transit->unsent_ = LinkEnd::kBroken;
  }
  return transit;
}

std::unique_ptr<Transit> GlooLinks::Send(int to, Channel channel, std::span<const std::byte> bytes) {
  void* const data = const_cast<std::byte*>(bytes.data());  // Gloo only reads it
  return Begin(true, data, bytes.size(),
               [&](UnboundBuffer& buffer) { buffer.send(to, static_cast<std::uint64_t>(channel)); });
}

std::unique_ptr<Transit> GlooLinks::Receive(int from, Channel channel, std::span<std::byte> bytes) {
  return Begin(false, bytes.data(), bytes.size(),
               [&](UnboundBuffer& buffer) { buffer.recv(from, static_cast<std::uint64_t>(channel)); });
}

void GlooLinks::Listen(NoticeHandler handler) {
  handler_ = std::move(handler);
  if (context_ != nullptr) listener_ = std::thread([this] { ServeNotices(); });
}

// Returns kInterrupted if the links are closing.
LinkEnd GlooLinks::PostNoticeReceive(Notice& notice) {
  std::vector<int> others;
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) others.push_back(other);
  }
  const std::lock_guard lock(mutex_);
  if (deaf_) return LinkEnd::kInterrupted;
  try {
    listening_ = notices_->createUnboundBuffer(&notice, sizeof(notice));
    listening_->recv(others, kNoticeSlot);
  } catch (const std::exception&) {
    return LinkEnd::kBroken;
  }
  return LinkEnd::kDone;
}

void GlooLinks::ServeNotices() {
  Notice notice;
  LinkEnd posted = LinkEnd::kDone;
  // A receive may fail because one connection ends; the others still deliver notices.
  while ((posted = PostNoticeReceive(notice)) == LinkEnd::kDone) {
    int from = -1;
    try {
      if (!listening_->waitRecv(&from, kUnlimited)) break;
      handler_(from, notice);
    } catch (const std::exception&) {
      continue;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    listening_.reset();
  }
  if (posted != LinkEnd::kBroken) return;
  // Gloo would retry that connection forever, so no notice of another rank could arrive any more.
  Notice lost{.kind = Notice::kFailed, .id = "E-collective-peer-lost"};
  std::strncpy(lost.message, "a rank is gone: its connection ended while it sent a notice",
               sizeof(lost.message) - 1);
  handler_(rank_, lost);
}

void GlooLinks::Tell(int to, const Notice& notice) {
  const std::lock_guard lock(mutex_);
  if (closing_ || notices_ == nullptr) return;
  Told told{.notice = std::make_unique<Notice>(notice), .buffer = nullptr};
  try {
    told.buffer = notices_->createUnboundBuffer(told.notice.get(), sizeof(Notice));
    told.buffer->send(to, kNoticeSlot);
    told_.push_back(std::move(told));
  } catch (const std::exception&) {
    // That rank has ended, so there is nobody to tell.
  }
}

void GlooLinks::Interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  for (GlooTransit* const transit : transits_) transit->Interrupt();
}

void GlooLinks::Linger(const std::function<bool()>& heard) {
  constexpr milliseconds kLook(5);
  for (milliseconds waited(0); waited < kLingerLimit && !heard(); waited += kLook)
    poll(nullptr, 0, static_cast<int>(kLook.count()));
}

void GlooLinks::Close() {
  std::vector<Told> told;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    told.swap(told_);
  }
  const auto began = std::chrono::steady_clock::now();
  for (Told& one : told) {
    const auto spent = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
    try {
      if (spent >= kCloseLimit) break;
      one.buffer->waitSend(kCloseLimit - spent);
    } catch (const std::exception&) {
      // That rank has already left, or does not answer.
    }
  }
  told.clear();
  {
    const std::lock_guard lock(mutex_);
    deaf_ = true;
    if (listening_ != nullptr) listening_->abortWaitRecv();
  }
  if (listener_.joinable()) listener_.join();
  context_.reset();
  notices_.reset();
}

// Checks that `address` belongs to this machine. Gloo checks it too, but leaks memory if it does not.
Status CheckOwnAddress(const std::string& address) {
  const std::string any_port =
      address.find(':') == std::string::npos ? address + ":0" : "[" + address + "]:0";
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<transport::SocketAddress> found,
                            transport::Resolve(any_port, /*to_listen=*/true));
  int error = 0;
  for (const transport::SocketAddress& one : found) {
    const transport::Descriptor probe(socket(one.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe.valid() && bind(probe.get(), one.get(), one.size) == 0) return OkStatus();
    error = errno;
  }
  return Unavailable("E-collective-join", "cannot listen at ", address, ": ", std::strerror(error));
}

// While this object exists, threads that the calling thread starts have SCHED_BATCH: they do not preempt
// others when they wake up.
class StartsBatchThreads {
 public:
  StartsBatchThreads() : policy_(sched_getscheduler(0)) {
    if (policy_ == SCHED_OTHER) Set(SCHED_BATCH);
  }
  ~StartsBatchThreads() {
    if (policy_ == SCHED_OTHER) Set(SCHED_OTHER);
  }
  StartsBatchThreads(const StartsBatchThreads&) = delete;
  StartsBatchThreads& operator=(const StartsBatchThreads&) = delete;

 private:
  // Sets the policy of the calling thread. If that is forbidden, new threads get the policy they would get
  // anyway.
  static void Set(int policy) {
    const sched_param no_priority{};
    static_cast<void>(sched_setscheduler(0, policy, &no_priority));
  }

  const int policy_;
};

// A sending thread holds its pair's lock while it writes to the socket. Gloo's thread, when a message wakes
// it, polls until it gets that lock; if it preempted the sender, it would waste a whole time slice (4 ms).
std::shared_ptr<gloo::transport::Device> DeviceAt(const std::string& address) {
  const StartsBatchThreads batch;
  return gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
}

// Gloo's pairs wait five times as long as their timeout, so a fifth of the limit is set.
Result<std::unique_ptr<Links>> Connect(const GlooRendezvous& rendezvous) {
  PENSTOCK_RETURN_IF_ERROR(CheckOwnAddress(rendezvous.address));
  std::shared_ptr<gloo::transport::Device> device = DeviceAt(rendezvous.address);
  std::shared_ptr<gloo::rendezvous::Context> contexts[2];
  for (const bool of_notices : {false, true}) {
    auto& context = contexts[of_notices ? 1 : 0];
    context = std::make_shared<gloo::rendezvous::Context>(rendezvous.rank, rendezvous.size);
    context->setTimeout(std::chrono::duration_cast<milliseconds>(rendezvous.time_limit) / 5);
    StoreOfGloo store(rendezvous.store, of_notices ? "notices-" : "");
    context->connectFullMesh(store, device);
  }
  return std::unique_ptr<Links>(std::make_unique<GlooLinks>(std::move(contexts[0]), std::move(contexts[1]),
                                                            rendezvous.rank, rendezvous.size));
}

void IgnoreBrokenPipes() {
  struct sigaction current {};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

}  // namespace

bool HasGloo() { return true; }

Result<std::unique_ptr<Links>> ConnectGloo(const GlooRendezvous& rendezvous) {
  if (rendezvous.size == 1)
    return std::unique_ptr<Links>(std::make_unique<GlooLinks>(nullptr, nullptr, 0, 1));
  IgnoreBrokenPipes();
  try {
    return Connect(rendezvous);
  } catch (const StoreFailure& failure) {
    return failure.status;
  } catch (const std::exception& error) {
    return Unavailable("E-collective-join", "rank ", rendezvous.rank, " at ", rendezvous.address,
                       " cannot connect to the ", rendezvous.size - 1, " others: ", error.what());
  }
}

}  // namespace penstock::collective
#endif
