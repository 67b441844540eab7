#include "executor/collective/rendezvous/store.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "framework/base/log.h"

namespace penstock::rendezvous {
namespace {

// How often a wait checks the clock and whether it is interrupted. An answer wakes it at once.
constexpr auto kPoll = std::chrono::milliseconds(50);
// The time that rank 0 has to say what a wait lacks.
constexpr auto kAskLimit = std::chrono::seconds(5);
// The time that a connection has to close in order.
constexpr auto kCloseLimit = std::chrono::seconds(1);

Status CheckOptions(const StoreOptions& options) {
  if (options.rank >= 0 && options.rank < static_cast<int>(options.addresses.size())) return OkStatus();
  return InvalidArgument("E-rendezvous-facts", "rank ", options.rank, " is out of range; there are ",
                         options.addresses.size(), " ranks");
}

Status WasCancelled() { return Cancelled("E-rendezvous-cancelled", "the rendezvous was cancelled"); }

}  // namespace

Store::Store(StoreOptions options)
    : options_(std::move(options)), clock_(options_.clock == nullptr ? SystemClock() : *options_.clock) {}

Result<std::unique_ptr<Store>> Store::Join(Transport& transport, StoreOptions options) {
  PENSTOCK_RETURN_IF_ERROR(CheckOptions(options));
  if (!options.report) options.report = [](const std::string& line) { Log(LogSeverity::kInfo, line); };
  std::unique_ptr<Store> store(new Store(std::move(options)));
  if (const Status joined = store->Connect(transport); !joined.ok()) {
    store->Leave(joined);
    return joined;
  }
  return store;
}

Status Store::Connect(Transport& transport) {
  if (rank() == 0) {
    PENSTOCK_ASSIGN_OR_RETURN(
        server_, StoreServer::Listen(transport, options_.job, options_.addresses, options_.report));
  }
  connection_ = transport.Connect(options_.addresses.front(), *this);
  const Hello hello{.job = options_.job,
                    .rank = rank(),
                    .ranks = ranks(),
                    .addresses = AddressesHash(options_.addresses),
                    .process = getpid(),
                    .address = options_.addresses[static_cast<std::size_t>(rank())]};
  return Ask(WriteHello(0, hello), StrCat("for all ", ranks(), " ranks to come"), options_.start_limit)
      .status();
}

Store::~Store() { Leave(OkStatus()); }

void Store::Leave(const Status& why) {
  if (std::exchange(left_, true) || connection_ == nullptr) return;
  connection_->Send(Encode(WriteFailed(StoreVerb::kLeave, 0, why)));
  if (server_ != nullptr) server_->WaitUntilAlone(options_.linger);
  std::unique_lock lock(mutex_);
  const bool heard = heard_;
  lock.unlock();
  // Close would let a connection that was never established retry forever; Abort ends it.
  if (heard) connection_->Close();
  lock.lock();
  if (!heard || !changed_.wait_for(lock, kCloseLimit, [&] { return closed_.has_value(); })) {
    lock.unlock();
    connection_->Abort();
    lock.lock();
  }
  changed_.wait(lock, [&] { return closed_.has_value(); });
}

void Store::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

Status Store::CheckKey(const std::string& key) {
  if (!key.empty() && key.size() <= kKeyBytesMax) return OkStatus();
  return InvalidArgument("E-rendezvous-limit", "a key has ", key.size(), " bytes; it may have 1 to ",
                         kKeyBytesMax);
}

Status Store::Set(const std::string& key, std::string value) {
  PENSTOCK_RETURN_IF_ERROR(CheckKey(key));
  if (value.size() > kValueBytesMax) {
    return InvalidArgument("E-rendezvous-limit", "the value of key ", Quote(key), " has ", value.size(),
                           " bytes; it may have ", kValueBytesMax);
  }
  return Ask({.verb = StoreVerb::kSet, .key = key, .value = std::move(value)},
             StrCat("to set key ", Quote(key)))
      .status();
}

Result<std::string> Store::Get(const std::string& key) {
  PENSTOCK_RETURN_IF_ERROR(CheckKey(key));
  PENSTOCK_ASSIGN_OR_RETURN(StoreMessage answer,
                            Ask({.verb = StoreVerb::kGet, .key = key}, StrCat("for key ", Quote(key))));
  return std::move(answer.value);
}

Result<std::int64_t> Store::Add(const std::string& counter, std::int64_t by) {
  PENSTOCK_RETURN_IF_ERROR(CheckKey(counter));
  PENSTOCK_ASSIGN_OR_RETURN(
      const StoreMessage answer,
      Ask({.verb = StoreVerb::kAdd, .number = by, .key = counter}, StrCat("to add to ", Quote(counter))));
  return answer.number;
}

Status Store::Barrier(const std::string& name) {
  PENSTOCK_RETURN_IF_ERROR(CheckKey(name));
  return Ask({.verb = StoreVerb::kBarrier, .key = name}, StrCat("at barrier ", Quote(name))).status();
}

std::string Store::Keeper() const {
  return StrCat("rank 0 (", options_.addresses.front(), "), which keeps the store,");
}

Result<StoreMessage> Store::Ask(StoreMessage request, const std::string& what, Nanoseconds limit) {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return WasCancelled();
    request.id = next_id_++;
    calls_[request.id];
  }
  const std::uint64_t id = request.id;
  const Nanoseconds began = clock_.Now();
  connection_->Send(Encode(request));
  observe::ReportTimes reports(options_.report_after);
  for (;;) {
    if (std::optional<Result<StoreMessage>> end = Poll(id)) return *std::move(end);
    const Nanoseconds waited = clock_.Now() - began;
    if (waited < limit && waited < reports.next()) continue;
    const std::string lacks = WhatLacks(id);
    if (std::optional<Result<StoreMessage>> end = Poll(id)) return *std::move(end);  // answered meanwhile
    if (waited >= limit) {
      Forget(id);
      return DeadlineExceeded("E-rendezvous-timeout", "rank ", rank(), " waited ", WholeSeconds(waited),
                              " s ", what, ": ", lacks);
    }
    options_.report(StrCat("waiting ", WholeSeconds(waited), " s ", what, ": ", lacks));
    while (reports.next() <= waited) reports.Pass();
  }
}

