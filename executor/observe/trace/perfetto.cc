#include "executor/observe/trace/perfetto.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "executor/observe/trace/perfetto.pb.h"
#include "framework/base/strings.h"

namespace penstock::trace {
namespace {

using perfetto::TrackEvent;

constexpr std::uint32_t kSequence = 1;     // all packets are of one sequence, which shares its names
constexpr std::uint32_t kBeginsNames = 1;  // values of sequence_flags
constexpr std::uint32_t kNeedsNames = 2;

struct Place {
  std::size_t lane = 0, event = 0;
};

// Writes packets one after the other; each new name travels with the packet that first uses it.
class PacketWriter {
 public:
  explicit PacketWriter(std::ostream& out) : out_(out) {}

  void Describe(const perfetto::TrackDescriptor& track) {
    perfetto::TracePacket packet;
    *packet.mutable_track_descriptor() = track;
    Write(packet);
  }
  std::uint64_t Category(const std::string& name) {
    return IdOf(categories_, name, [&](std::uint64_t id) {
      auto* added = named_.add_event_categories();
      added->set_iid(id);
      added->set_name(name);
    });
  }
  std::uint64_t EventName(const std::string& name) {
    return IdOf(events_, name, [&](std::uint64_t id) {
      auto* added = named_.add_event_names();
      added->set_iid(id);
      added->set_name(name);
    });
  }
  std::uint64_t FactName(const std::string& name) {
    return IdOf(facts_, name, [&](std::uint64_t id) {
      auto* added = named_.add_debug_annotation_names();
      added->set_iid(id);
      added->set_name(name);
    });
  }
  void Add(std::int64_t time_ns, TrackEvent event) {
    perfetto::TracePacket packet;
    packet.set_timestamp(static_cast<std::uint64_t>(time_ns));
    *packet.mutable_track_event() = std::move(event);
    if (named_.ByteSizeLong() > 0) packet.mutable_interned_data()->Swap(&named_);
    named_.Clear();
    Write(packet);
  }

 private:
  using Ids = std::map<std::string, std::uint64_t>;

  template <typename Added>
  std::uint64_t IdOf(Ids& ids, const std::string& name, const Added& added) {
    const auto [it, is_new] = ids.emplace(name, ids.size() + 1);
    if (is_new) added(it->second);
    return it->second;
  }
  // Concatenated messages of one packet each are a message of all packets.
  void Write(perfetto::TracePacket& packet) {
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(is_first_ ? kBeginsNames | kNeedsNames : kNeedsNames);
    is_first_ = false;
    perfetto::Trace one;
    *one.add_packet() = std::move(packet);
    one.SerializeToOstream(&out_);
  }

