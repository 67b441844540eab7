// trace/: the file for Perfetto that a job's traces are merged into.
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "executor/observe/trace/align.h"
#include "executor/observe/trace/perfetto.h"
#include "executor/observe/trace/perfetto.pb.h"
#include "tests/golden/handlers.h"

namespace penstock::test {
namespace {

using trace::Event;
using trace::EventKind;

std::int64_t NumberIn(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

trace::NameId NameIn(trace::ProcessTrace& process, const std::string& name) {
  if (name.empty() || name == "-") return 0;
  if (process.names.empty()) process.names.push_back('\0');
  const auto id = static_cast<trace::NameId>(process.names.size());
  process.names.push_back(static_cast<char>(name.size()));
  process.names.push_back('\0');
  process.names += name;
  return id;
}

// The same text has the same id within a process.
trace::NameId Interned(trace::ProcessTrace& process, const std::string& name) {
  for (const trace::Lane& lane : process.lanes) {
    for (const Event& event : lane.events) {
      for (const trace::NameId id : {event.name, event.peer}) {
        if (id != 0 && process.Name(id) == name) return id;
      }
    }
  }
  return NameIn(process, name);
}

std::optional<EventKind> KindNamed(const std::string& name) {
  for (int kind = 1; kind <= static_cast<int>(trace::kLastKind); ++kind) {
    if (name == trace::NameOf(static_cast<EventKind>(kind))) return static_cast<EventKind>(kind);
  }
  return std::nullopt;
}

// "process 'trainer 0' pid=10 host=1", "thread 10", "KIND BEGIN END NAME peer='pserver 0' flow=7 step=1 ..."
Result<std::vector<trace::ProcessTrace>> ParseJob(const std::string& text) {
  std::vector<trace::ProcessTrace> job;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words;
    std::string word;
    bool quoted = false;
    for (const char c : line + " ") {
      if (c == '\'') quoted = !quoted;
      if (c == ' ' && !quoted && !word.empty()) words.push_back(std::exchange(word, {}));
      if (c != '\'' && (c != ' ' || quoted)) word.push_back(c);
    }
    if (words.empty()) continue;
    const auto fact = [&](const std::string& key) -> std::string {
      for (const std::string& one : words) {
        if (StartsWith(one, key + "=")) return one.substr(key.size() + 1);
      }
      return "";
    };
    if (words[0] == "process") {
      trace::ProcessTrace& process = job.emplace_back();
      process.role = words.at(1) == "-" ? "" : words[1];
      process.pid = NumberIn(fact("pid"));
      process.host = static_cast<std::uint64_t>(NumberIn(fact("host")));
      process.wall_ns = NumberIn(fact("wall"));
    } else if (words[0] == "thread") {
      job.back().lanes.emplace_back().thread = NumberIn(words.at(1));
    } else if (const auto kind = KindNamed(words[0]); kind && words.size() > 3) {
      trace::ProcessTrace& process = job.back();
      const Event event{.begin_ns = NumberIn(words[1]),
                        .end_ns = NumberIn(words[2]),
                        .name = Interned(process, words[3]),
                        .peer = Interned(process, fact("peer")),
                        .flow = static_cast<std::uint64_t>(NumberIn(fact("flow"))),
                        .step = static_cast<std::uint64_t>(NumberIn(fact("step"))),
                        .bytes = static_cast<std::uint64_t>(NumberIn(fact("bytes"))),
                        .at = static_cast<std::uint32_t>(NumberIn(fact("at"))),
                        .of = static_cast<std::uint32_t>(NumberIn(fact("of"))),
                        .kind = *kind};
      process.lanes.back().events.push_back(event);
    } else {
      return InvalidArgument("E-golden", "trace: ", line);
    }
  }
  return job;
}

// The packets of a file, a line each.
std::string PrintPackets(const std::string& bytes) {
  perfetto::Trace file;
  if (!file.ParseFromString(bytes)) return "the file cannot be parsed\n";
  std::map<std::uint64_t, std::string> tracks, events, categories, facts;
  std::string out;
  for (const perfetto::TracePacket& packet : file.packet()) {
    for (const auto& one : packet.interned_data().event_names()) events[one.iid()] = one.name();
    for (const auto& one : packet.interned_data().event_categories()) categories[one.iid()] = one.name();
    for (const auto& one : packet.interned_data().debug_annotation_names()) facts[one.iid()] = one.name();
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      if (track.has_process()) {
        tracks[track.uuid()] = track.process().process_name();
        out += StrCat("process ", track.process().process_name(), ", pid ", track.process().pid(), ", rank ",
                      track.sibling_order_rank(), "\n");
      } else {
        tracks[track.uuid()] = StrCat(tracks[track.parent_uuid()], "/", track.thread().tid());
        out += StrCat("thread ", tracks[track.uuid()], " ", track.thread().thread_name(), "\n");
      }
      continue;
    }
    const perfetto::TrackEvent& event = packet.track_event();
    out += StrCat("  ", packet.timestamp(), " ");
    if (event.type() == perfetto::TrackEvent::SLICE_END) {
      out += "end\n";
      continue;
    }
    out += StrCat(event.type() == perfetto::TrackEvent::INSTANT ? "instant" : "begin", " \"",
                  events[event.name_iid()], "\" ", categories[event.category_iids(0)]);
    for (const auto& fact : event.debug_annotations()) {
      out += StrCat(" ", facts[fact.name_iid()], "=");
      out += fact.has_string_value() ? StrCat("\"", fact.string_value(), "\"") : StrCat(fact.uint_value());
    }
    for (const std::uint64_t flow : event.flow_ids()) out += StrCat(" flow ", flow);
    for (const std::uint64_t flow : event.terminating_flow_ids()) out += StrCat(" ends flow ", flow);
    out += "\n";
  }
  return out;
}

}  // namespace

Result<GoldenOutputs> RunTrace(const GoldenFile&, const GoldenCase& one) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, RequireSection(one, "in"));
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<trace::ProcessTrace> job, ParseJob(text));
  trace::AlignClocks(job);
  std::ostringstream file;
  trace::WritePerfetto(job, file);
  return GoldenOutputs{{"out", "", PrintPackets(file.str())}};
}

}  // namespace penstock::test