std::optional<Result<StoreMessage>> Store::Poll(std::uint64_t id) {
  bool interrupted = options_.interrupted && options_.interrupted();
  std::unique_lock lock(mutex_);
  Call& call = calls_.at(id);
  const auto over = [&] { return call.answered || closed_.has_value() || cancelled_; };
  if (!interrupted) changed_.wait_for(lock, kPoll, over);
  interrupted = interrupted || cancelled_;
  if (call.answered) {
    StoreMessage answer = std::move(call.answer);
    calls_.erase(id);
    if (answer.verb == StoreVerb::kFailed) return Result<StoreMessage>(ReadFailed(answer));
    return Result<StoreMessage>(std::move(answer));
  }
  if (closed_.has_value()) {
    calls_.erase(id);
    return Result<StoreMessage>(*closed_);
  }
  lock.unlock();
  if (!interrupted) return std::nullopt;
  Forget(id);
  return Result<StoreMessage>(WasCancelled());
}

std::string Store::WhatLacks(std::uint64_t id) {
  connection_->Send(Encode({.verb = StoreVerb::kAsk, .id = id}));
  std::unique_lock lock(mutex_);
  Call& call = calls_.at(id);
  // Without a connection there is nobody to answer.
  if (heard_) changed_.wait_for(lock, kAskLimit, [&] { return call.waits_for || call.answered || closed_; });
  if (!call.waits_for) return StrCat(Keeper(), " does not answer");
  return *std::exchange(call.waits_for, std::nullopt);
}

void Store::Forget(std::uint64_t id) {
  connection_->Send(Encode({.verb = StoreVerb::kForget, .id = id}));
  const std::lock_guard lock(mutex_);
  calls_.erase(id);
}

void Store::OnMessage(const std::shared_ptr<Connection>& from, Message message) {
  Result<StoreMessage> read = Decode(message);
  if (!read.ok()) return from->Abort();
  const std::lock_guard lock(mutex_);
  heard_ = true;
  const auto call = calls_.find(read->id);
  if (call == calls_.end()) return;  // the call no longer waits
  if (read->verb == StoreVerb::kWaiting) {
    call->second.waits_for = std::move(read->value);
  } else if (read->verb == StoreVerb::kAnswer || read->verb == StoreVerb::kFailed) {
    call->second.answered = true;
    call->second.answer = *std::move(read);
  }
  changed_.notify_all();
}

void Store::OnClosed(const std::shared_ptr<Connection>&, const Status& why) {
  const std::lock_guard lock(mutex_);
  // An error that a retry cannot solve, such as a wrong token, keeps its own id.
  const bool ended = why.ok() || why.code() == StatusCode::kUnavailable;
  closed_ = ended ? Unavailable("E-rendezvous-gone", Keeper(), " is gone",
                                why.ok() ? "" : StrCat(": ", why.message()))
                  : Status(why).In(StrCat("rank 0 (", options_.addresses.front(), ")"));
  changed_.notify_all();
}

}  // namespace penstock::rendezvous