  std::ostream& out_;
  perfetto::InternedData named_;  // of the next event
  Ids categories_, events_, facts_;
  bool is_first_ = true;
};

std::string Named(std::string_view what, std::string_view name) {
  return name.empty() ? std::string(what) : StrCat(what, " ", name);
}

std::string TitleOf(const ProcessTrace& process, const Event& event) {
  const std::string_view name = process.Name(event.name);
  switch (event.kind) {
    case EventKind::kOp:
    case EventKind::kCollective:
      return std::string(name);
    case EventKind::kRun:
      return StrCat("block ", event.of);
    case EventKind::kWait:
      return event.peer == 0 ? "wait" : StrCat("wait for ", process.Name(event.peer));
    case EventKind::kMerge:
      return Named(event.of == 0 ? "merge" : "store", name);
    default:
      return Named(NameOf(event.kind), name);
  }
}

std::string CategoryOf(EventKind kind) {
  switch (kind) {
    case EventKind::kOp:
    case EventKind::kRun:
      return "compute";
    case EventKind::kWait:
      return "wait";
    case EventKind::kMerge:
    case EventKind::kUpdate:
    case EventKind::kSave:
      return "server";
    default:
      return "communication";
  }
}

bool IsInstant(EventKind kind) {
  return kind == EventKind::kSend || kind == EventKind::kAsk || kind == EventKind::kArrived ||
         kind == EventKind::kReply;
}

void AddFact(PacketWriter& to, TrackEvent& event, const std::string& name, std::uint64_t value) {
  auto* fact = event.add_debug_annotations();
  fact->set_name_iid(to.FactName(name));
  fact->set_uint_value(value);
}

void AddFacts(PacketWriter& to, const ProcessTrace& process, const Event& event, TrackEvent& out) {
  if (event.kind == EventKind::kOp) {
    AddFact(to, out, "block", event.of);
    AddFact(to, out, "op", event.at);
    return;
  }
  if (event.kind == EventKind::kRun) return;
  if (event.peer != 0 && event.kind != EventKind::kWait) {
    auto* fact = out.add_debug_annotations();
    fact->set_name_iid(to.FactName("peer"));
    fact->set_string_value(std::string(process.Name(event.peer)));
  }
  AddFact(to, out, event.kind == EventKind::kCollective ? "number" : "step", event.step);
  if (event.kind == EventKind::kWait || event.kind == EventKind::kSave) return;
  if (event.kind != EventKind::kCollective) AddFact(to, out, "chunk", event.at);
  if (event.bytes > 0) AddFact(to, out, "bytes", event.bytes);
}

// A lane's events as slices that contain each other or do not touch.
class LaneWriter {
 public:
  LaneWriter(PacketWriter& to, const ProcessTrace& process, std::uint64_t track)
      : to_(to), process_(process), track_(track) {}

  void Write(const Lane& lane, const EndingFlows& ending) {
    std::vector<std::size_t> order(lane.events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // Of two that begin together, the longer one contains the other; of two equal ones, the one that was
    // recorded last.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Event &x = lane.events[a], &y = lane.events[b];
      return std::make_tuple(x.begin_ns, -x.end_ns, b) < std::make_tuple(y.begin_ns, -y.end_ns, a);
    });
    for (const std::size_t i : order) {
      const Event& event = lane.events[i];
      EndBefore(event.begin_ns);
      Begin(event, ending[i]);
    }
    EndBefore(std::numeric_limits<std::int64_t>::max());
  }

 private:
  void Begin(const Event& event, const std::vector<std::uint64_t>& ending) {
    TrackEvent out;
    const bool instant = IsInstant(event.kind);
    out.set_type(instant ? TrackEvent::INSTANT : TrackEvent::SLICE_BEGIN);
    out.set_track_uuid(track_);
    out.add_category_iids(to_.Category(CategoryOf(event.kind)));
    out.set_name_iid(to_.EventName(TitleOf(process_, event)));
    AddFacts(to_, process_, event, out);
    const bool is_last =
        event.kind == EventKind::kArrived || (event.kind == EventKind::kMerge && event.of != 0);
    if (event.flow != 0) is_last ? out.add_terminating_flow_ids(event.flow) : out.add_flow_ids(event.flow);
    for (const std::uint64_t flow : ending) out.add_terminating_flow_ids(flow);
    to_.Add(event.begin_ns, std::move(out));
    // A slice ends no later than the one around it.
    if (!instant) ends_.push_back(ends_.empty() ? event.end_ns : std::min(event.end_ns, ends_.back()));
  }
  void EndBefore(std::int64_t time_ns) {
    for (; !ends_.empty() && ends_.back() <= time_ns; ends_.pop_back()) {
      TrackEvent out;
      out.set_type(TrackEvent::SLICE_END);
      out.set_track_uuid(track_);
      to_.Add(ends_.back(), std::move(out));
    }
  }

