#include "transpiler/cost/expect.h"

#include <algorithm>
#include <cmath>

namespace penstock::cost {
namespace {

constexpr double kBackwardShare = 2.0 / 3.0;

Volume Less(const Volume& all, const Volume& part) {
  return {all.messages - part.messages, all.bytes - part.bytes};
}

struct Rules {
  Hiding hiding = Hiding::kBackward;
  bool together = true;
};

Rules RulesOf(Exchange exchange) {
  switch (exchange) {
    case Exchange::kSync:
    case Exchange::kAllReduce:
      return {Hiding::kBackward, true};
    case Exchange::kSyncCommunicator:
      return {Hiding::kNothing, true};
    case Exchange::kAsync:
      return {Hiding::kBackward, false};
    case Exchange::kHalfAsync:
      return {Hiding::kNothing, false};
    case Exchange::kAsyncCommunicator:
    case Exchange::kGeo:
      return {Hiding::kEverything, false};
  }
  return {};
}

class Model {
 public:
  Model(const Job& job, const CostReport& cost, const Network& network)
      : job_(job), cost_(cost), network_(network), rules_(RulesOf(job.exchange)) {
    out_.hiding = rules_.hiding;
    out_.together = rules_.together;
    out_.backward_ms = network.step_ms * kBackwardShare;
  }

  Expectation Run() {
    AddTrainers();
    AddPservers();
    AddExposed();
    const double steps = cost_.steps_per_exchange;
    const double exposed = (out_.exposed_push_ms + out_.exposed_told_ms + out_.exposed_pull_ms) / steps;
    out_.trainer_ms = network_.step_ms + exposed;
    if (rules_.hiding == Hiding::kEverything) {
      out_.trainer_ms = std::max(
          {network_.step_ms, out_.push_trainer.exposed_ms / steps, out_.pull_trainer.exposed_ms / steps});
    }
    out_.step_ms = std::max(out_.trainer_ms, out_.pserver_ms);
    out_.exposed_ms = out_.step_ms - network_.step_ms;
    out_.efficiency = network_.step_ms / out_.step_ms;
    out_.speedup = job_.trainers * out_.efficiency;
    return out_;
  }

 private:
  LinkEnd End(int index, int times, const Volume& overlaps, const Volume& others) const {
    LinkEnd end{.index = index, .times = times, .overlaps = overlaps, .others = others};
    end.overlaps_ms = LinkMs(overlaps, network_);
    end.others_ms = LinkMs(others, network_);
    const double hidden = rules_.hiding == Hiding::kBackward ? out_.backward_ms : 0;
    end.exposed_ms = std::max(0.0, end.overlaps_ms - hidden) + end.others_ms;
    return end;
  }

  static void TakeSlower(LinkEnd& slowest, const LinkEnd& end, bool first) {
    if (first || end.exposed_ms > slowest.exposed_ms) slowest = end;
  }

  void AddTrainers() {
    for (std::size_t i = 0; i < cost_.trainers.size(); ++i) {
      const TrainerCost& trainer = cost_.trainers[i];
      const int index = static_cast<int>(i);
      Volume up = trainer.total.up, overlaps = trainer.total.overlaps;
      up += trainer.ring;  // a job may have both
      overlaps += trainer.ring_overlaps;
      TakeSlower(out_.push_trainer, End(index, 1, overlaps, Less(up, overlaps)), i == 0);
      TakeSlower(out_.pull_trainer, End(index, 1, {}, trainer.total.down), i == 0);
    }
  }

  void AddPservers() {
    for (std::size_t i = 0; i < cost_.pservers.size(); ++i) {
      const Traffic& traffic = cost_.pservers[i].traffic;
      const int index = static_cast<int>(i);
      TakeSlower(out_.push_pserver,
                 End(index, job_.trainers, traffic.overlaps, Less(traffic.up, traffic.overlaps)), i == 0);
      TakeSlower(out_.pull_pserver, End(index, job_.trainers, {}, traffic.down), i == 0);
      AddTelling(cost_.pservers[i], index);
    }
  }

  void AddTelling(const PserverCost& pserver, int index) {
    const double told = LinkMs(pserver.told, network_), heard = LinkMs(pserver.heard, network_);
    if (std::max(told, heard) <= out_.exposed_told_ms) return;
    out_.telling_pserver = index;
    out_.told_ms = told;
    out_.heard_ms = heard;
    out_.exposed_told_ms = std::max(told, heard);
  }

  void AddExposed() {
    out_.exposed_push_ms = out_.push_trainer.exposed_ms;
    out_.exposed_pull_ms = out_.pull_trainer.exposed_ms;
    if (cost_.pservers.empty()) return;
    if (rules_.together) {
      out_.exposed_push_ms = std::max(out_.exposed_push_ms, out_.push_pserver.exposed_ms);
      out_.exposed_pull_ms = std::max(out_.exposed_pull_ms, out_.pull_pserver.exposed_ms);
      return;
    }
    // Counts all traffic, whenever it comes, because the limit is the link's capacity.
    for (std::size_t i = 0; i < cost_.pservers.size(); ++i) {
      const Traffic& traffic = cost_.pservers[i].traffic;
      const double ms =
          std::max(LinkMs(traffic.up, network_), LinkMs(traffic.down, network_)) / cost_.steps_per_exchange;
      if (ms <= out_.pserver_ms) continue;
      out_.pserver_ms = ms;
      out_.busiest_pserver = static_cast<int>(i);
    }
  }

  const Job& job_;
  const CostReport& cost_;
  const Network& network_;
  const Rules rules_;
  Expectation out_;
};

}  // namespace

double LinkMs(const Volume& volume, const Network& network) {
  return static_cast<double>(volume.bytes) * 8 / network.bits_per_second * 1000 +
         static_cast<double>(volume.messages) * network.message_us / 1000;
}

Result<Expectation> Expect(const Job& job, const CostReport& cost, const Network& network) {
  const auto wrong = [](std::string_view what, double value) {
    return InvalidArgument("E-cost-options", "cost: ", what, ", not ", value);
  };
  if (!std::isfinite(network.bits_per_second) || network.bits_per_second <= 0) {
    return wrong("a link carries more than 0 bit/s", network.bits_per_second);
  }
  if (!std::isfinite(network.step_ms) || network.step_ms <= 0) {
    return wrong("a step takes more than 0 ms", network.step_ms);
  }
  if (!std::isfinite(network.message_us) || network.message_us < 0) {
    return wrong("a message takes 0 us or more", network.message_us);
  }
  return Model(job, cost, network).Run();
}

}  // namespace penstock::cost
