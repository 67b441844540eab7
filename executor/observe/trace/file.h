// The file of one process's trace. The process writes it through shared memory mappings, so whatever was
// recorded is in the file however the process ends. Little-endian.
//
//   FileHeader                 4,096 bytes
//   names                      1 MiB; a name is its offset here: two bytes of length, then the text
//   segments                   256 KiB each: a SegmentHeader, then events of one lane
//
// A lane is the events of one thread, or of several, each of which began after the one before had ended. It
// has at most kSegmentsOfLane segments; after that, its oldest segment is used again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "executor/observe/trace/event.h"

namespace penstock::trace {

constexpr std::size_t kNamesBytes = std::size_t{1} << 20;
constexpr std::size_t kSegmentBytes = std::size_t{256} << 10;
constexpr std::size_t kEventsOfSegment =
    kSegmentBytes / sizeof(Event) - 1;       // one event's room for the header
constexpr std::size_t kSegmentsOfLane = 32;  // 131,040 events
constexpr std::size_t kSegmentsMax = 2048;   // of a file: 512 MiB

struct FileHeader {
  static constexpr std::uint64_t kMagic = 0x31304352544e5350;  // "PSNTRC01"
  static constexpr std::size_t kBytes = 4096;

  std::uint64_t magic = kMagic;
  std::uint32_t event_bytes = sizeof(Event), segment_bytes = kSegmentBytes, names_bytes = kNamesBytes;
  std::uint32_t header_bytes = kBytes;
  std::uint64_t host = 0;  // equal for processes with the same monotonic clock
  std::int64_t pid = 0;
  std::int64_t wall_ns = 0;                // the wall clock minus the monotonic clock, when the file was made
  std::atomic<std::uint64_t> segments{0};  // in the file
  std::atomic<std::uint64_t> dropped{0};   // events for which no segment could be made
  std::atomic<std::uint64_t> names_end{1};  // offset after the last name
  std::array<char, 256> role{}, job{}, host_name{};
};
static_assert(sizeof(FileHeader) <= FileHeader::kBytes);

struct SegmentHeader {
  std::atomic<std::uint64_t> events{0};  // complete ones
  std::uint64_t lane = 0;
  std::int64_t thread = 0;   // the system's number
  std::uint64_t number = 0;  // counts the lane's segments, used again or not
  std::array<std::uint64_t, 4> unused = {};
};
static_assert(sizeof(SegmentHeader) == sizeof(Event));

constexpr std::size_t kSegmentsAt = FileHeader::kBytes + kNamesBytes;

}  // namespace penstock::trace
