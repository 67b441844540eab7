// trace/: the file for Perfetto that a job's traces are merged into.
#include <map>
#include <sstream>

#include "executor/observe/trace/align.h"
#include "executor/observe/trace/perfetto.h"
#include "executor/observe/trace/perfetto.pb.h"
#include "tests/golden/handlers.h"
#include "tests/golden/trace_text.h"

namespace penstock::test {
namespace {

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
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<trace::ProcessTrace> job, ParseTraces(text));
  trace::AlignClocks(job);
  std::ostringstream file;
  trace::WritePerfetto(job, file);
  return GoldenOutputs{{"out", "", PrintPackets(file.str())}};
}

}  // namespace penstock::test
