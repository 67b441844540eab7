#include "executor/collective/rendezvous/store_table.h"

#include <algorithm>

namespace penstock::rendezvous {
namespace {

constexpr std::size_t kNamedMax = 8;    // ranks that a report names
constexpr std::size_t kRefusedMax = 3;  // refusals that it repeats

StoreTable::Answer Failed(int rank, std::uint64_t id, const Status& why) {
  return {rank, WriteFailed(StoreVerb::kFailed, id, why)};
}

// "rank 2 (a) has not come", "rank 2 (a), rank 3 (b) and 5 more have not come"
std::string HaveNot(const std::vector<std::string>& names, std::string_view what) {
  const std::size_t named = std::min(names.size(), kNamedMax);
  std::string text = Join(std::span(names).first(named), ", ");
  if (named < names.size()) text += StrCat(" and ", names.size() - named, " more");
  return StrCat(text, names.size() == 1 ? " has not " : " have not ", what);
}

}  // namespace

StoreTable::StoreTable(std::string job, std::vector<std::string> addresses)
    : job_(std::move(job)), addresses_(std::move(addresses)), ranks_(addresses_.size()) {}

std::string StoreTable::NameOf(int rank) const {
  return StrCat("rank ", rank, " (", addresses_[static_cast<std::size_t>(rank)], ")");
}

Status StoreTable::Refuse(Status why) {
  if (refused_.size() == kRefusedMax) refused_.erase(refused_.begin());
  refused_.push_back(why.message());
  return why;
}

Status StoreTable::Enter(const Hello& hello) {
  const int ranks = static_cast<int>(ranks_.size());
  const std::string who = StrCat("rank ", hello.rank, " (", hello.address, ", process ", hello.process, ")");
  if (hello.job != job_) {
    return Refuse(FailedPrecondition("E-rendezvous-job", who, " is of job ", Quote(hello.job), ", ",
                                     NameOf(0), " of job ", Quote(job_)));
  }
  if (hello.ranks != ranks) {
    return Refuse(FailedPrecondition("E-rendezvous-world", who, " is one of ", hello.ranks, " ranks, ",
                                     NameOf(0), " one of ", ranks));
  }
  if (hello.rank < 0 || hello.rank >= ranks) {
    return Refuse(FailedPrecondition("E-rendezvous-world", who, ": there are ", ranks, " ranks"));
  }
  const std::string& address = addresses_[static_cast<std::size_t>(hello.rank)];
  if (At(hello.rank).stage != Stage::kAbsent) {
    return Refuse(
        FailedPrecondition("E-rendezvous-rank", who, " claims the number of ", NameOf(hello.rank),
                           ", process ", At(hello.rank).process,
                           At(hello.rank).stage == Stage::kPresent ? "" : ", which was there and has ended"));
  }
  if (hello.address != address) {
    return Refuse(FailedPrecondition("E-rendezvous-addresses", who, " has another address than ",
                                     Quote(address), ", which ", NameOf(0), " has for it"));
  }
  if (hello.addresses != AddressesHash(addresses_)) {
    return Refuse(FailedPrecondition("E-rendezvous-addresses", who, " has another list of the ranks' ",
                                     "addresses than ", NameOf(0)));
  }
  At(hello.rank) = {.stage = Stage::kPresent, .process = hello.process};
  ++came_;
  return OkStatus();
}

StoreTable::Answers StoreTable::Take(int rank, StoreMessage message) {
  switch (message.verb) {
    case StoreVerb::kSet:
      return Set(rank, std::move(message));
    case StoreVerb::kAdd:
      return {Add(rank, message)};
    case StoreVerb::kHello:
    case StoreVerb::kGet:
    case StoreVerb::kBarrier:
      return AwaitOrAnswer(rank, std::move(message));
    case StoreVerb::kAsk: {
      const auto waiter = waiters_.find({rank, message.id});
      if (waiter == waiters_.end()) return {};  // it has been answered
      return {{rank, {.verb = StoreVerb::kWaiting, .id = message.id, .value = WhatLacks(waiter->second)}}};
    }
    case StoreVerb::kForget:
      waiters_.erase({rank, message.id});
      return {};
    case StoreVerb::kLeave:
      return Lose(rank, ReadFailed(message));
    default:
      return {};  // only the store sends these verbs: ignored
  }
}

StoreTable::Answers StoreTable::Set(int rank, StoreMessage message) {
  const auto at = values_.find(message.key);
  const std::size_t before = at == values_.end() ? 0 : at->second.size();
  if (value_bytes_ - before + message.value.size() > kStoreBytesMax ||
      (at == values_.end() && values_.size() == kStoreKeysMax)) {
    return {Failed(
        rank, message.id,
        FailedPrecondition("E-rendezvous-full", "the store is full: it holds ", values_.size(), " keys with ",
                           value_bytes_, " bytes, at most ", kStoreKeysMax, " keys with ", kStoreBytesMax))};
  }
  value_bytes_ += message.value.size() - before;
  Answers answers = AnswerAll(StoreVerb::kGet, message.key, message.value);
  answers.push_back({rank, {.verb = StoreVerb::kAnswer, .id = message.id}});
  values_[message.key] = std::move(message.value);
  return answers;
}

StoreTable::Answer StoreTable::Add(int rank, const StoreMessage& message) {
  auto at = counters_.find(message.key);
  if (at == counters_.end() && counters_.size() == kStoreKeysMax) {
    return Failed(
        rank, message.id,
        FailedPrecondition("E-rendezvous-full", "the store is full: it has ", kStoreKeysMax, " counters"));
  }
  if (at == counters_.end()) at = counters_.emplace(message.key, 0).first;
  // Adds unsigned numbers, so that an overflow wraps around.
  at->second = static_cast<std::int64_t>(static_cast<std::uint64_t>(at->second) +
                                         static_cast<std::uint64_t>(message.number));
  return {rank, {.verb = StoreVerb::kAnswer, .id = message.id, .number = at->second}};
}

StoreTable::Answers StoreTable::AwaitOrAnswer(int rank, StoreMessage message) {
  const auto value = message.verb == StoreVerb::kGet ? values_.find(message.key) : values_.end();
  if (value != values_.end())
    return {{rank, {.verb = StoreVerb::kAnswer, .id = message.id, .value = value->second}}};
  if (message.verb == StoreVerb::kBarrier && IsAtBarrier(rank, message.key)) {
    return {Failed(rank, message.id,
                   FailedPrecondition("E-rendezvous-barrier", NameOf(rank), " is at barrier ",
                                      Quote(message.key), " already"))};
  }
  const Waiter waiter{message.verb, std::move(message.key)};
  waiters_[{rank, message.id}] = waiter;
  if (waiter.verb == StoreVerb::kHello && AllCame() && present() == came_)
    return AnswerAll(StoreVerb::kHello, {}, {});
  if (waiter.verb == StoreVerb::kBarrier) {
    const auto here = std::count_if(waiters_.begin(), waiters_.end(), [&](const auto& entry) {
      return entry.second.verb == StoreVerb::kBarrier && entry.second.key == waiter.key;
    });
    if (here == static_cast<std::ptrdiff_t>(ranks_.size()))
      return AnswerAll(StoreVerb::kBarrier, waiter.key, {});
  }
  return FailHopeless();
}

bool StoreTable::IsAtBarrier(int rank, const std::string& name) const {
  for (auto at = waiters_.lower_bound({rank, 0}); at != waiters_.end() && at->first.first == rank; ++at) {
    if (at->second.verb == StoreVerb::kBarrier && at->second.key == name) return true;
  }
  return false;
}

// Ignores the key of a hello: it is the job's name, which Enter has checked.
StoreTable::Answers StoreTable::AnswerAll(StoreVerb verb, const std::string& key, const std::string& value) {
  Answers answers;
  std::erase_if(waiters_, [&](const auto& entry) {
    const auto& [id, waiter] = entry;
    if (waiter.verb != verb || (verb != StoreVerb::kHello && waiter.key != key)) return false;
    answers.push_back({id.first, {.verb = StoreVerb::kAnswer, .id = id.second, .value = value}});
    return true;
  });
  return answers;
}

StoreTable::Answers StoreTable::Lose(int rank, const Status& why) {
  Rank& at = At(rank);
  if (at.stage != Stage::kPresent) return {};  // it has already left or died
  at.stage = why.ok() ? Stage::kLeft : Stage::kGone;
  if (!why.ok() && !first_end_)
    first_end_ = Unavailable("E-rendezvous-gone", NameOf(rank), " is gone: ", why.message());
  std::erase_if(waiters_, [&](const auto& entry) { return entry.first.first == rank; });
  return FailHopeless();
}

std::optional<Status> StoreTable::Hopeless(const Waiter& waiter) const {
  if (first_end_) return first_end_;
  // Other ranks may still set the key. But a rank that has left comes to no barrier.
  if (waiter.verb == StoreVerb::kGet) return std::nullopt;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (At(rank).stage == Stage::kLeft)
      return Unavailable("E-rendezvous-gone", NameOf(rank), " has left the job");
  }
  return std::nullopt;
}

StoreTable::Answers StoreTable::FailHopeless() {
  Answers answers;
  std::erase_if(waiters_, [&](const auto& entry) {
    const std::optional<Status> why = Hopeless(entry.second);
    if (why) answers.push_back(Failed(entry.first.first, entry.first.second, *why));
    return why.has_value();
  });
  return answers;
}

std::string StoreTable::NotCome() const {
  std::vector<std::string> names;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (At(rank).stage == Stage::kAbsent) names.push_back(NameOf(rank));
  }
  std::string text = names.empty() ? std::string() : HaveNot(names, "come");
  for (const std::string& why : refused_) text += StrCat(text.empty() ? "" : "; ", "refused: ", why);
  return text;
}

std::string StoreTable::WhatLacks(const Waiter& waiter) const {
  if (waiter.verb == StoreVerb::kHello) return NotCome();
  if (waiter.verb == StoreVerb::kGet) return "no rank has set it";
  std::vector<std::string> names;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (!IsAtBarrier(rank, waiter.key)) names.push_back(NameOf(rank));
  }
  return HaveNot(names, "come to it");
}

int StoreTable::present() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                        [](const Rank& at) { return at.stage == Stage::kPresent; }));
}

}  // namespace penstock::rendezvous