  PacketWriter& to_;
  const ProcessTrace& process_;
  const std::uint64_t track_;
  std::vector<std::int64_t> ends_;  // of the open slices
};

// Perfetto takes processes, or threads, with the same number for one. So those of further hosts get numbers
// above all that Linux uses.
std::int64_t NumberOn(std::size_t host, std::int64_t number) {
  constexpr std::int64_t kNumbersOfHost = std::int64_t{1} << 22;
  return static_cast<std::int64_t>(host) * kNumbersOfHost + number;
}

void DescribeProcess(PacketWriter& to, const ProcessTrace& process, std::size_t host, std::uint64_t uuid,
                     int rank) {
  perfetto::TrackDescriptor track;
  track.set_uuid(uuid);
  track.mutable_process()->set_pid(static_cast<std::int32_t>(NumberOn(host, process.pid)));
  track.mutable_process()->set_process_name(process.role.empty() ? StrCat("process ", process.pid)
                                                                 : process.role);
  track.set_sibling_order_rank(rank);
  to.Describe(track);
}

void DescribeThread(PacketWriter& to, const ProcessTrace& process, std::size_t host, const Lane& lane,
                    std::uint64_t uuid, std::uint64_t parent) {
  perfetto::TrackDescriptor track;
  track.set_uuid(uuid);
  track.set_parent_uuid(parent);
  track.mutable_thread()->set_pid(static_cast<std::int32_t>(NumberOn(host, process.pid)));
  track.mutable_thread()->set_tid(NumberOn(host, lane.thread));
  track.mutable_thread()->set_thread_name(lane.thread == process.pid ? "main" : "thread");
  to.Describe(track);
}

}  // namespace

std::vector<std::size_t> OrderOf(const std::vector<ProcessTrace>& job) {
  const auto key = [&](std::size_t i) {
    const std::string& role = job[i].role;
    const int kind = StartsWith(role, "trainer") ? 0 : StartsWith(role, "pserver") ? 1 : 2;
    return std::make_tuple(kind, role.size(), role, job[i].host, job[i].pid);
  };
  std::vector<std::size_t> order(job.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::vector<EndingFlows> FlowsToUpdates(const ProcessTrace& process) {
  std::vector<EndingFlows> ending;
  std::vector<std::pair<const Event*, Place>> found;
  for (std::size_t lane = 0; lane < process.lanes.size(); ++lane) {
    const std::vector<Event>& events = process.lanes[lane].events;
    ending.emplace_back(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool merges = events[i].kind == EventKind::kMerge && events[i].of == 0 && events[i].flow != 0;
      if (merges || events[i].kind == EventKind::kUpdate) found.push_back({&events[i], {lane, i}});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& one) {
      return std::make_tuple(one.first->begin_ns, one.first->kind, one.second.lane, one.second.event);
    };
    return key(a) < key(b);
  });
  std::map<std::pair<NameId, std::uint32_t>, std::vector<std::uint64_t>> merged;  // by parameter and chunk
  for (const auto& [event, at] : found) {
    std::vector<std::uint64_t>& flows = merged[{event->name, event->at}];
    if (event->kind == EventKind::kMerge) {
      flows.push_back(event->flow);
    } else {
      ending[at.lane][at.event] = std::exchange(flows, {});
    }
  }
  return ending;
}

void WritePerfetto(const std::vector<ProcessTrace>& job, std::ostream& out) {
  PacketWriter to(out);
  std::map<std::uint64_t, std::size_t> hosts;
  std::uint64_t uuid = 0;
  int rank = 0;
  for (const std::size_t i : OrderOf(job)) {
    const ProcessTrace& process = job[i];
    const std::uint64_t parent = ++uuid;
    const std::size_t host = hosts.emplace(process.host, hosts.size()).first->second;
    DescribeProcess(to, process, host, parent, rank++);
    const std::vector<EndingFlows> ending = FlowsToUpdates(process);
    for (std::size_t lane = 0; lane < process.lanes.size(); ++lane) {
      DescribeThread(to, process, host, process.lanes[lane], ++uuid, parent);
      LaneWriter(to, process, uuid).Write(process.lanes[lane], ending[lane]);
    }
  }
}

}  // namespace penstock::trace
