#include "executor/observe/trace/align.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace penstock::trace {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();  // no bound

// bounds[a][b]: offset(a) - offset(b) is at most this.
using Bounds = std::vector<std::vector<std::int64_t>>;

void Lower(std::int64_t& bound, std::int64_t to) { bound = std::min(bound, to); }

// The least mean weight of a cycle (Karp, 1978); kNone if there is no cycle. Rounded down.
std::int64_t LeastMeanOfCycles(const Bounds& bounds) {
  const std::size_t n = bounds.size();
  std::vector<std::vector<std::int64_t>> least(n + 1, std::vector<std::int64_t>(n, kNone));  // by edges, end
  least[0].assign(n, 0);
  for (std::size_t edges = 1; edges <= n; ++edges) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a != b && bounds[a][b] != kNone && least[edges - 1][a] != kNone)
          Lower(least[edges][b], least[edges - 1][a] + bounds[a][b]);
      }
    }
  }
  std::optional<double> mean;
  for (std::size_t b = 0; b < n; ++b) {
    if (least[n][b] == kNone) continue;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t edges = 0; edges < n; ++edges) {
      if (least[edges][b] == kNone) continue;
      largest = std::max(largest,
                         static_cast<double>(least[n][b] - least[edges][b]) / static_cast<double>(n - edges));
    }
    mean = std::min(mean.value_or(largest), largest);
  }
  return mean ? static_cast<std::int64_t>(*mean) - (*mean < 0 ? 1 : 0) : kNone;
}

// Adds the bound between `a` and `b` to closed bounds.
void AddBound(Bounds& bounds, std::size_t a, std::size_t b, std::int64_t bound) {
  const std::size_t n = bounds.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (bounds[i][a] != kNone && bounds[b][j] != kNone)
        Lower(bounds[i][j], bounds[i][a] + bound + bounds[b][j]);
    }
  }
}

// Relaxes the bounds until they can be satisfied, and adds all bounds that follow from them.
void Close(Bounds& bounds) {
  const std::size_t n = bounds.size();
  const std::int64_t mean = LeastMeanOfCycles(bounds);
  for (std::size_t a = 0; a < n && mean < 0; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (a != b && bounds[a][b] != kNone) bounds[a][b] -= mean;
    }
  }
  for (std::size_t via = 0; via < n; ++via) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (bounds[a][via] != kNone && bounds[via][b] != kNone)
          Lower(bounds[a][b], bounds[a][via] + bounds[via][b]);
      }
    }
  }
}

// Host 0 has the offset 0. An offset without a bound on one side is that of the wall clock, or as near to it
// as the other bound allows.
void SetOffsets(Bounds bounds, const std::vector<std::int64_t>& walls, std::vector<HostClock>& clocks) {
  const std::size_t n = bounds.size();
  Close(bounds);
  for (std::size_t host = 1; host < n; ++host) {
    const std::int64_t most = bounds[host][0], least = bounds[0][host] == kNone ? -kNone : -bounds[0][host];
    if (most != kNone && least != -kNone) continue;
    const std::int64_t offset = std::clamp(walls[host] - walls[0], least, most);
    AddBound(bounds, host, 0, offset);
    AddBound(bounds, 0, host, -offset);
  }
  // The largest and the least offsets both satisfy all bounds, and so does the mean of the two.
  for (std::size_t host = 1; host < n; ++host) {
    const std::int64_t most = bounds[host][0], least = -bounds[0][host];
    clocks[host].offset_ns = least + (most - least) / 2;
  }
}

// A message's end on one host.
struct Point {
  std::int64_t time_ns = 0;
  bool departs = false;
  std::size_t message = 0;
};

std::vector<std::vector<Point>> PointsOf(const std::vector<Message>& messages, std::size_t hosts) {
  std::vector<std::vector<Point>> points(hosts);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    points[messages[i].from].push_back({messages[i].sent_ns, true, i});
    points[messages[i].to].push_back({messages[i].arrived_ns, false, i});
  }
  for (auto& of_host : points) {
    std::sort(of_host.begin(), of_host.end(), [](const Point& a, const Point& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.departs < b.departs;
    });
  }
  return points;
}

// Goes through the hosts' points in causal order. Points that wait for each other, which no true clock can
// produce, are taken as they come.
void AddSteps(const std::vector<Message>& messages, std::vector<HostClock>& clocks) {
  const std::vector<std::vector<Point>> points = PointsOf(messages, clocks.size());
  std::vector<std::size_t> next(clocks.size(), 0);
  std::vector<std::optional<std::int64_t>> sent(messages.size());
  const auto take = [&](std::size_t host, const Point& point) {
    HostClock& clock = clocks[host];
    const std::int64_t time = clock.Aligned(point.time_ns);
    if (point.departs) {
      sent[point.message] = time;
    } else if (const auto departed = sent[point.message]; departed && *departed > time) {
      const std::int64_t before = clock.steps.empty() ? 0 : clock.steps.back().more_ns;
      clock.steps.push_back({point.time_ns, before + (*departed - time)});
    }
    ++next[host];
  };
  for (bool forced = true; forced;) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t host = 0; host < clocks.size(); ++host) {
        for (; next[host] < points[host].size(); moved = true) {
          const Point& point = points[host][next[host]];
          if (!point.departs && !sent[point.message]) break;
          take(host, point);
        }
      }
    }
    forced = false;
    for (std::size_t host = 0; host < clocks.size() && !forced; ++host) {
      if (next[host] == points[host].size()) continue;
      take(host, points[host][next[host]]);
      forced = true;
    }
  }
}

