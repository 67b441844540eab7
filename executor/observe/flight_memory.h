// The memory of a flight recorder: one block, which whoever started the process may share, so that the last
// events of a process can be read while it hangs, is stopped, or after it was killed.
//
//   FlightMemory memory = FlightMemory::FromEnvironment();    // the launcher's, else this process's own
//   FlightBlock* block = memory.block();                      // null: there is no memory
//
// The block is read by python/penstock/distributed/launch/flight.py: little-endian, no pointers, everything
// that changes is a 64-bit word.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::observe {

// One event in six words. `stamp` is the event's number plus 1 when the others belong to it, 0 while they are
// written.
struct FlightEvent {
  std::atomic<std::uint64_t> stamp, time_ns, step, bytes, names, kind;  // names: variable, peer << 32
};

struct FlightBlock {
  static constexpr std::uint64_t kMagic = 0x3130544c46534e50;  // "PNSFLT01"
  static constexpr std::size_t kEvents = 4096;
  static constexpr std::size_t kNamesBytes = std::size_t{1} << 20;

  std::atomic<std::uint64_t> magic;  // written last
  std::uint32_t events = kEvents;    // how many there are
  std::uint32_t event_bytes = sizeof(FlightEvent);
  std::uint32_t events_at = 0, names_at = 0;  // offsets from the block's begin
  std::uint32_t names_bytes = kNamesBytes, unused = 0;
  std::atomic<std::uint64_t> owner;        // the process that writes it; 0: none yet
  std::atomic<std::uint64_t> next;         // number of the next event
  std::atomic<std::uint64_t> progress_ns;  // when training moved on last, by the monotonic clock
  std::array<char, 456> kinds;             // names of the kinds, from 0 on, each with a line's end
  std::array<FlightEvent, kEvents> ring;
  // A name is its offset: two bytes of length, then the text. 0 is no name.
  std::array<char, kNamesBytes> names;
};
static_assert(offsetof(FlightBlock, ring) == 512 && sizeof(FlightEvent) == 48);

class FlightMemory {
 public:
  // Of this process alone. Pages that are not written take no memory.
  static FlightMemory Own();
  // PENSTOCK_FLIGHT_FD ("descriptor:inode", a file of the block's size) if that is there and no other process
  // writes it, else Own().
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
