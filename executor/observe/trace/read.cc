#include "executor/observe/trace/read.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "executor/observe/trace/file.h"
#include "framework/base/files.h"
#include "framework/base/strings.h"

namespace penstock::trace {
namespace {

namespace fs = std::filesystem;

// The fields of a header, at fixed places of the file.
struct Fields {
  std::uint64_t magic;
  std::uint32_t event_bytes, segment_bytes, names_bytes, header_bytes;
  std::uint64_t host;
  std::int64_t pid, wall_ns;
  std::uint64_t segments, dropped, names_end;
  std::array<char, 256> role, job, host_name;
};
static_assert(sizeof(Fields) == sizeof(FileHeader));

struct Segment {
  std::uint64_t events, lane;
  std::int64_t thread;
  std::uint64_t number;
};

template <typename T>
T At(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::string TextOf(const std::array<char, 256>& field) {
  return {field.data(),
          static_cast<std::size_t>(std::find(field.begin(), field.end(), '\0') - field.begin())};
}

Status NoTrace(const std::string& path, std::string_view why) {
  return InvalidArgument("E-trace-file", "trace: ", path, " ", why);
}

// Whether the event's fields can be what a Tracer wrote.
bool IsValid(const Event& event, std::uint64_t names_end) {
  return event.kind > EventKind::kNone && event.kind <= kLastKind && event.begin_ns >= 0 &&
         event.begin_ns <= event.end_ns && event.name < names_end && event.peer < names_end;
}

// The events of each lane, its segments by their numbers.
void ReadSegments(const std::string& bytes, const Fields& header, ProcessTrace& into) {
  std::map<std::uint64_t, std::map<std::uint64_t, std::size_t>> lanes;  // lane, number: offset
  for (std::uint64_t i = 0; i < header.segments; ++i) {
    const std::size_t offset = kSegmentsAt + i * kSegmentBytes;
    const auto segment = At<Segment>(bytes, offset);
    if (segment.events > 0 && segment.events <= kEventsOfSegment)
      lanes[segment.lane][segment.number] = offset;
  }
  for (const auto& [number, segments] : lanes) {
    Lane& lane = into.lanes.emplace_back();
    for (const auto& [order, offset] : segments) {
      const auto segment = At<Segment>(bytes, offset);
      lane.thread = segment.thread;
      for (std::uint64_t i = 1; i <= segment.events; ++i) {
        const auto event = At<Event>(bytes, offset + i * sizeof(Event));
        IsValid(event, header.names_end) ? lane.events.push_back(event) : void(++into.invalid);
      }
    }
  }
}

}  // namespace

std::string_view ProcessTrace::Name(NameId id) const {
  if (id == 0 || id + std::size_t{2} > names.size()) return {};
  const auto low = static_cast<unsigned char>(names[id]), high = static_cast<unsigned char>(names[id + 1]);
  return std::string_view(names).substr(id + std::size_t{2}, low + (std::size_t{high} << 8));
}

Result<ProcessTrace> ReadTrace(const std::string& path) {
  const Result<std::string> file = ReadFile(path);
  if (!file.ok()) return InvalidArgument("E-trace-file", "trace: ", file.status().message());
  const std::string& bytes = *file;
  if (bytes.size() < sizeof(Fields) || At<std::uint64_t>(bytes, 0) != FileHeader::kMagic)
    return NoTrace(path, "is not a trace that a process of this version has recorded");
  const auto header = At<Fields>(bytes, 0);
  if (header.event_bytes != sizeof(Event) || header.segment_bytes != kSegmentBytes ||
      header.names_bytes != kNamesBytes || header.header_bytes != FileHeader::kBytes ||
      header.segments > kSegmentsMax || header.names_end > kNamesBytes) {
    return NoTrace(path, "has a header that no process of this version writes");
  }
  const std::size_t whole = kSegmentsAt + header.segments * kSegmentBytes;
  if (bytes.size() < whole) {
    return NoTrace(path,
                   StrCat("is cut off: it has ", bytes.size(), " of ", whole, " bytes; copy the file again"));
  }
  ProcessTrace read{.file = path,
                    .role = TextOf(header.role),
                    .job = TextOf(header.job),
                    .host_name = TextOf(header.host_name),
                    .host = header.host,
                    .pid = header.pid,
                    .wall_ns = header.wall_ns,
                    .lanes = {},
                    .names = bytes.substr(FileHeader::kBytes, header.names_end),
                    .dropped = header.dropped};
  ReadSegments(bytes, header, read);
  return read;
}

Result<std::vector<ProcessTrace>> ReadFolder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (StartsWith(name, "trace.") && !EndsWith(name, ".part")) paths.push_back(entry.path().string());
  }
  if (error) return InvalidArgument("E-trace-folder", "trace: ", folder, ": ", error.message());
  if (paths.empty()) {
    return InvalidArgument("E-trace-folder", "trace: ", folder,
                           " holds no traces (files named trace.HOST.PID)")
        .With("start the job with --trace DIR, or the process with PENSTOCK_TRACE=DIR");
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ProcessTrace> job;
  for (const std::string& path : paths) {
    PENSTOCK_ASSIGN_OR_RETURN(ProcessTrace read, ReadTrace(path));
    job.push_back(std::move(read));
    if (job.back().job == job.front().job) continue;
    return InvalidArgument("E-trace-jobs", "trace: ", folder, " holds traces of two jobs: ", job.front().file,
                           " is of \"", job.front().job, "\", ", path, " of \"", job.back().job, "\"")
        .With("move the files of one of them to a folder of their own");
  }
  return job;
}

}  // namespace penstock::trace