// Where a message leaves and arrives, the first time each.
struct Ends {
  std::optional<std::pair<std::size_t, std::int64_t>> sent, merged, asked, replied, arrived;
};

void KeepFirst(std::optional<std::pair<std::size_t, std::int64_t>>& end, std::size_t host,
               std::int64_t time) {
  if (!end || time < end->second) end = {host, time};
}

// Of an operation that no rank ends before all have begun it, the last begin and the first end by host.
struct Meeting {
  std::int64_t last_begin_ns = 0, first_end_ns = 0;
};
using Meetings = std::map<std::uint64_t, std::map<std::size_t, Meeting>>;  // by flow and host

void AddToMeeting(const Event& event, std::size_t host, Meetings& meetings) {
  const auto [found, is_new] = meetings[event.flow].try_emplace(host, Meeting{event.begin_ns, event.end_ns});
  if (is_new) return;
  found->second.last_begin_ns = std::max(found->second.last_begin_ns, event.begin_ns);
  found->second.first_end_ns = std::min(found->second.first_end_ns, event.end_ns);
}

// Each host tells each other one that it has begun.
void AddMeetings(const Meetings& meetings, std::vector<Message>& messages) {
  for (const auto& [flow, hosts] : meetings) {
    for (const auto& [from, begun] : hosts) {
      for (const auto& [to, ended] : hosts) {
        if (from != to) messages.push_back({from, to, begun.last_begin_ns, ended.first_end_ns});
      }
    }
  }
}

std::vector<Message> MessagesOf(const std::vector<ProcessTrace>& job, const std::vector<std::size_t>& hosts) {
  std::unordered_map<std::uint64_t, Ends> flows;
  Meetings meetings;
  for (std::size_t p = 0; p < job.size(); ++p) {
    for (const Lane& lane : job[p].lanes) {
      for (const Event& event : lane.events) {
        if (event.flow == 0) continue;
        if (event.kind == EventKind::kCollective) {
          if (event.of == 1) AddToMeeting(event, hosts[p], meetings);
          continue;
        }
        Ends& ends = flows[event.flow];
        if (event.kind == EventKind::kSend) KeepFirst(ends.sent, hosts[p], event.end_ns);
        if (event.kind == EventKind::kMerge) KeepFirst(ends.merged, hosts[p], event.begin_ns);
        if (event.kind == EventKind::kAsk) KeepFirst(ends.asked, hosts[p], event.end_ns);
        if (event.kind == EventKind::kReply) KeepFirst(ends.replied, hosts[p], event.end_ns);
        if (event.kind == EventKind::kArrived) KeepFirst(ends.arrived, hosts[p], event.begin_ns);
      }
    }
  }
  std::vector<Message> messages;
  const auto add = [&](const auto& from, const auto& to) {
    if (from && to && from->first != to->first)
      messages.push_back({from->first, to->first, from->second, to->second});
  };
  for (const auto& [flow, ends] : flows) {
    add(ends.sent, ends.merged);
    add(ends.asked, ends.replied);
    add(ends.replied, ends.arrived);
  }
  AddMeetings(meetings, messages);
  // In an order that does not depend on the hash table, so that equal files give equal output.
  std::sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
    return std::tie(a.sent_ns, a.arrived_ns, a.from, a.to) < std::tie(b.sent_ns, b.arrived_ns, b.from, b.to);
  });
  return messages;
}

}  // namespace

std::int64_t HostClock::Aligned(std::int64_t time_ns) const {
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), time_ns,
                       [](std::int64_t time, const Step& step) { return time < step.from_ns; });
  return time_ns + offset_ns + (after == steps.begin() ? 0 : std::prev(after)->more_ns);
}

std::vector<HostClock> SolveClocks(const std::vector<Message>& messages,
                                   const std::vector<std::int64_t>& walls) {
  const std::size_t n = walls.size();
  Bounds bounds;
  for (std::size_t host = 0; host < n; ++host) bounds.emplace_back(n, kNone)[host] = 0;
  for (const Message& message : messages)
    Lower(bounds[message.from][message.to], message.arrived_ns - message.sent_ns);
  std::vector<HostClock> clocks(n);
  SetOffsets(std::move(bounds), walls, clocks);
  AddSteps(messages, clocks);
  return clocks;
}

void AlignClocks(std::vector<ProcessTrace>& job) {
  std::map<std::uint64_t, std::size_t> numbers;
  std::vector<std::size_t> hosts;
  std::vector<std::int64_t> walls;
  for (const ProcessTrace& process : job) {
    hosts.push_back(numbers.emplace(process.host, numbers.size()).first->second);
    if (walls.size() < numbers.size()) walls.push_back(process.wall_ns);
  }
  const std::vector<HostClock> clocks = SolveClocks(MessagesOf(job, hosts), walls);
  std::int64_t first = kNone;
  for (std::size_t p = 0; p < job.size(); ++p) {
    for (const Lane& lane : job[p].lanes)
      for (const Event& event : lane.events) Lower(first, clocks[hosts[p]].Aligned(event.begin_ns));
  }
  for (std::size_t p = 0; p < job.size(); ++p) {
    for (Lane& lane : job[p].lanes) {
      for (Event& event : lane.events) {
        event.begin_ns = clocks[hosts[p]].Aligned(event.begin_ns) - first;
        event.end_ns = clocks[hosts[p]].Aligned(event.end_ns) - first;
      }
    }
  }
}

}  // namespace penstock::trace
