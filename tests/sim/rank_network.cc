#include "tests/sim/rank_network.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace penstock::test {

using collective::Channel;
using collective::LinkEnd;
using collective::Notice;
using collective::Transit;

// One direction between two ranks of a group: messages arrive in order, then possibly the end of the link.
class RankNetwork::Link {
 public:
  struct Sent {
    const std::byte* from = nullptr;  // null: the bytes cannot be fetched any more
    std::vector<std::byte> bytes;     // bytes that have left the sender
    std::size_t size = 0;
    bool arrived = false;
    bool announced = false;  // it is sent when the receiver asks for it

    void Leave() {
      if (from != nullptr && bytes.empty()) bytes.assign(from, from + size);
    }
  };
  // A message is in the receiver's memory as soon as it has arrived and its receive has started.
  struct Lane {
    std::deque<std::shared_ptr<Sent>> sent;
    std::deque<std::span<std::byte>> wanted;  // the memory of started receives; null: the receive is over

    void Arrive(std::size_t number) {
      sent[number]->arrived = !sent[number]->bytes.empty();
      Deliver(number);
    }
    void Deliver(std::size_t number) {
      if (sent.size() <= number || wanted.size() <= number || !sent[number]->arrived) return;
      const std::vector<std::byte>& bytes = sent[number]->bytes;
      const std::span<std::byte> to = wanted[number];
      if (bytes.size() <= to.size()) std::memcpy(to.data(), bytes.data(), bytes.size());
    }
  };

  Lane lanes[3];        // by channel
  Nanoseconds last{0};  // arrival time of the last message
  bool broken = false;  // its end has arrived
  bool cut = false;     // messages in transit never arrive
};

// The links of one rank.
class RankLinks : public collective::Links {
 public:
  RankLinks(RankNetwork& net, std::string group, int mine, std::vector<int> members,
            std::map<std::string, std::map<int, RankLinks*>>& all)
      : net_(net), group_(std::move(group)), mine_(mine), members_(std::move(members)), all_(all) {
    all_[group_][mine_] = this;
  }
  ~RankLinks() override { Close(); }

  int rank() const override {
    return static_cast<int>(std::find(members_.begin(), members_.end(), mine_) - members_.begin());
  }
  int size() const override { return static_cast<int>(members_.size()); }
  std::unique_ptr<Transit> Send(int to, Channel channel, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transit> Receive(int from, Channel channel, std::span<std::byte> bytes) override;
  void Listen(NoticeHandler handler) override;
  void Tell(int to, const Notice& notice) override;
  void Interrupt() override { interrupted_ = true; }
  void Linger(const std::function<bool()>& heard) override;
  void Close() override;

 private:
  class Outgoing;
  class Incoming;

  RankNetwork::Link& To(int rank) { return net_.LinkOf(group_, mine_, Member(rank)); }
  RankNetwork::Link& From(int rank) { return net_.LinkOf(group_, Member(rank), mine_); }
  int Member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  // The arrival time of a message sent now: not before that of an earlier one.
  Nanoseconds ArrivalOn(RankNetwork::Link& link) {
    link.last = std::max(link.last, net_.now_ + net_.Delay());
    return link.last - net_.now_;
  }
  bool Ended(const RankNetwork::Link& link) const { return interrupted_ || link.broken || net_.dead(mine_); }
  LinkEnd EndOf() const { return interrupted_ ? LinkEnd::kInterrupted : LinkEnd::kBroken; }

  RankNetwork& net_;
  const std::string group_;
  const int mine_;
  const std::vector<int> members_;
  std::map<std::string, std::map<int, RankLinks*>>& all_;
  void Hear(int from, const Notice& notice);

  NoticeHandler handler_;
  std::vector<std::pair<int, Notice>> unheard_;  // notices before a listener is set
  bool interrupted_ = false, closed_ = false;
};

class RankLinks::Outgoing : public Transit {
 public:
  Outgoing(RankLinks& links, RankNetwork::Link& back, std::shared_ptr<RankNetwork::Link::Sent> sent)
      : links_(links), back_(back), sent_(std::move(sent)) {}
  ~Outgoing() override { sent_->from = nullptr; }
  LinkEnd Wait() override {
    links_.net_.Await(links_.mine_, [&] { return !sent_->bytes.empty() || links_.Ended(back_); });
    return sent_->bytes.empty() ? links_.EndOf() : LinkEnd::kDone;
  }

