// The memory of a flight recorder: one block, which the parent process may share. It lets the parent read a
// process's last events while the process hangs or is stopped, or after it was killed.
//
//   FlightMemory memory = FlightMemory::FromEnvironment();    // the launcher's block, else a private one
//   FlightBlock* block = memory.block();                      // null: no memory could be mapped
//
// python/penstock/_src/launch/flight.py reads the block: little-endian, no pointers, every changing
// field is a 64-bit word.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::observe {

// One event in six words. `stamp` is the event's number plus 1 if the other words belong to it, 0 while they
// are being written.
struct FlightEvent {
  std::atomic<std::uint64_t> stamp, time_ns, step, bytes, names, kind;  // names: variable, peer << 32
};

struct FlightBlock {
  static constexpr std::uint64_t kMagic = 0x3130544c46534e50;  // "PNSFLT01"
  static constexpr std::size_t kEvents = 4096;
  static constexpr std::size_t kNamesBytes = std::size_t{1} << 20;

  std::atomic<std::uint64_t> magic;  // written last
  std::uint32_t events = kEvents;    // capacity
  std::uint32_t event_bytes = sizeof(FlightEvent);
  std::uint32_t events_at = 0, names_at = 0;  // offsets from the start of the block
  std::uint32_t names_bytes = kNamesBytes, unused = 0;
  std::atomic<std::uint64_t> owner;        // id of the writing process; 0: none yet
  std::atomic<std::uint64_t> next;         // number of the next event
  std::atomic<std::uint64_t> progress_ns;  // when training last made progress, by the monotonic clock
  std::array<char, 456> kinds;             // names of the kinds, from 0 on, each followed by a newline
  std::array<FlightEvent, kEvents> ring;
  // A name is its offset: two bytes of length, then the text. 0 is no name.
  std::array<char, kNamesBytes> names;
};
static_assert(offsetof(FlightBlock, ring) == 512 && sizeof(FlightEvent) == 48);

class FlightMemory {
 public:
  // Memory of this process alone. Unwritten pages take no memory.
  static FlightMemory Own();
  // Maps the file in PENSTOCK_FLIGHT_FD ("descriptor:inode", of the block's size) if it exists and no other
  // process has claimed it; else returns Own().
  static FlightMemory FromEnvironment();

  FlightMemory(FlightMemory&& other) noexcept;
  FlightMemory& operator=(FlightMemory&&) = delete;
  ~FlightMemory();
  FlightBlock* block() const { return block_; }

 private:
  explicit FlightMemory(void* mapped);

  FlightBlock* block_ = nullptr;
};

}  // namespace penstock::observe
