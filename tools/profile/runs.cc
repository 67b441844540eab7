#include "tools/profile/runs.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace penstock::profile {
namespace {

using trace::Event;
using trace::EventKind;

bool IsCounted(const Event& event) {
  return event.kind == EventKind::kOp || event.kind == EventKind::kRun || event.kind == EventKind::kWait;
}

// The events of a lane that are ops, runs and waits, each before those that it contains. Of two equal ones,
// the one that was recorded last contains the other.
std::vector<std::size_t> OuterFirst(const std::vector<Event>& events) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (IsCounted(events[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::make_tuple(events[a].begin_ns, -events[a].end_ns, b) <
           std::make_tuple(events[b].begin_ns, -events[b].end_ns, a);
  });
  return order;
}

// Assigns the events of a lane to the runs that contain them.
class LaneReader {
 public:
  explicit LaneReader(const trace::ProcessTrace& process) : process_(process) {}

  void Read(const std::vector<Event>& events) {
    for (const std::size_t i : OuterFirst(events)) {
      const Event& event = events[i];
      while (!open_.empty() && open_.back().end_ns <= event.begin_ns && event.end_ns > open_.back().end_ns)
        open_.pop_back();
      Add(event);
    }
    open_.clear();
  }
  std::vector<Run> Take() { return std::move(runs_); }

 private:
  // An event that contains those which follow; op: in the last run; -1: it is a run or a wait.
  struct Open {
    std::int64_t end_ns = 0;
    int op = -1;
  };

  void Add(const Event& event) {
    const bool in_run = !open_.empty();
    if (event.kind == EventKind::kRun) {
      if (!in_run) runs_.push_back({static_cast<int>(event.of), event.begin_ns, event.end_ns, {}});
      // Within a run, the time belongs to the op around it.
      open_.push_back({event.end_ns, in_run ? open_.back().op : -1});
      return;
    }
    if (!in_run) return;
    std::vector<OpRun>& ops = runs_.back().ops;
    const int outer = open_.back().op;
    const std::int64_t ns = std::min(event.end_ns, open_.back().end_ns) - event.begin_ns;
    if (event.kind == EventKind::kWait) {
      if (outer >= 0) ops[static_cast<std::size_t>(outer)].waited_ns += ns;
      return;
    }
    if (outer >= 0) ops[static_cast<std::size_t>(outer)].self_ns -= ns;
    ops.push_back({process_.Name(event.name), static_cast<int>(event.of), static_cast<int>(event.at),
                   event.begin_ns, ns, 0});
    open_.push_back({event.end_ns, static_cast<int>(ops.size()) - 1});
  }

  const trace::ProcessTrace& process_;
  std::vector<Open> open_;
  std::vector<Run> runs_;
};

}  // namespace

std::vector<Run> RunsOf(const trace::ProcessTrace& process) {
  LaneReader reader(process);
  for (const trace::Lane& lane : process.lanes) reader.Read(lane.events);
  return reader.Take();
}

}  // namespace penstock::profile