 private:
  RankLinks& links_;
  RankNetwork::Link& back_;  // from the receiver: ends with it
  const std::shared_ptr<RankNetwork::Link::Sent> sent_;
};

class RankLinks::Incoming : public Transit {
 public:
  Incoming(RankLinks& links, RankNetwork::Link& link, RankNetwork::Link::Lane& lane, std::size_t number,
           std::size_t size)
      : links_(links), link_(link), lane_(lane), number_(number), size_(size) {}
  ~Incoming() override { lane_.wanted[number_] = {}; }
  LinkEnd Wait() override {
    const auto came = [&] { return lane_.sent.size() > number_ && lane_.sent[number_]->arrived; };
    links_.net_.Await(links_.mine_, [&] { return came() || links_.Ended(link_); });
    if (!came()) return links_.EndOf();
    // A rank must not ask for less than is sent.
    return lane_.sent[number_]->bytes.size() > size_ ? LinkEnd::kBroken : LinkEnd::kDone;
  }

 private:
  RankLinks& links_;
  RankNetwork::Link& link_;
  RankNetwork::Link::Lane& lane_;
  const std::size_t number_, size_;
};

// Half of the messages are sent at once, the other half when the receiver asks for them, as in Gloo.
std::unique_ptr<Transit> RankLinks::Send(int to, Channel channel, std::span<const std::byte> bytes) {
  RankNetwork::Link& link = To(to);
  RankNetwork::Link::Lane& lane = link.lanes[static_cast<std::size_t>(channel)];
  const auto sent = std::make_shared<RankNetwork::Link::Sent>();
  sent->from = bytes.data();
  sent->size = bytes.size();
  const std::size_t number = lane.sent.size();
  lane.sent.push_back(sent);
  if (!net_.dead(mine_)) {
    if (net_.Random(2) == 0) sent->Leave();
    net_.After(ArrivalOn(link), [&link, &lane, sent, number] {
      if (link.cut) return;
      if (lane.wanted.size() > number) sent->Leave();
      sent->announced = true;
      lane.Arrive(number);
    });
  }
  return std::make_unique<Outgoing>(*this, From(to), sent);
}

std::unique_ptr<Transit> RankLinks::Receive(int from, Channel channel, std::span<std::byte> bytes) {
  RankNetwork::Link& link = From(from);
  RankNetwork::Link::Lane& lane = link.lanes[static_cast<std::size_t>(channel)];
  const std::size_t number = lane.wanted.size();
  lane.wanted.push_back(bytes);
  lane.Deliver(number);
  if (lane.sent.size() > number && lane.sent[number]->announced && !lane.sent[number]->arrived) {
    net_.After(net_.Delay(), [&net = net_, &link, &lane, number, sender = Member(from)] {
      if (link.cut || net.dead(sender)) return;
      lane.sent[number]->Leave();
      lane.Arrive(number);
    });
  }
  return std::make_unique<Incoming>(*this, link, lane, number, bytes.size());
}

void RankLinks::Listen(NoticeHandler handler) {
  handler_ = std::move(handler);
  for (const auto& [from, notice] : std::exchange(unheard_, {})) handler_(from, notice);
}

void RankLinks::Hear(int from, const Notice& notice) {
  if (handler_) return handler_(from, notice);
  unheard_.emplace_back(from, notice);
}

void RankLinks::Tell(int to, const Notice& notice) {
  if (net_.dead(mine_) || closed_) return;
  RankNetwork::Link& link = To(to);
  const int from = rank(), receiver = Member(to);
  net_.After(ArrivalOn(link), [&all = all_, &link, group = group_, receiver, from, notice] {
    const auto found = all[group].find(receiver);
    if (!link.cut && found != all[group].end()) found->second->Hear(from, notice);
  });
}

void RankLinks::Linger(const std::function<bool()>& heard) {
  const Nanoseconds until = net_.now_ + std::chrono::milliseconds(300);
  net_.After(std::chrono::milliseconds(300), [] {});
  net_.Await(mine_, [&] { return heard() || net_.now_ >= until; });
}

void RankLinks::Close() {
  if (closed_) return;
  closed_ = true;
  all_[group_].erase(mine_);
  for (const int member : members_) {
    if (member == mine_) continue;
    RankNetwork::Link& link = net_.LinkOf(group_, mine_, member);
    net_.After(ArrivalOn(link), [&link] { link.broken = true; });
  }
}

RankNetwork::RankNetwork(std::uint64_t seed, int ranks)
    : random_(seed),
      turns_(static_cast<std::size_t>(ranks)),
      dead_(static_cast<std::size_t>(ranks)),
      finished_(static_cast<std::size_t>(ranks)),
      waits_for_(static_cast<std::size_t>(ranks)) {
  for (sem_t& turn : turns_) sem_init(&turn, 0, &turn == &turns_.front() ? 1 : 0);
}

RankNetwork::~RankNetwork() {
  for (sem_t& turn : turns_) sem_destroy(&turn);
}

bool RankNetwork::RunAll(const std::function<void(int rank)>& main) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(dead_.size()); ++rank) {
    threads.emplace_back([this, &main, rank] {
      AwaitTurn(rank);
      main(rank);
      finished_[static_cast<std::size_t>(rank)] = true;
      HandOver();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return !hung_;
}

void RankNetwork::KillAt(int rank, Nanoseconds when) {
  After(when, [this, rank] { Kill(rank); });
}

std::unique_ptr<collective::Links> RankNetwork::LinksOf(const std::string& group, int rank,
                                                        std::vector<int> members) {
  std::set<int>& joined = joined_[group];
  joined.insert(rank);
  const std::size_t all = members.size();
  auto links = std::make_unique<RankLinks>(*this, group, rank, std::move(members), open_);
  Await(rank, [&] { return joined.size() == all; });
  return links;
}

void RankNetwork::Await(int rank, const std::function<bool()>& ready) {
  const auto self = static_cast<std::size_t>(rank);
  // Others may run first even if it is ready: ranks are not equally fast.
  if (ready() && Random(4) != 0) return;
  waits_for_[self] = &ready;
  HandOver();
  AwaitTurn(rank);
  waits_for_[self] = nullptr;
}

void RankNetwork::AwaitTurn(int rank) {
  while (sem_wait(&turns_[static_cast<std::size_t>(rank)]) != 0) {
  }  // interrupted by a signal
}

// Chooses the rank that runs next; the clock advances only when no rank can run.
void RankNetwork::HandOver() {
  while (true) {
    std::vector<int> ready;
    bool all_finished = true;
    for (std::size_t each = 0; each < dead_.size(); ++each) {
      if (finished_[each]) continue;
      all_finished = false;
      if (hung_ || waits_for_[each] == nullptr || (*waits_for_[each])())
        ready.push_back(static_cast<int>(each));
    }
    if (all_finished) return;
    if (!ready.empty()) {
      sem_post(&turns_[static_cast<std::size_t>(ready[Random(ready.size())])]);
      return;
    }
    if (events_.empty()) {
      hung_ = true;
      continue;
    }
    const auto next = events_.begin();
    now_ = next->first.first;
    const std::function<void()> what = std::move(next->second);
    events_.erase(next);
    what();
  }
}

RankNetwork::Link& RankNetwork::LinkOf(const std::string& group, int from, int to) {
  std::unique_ptr<Link>& link = links_[{group, from, to}];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->broken = dead(from);
  }
  return *link;
}

void RankNetwork::After(Nanoseconds delay, std::function<void()> what) {
  events_.emplace(std::pair(now_ + delay, made_++), std::move(what));
}

// Its sent messages arrive on some links and not on others.
void RankNetwork::Kill(int rank) {
  dead_[static_cast<std::size_t>(rank)] = true;
  for (auto& [key, link] : links_) {
    if (std::get<1>(key) != rank) continue;
    link->cut = Random(2) == 0;
    const Nanoseconds end = std::max(link->last, now_ + Delay());
    After(end - now_, [&link = *link] { link.broken = true; });
  }
}

}  // namespace penstock::test
