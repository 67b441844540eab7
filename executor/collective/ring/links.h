// Messages between the ranks of a group over a network: the interface between the operations (ring_backend.h)
// and the carrier, which is Gloo or MPI in production and a seeded network in the simulator.
//
//   const std::unique_ptr<Transit> sent = links.Send(right, Channel::kOperations, mine);
//   const std::unique_ptr<Transit> came = links.Receive(left, Channel::kOperations, theirs);
//   if (came->Wait() != LinkEnd::kDone) ...
//
// Messages of one channel between two ranks arrive in the order in which they were sent; a receive must offer
// at least as many bytes as its message has. No call throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace penstock::collective {

enum class Channel : std::uint8_t { kOperations, kMessages, kAgreement };

enum class LinkEnd : std::uint8_t {
  kDone,
  kBroken,       // the connection to that rank has ended
  kInterrupted,  // Links::Interrupt
};

// A message in flight. The memory belongs to the caller; it is not used after the Transit is destroyed.
class Transit {
 public:
  virtual ~Transit() = default;
  // Sent: the memory is free. Received: the memory is filled. Call at most once.
  virtual LinkEnd Wait() = 0;
};

// A notice, which reaches other ranks independently of the operation they wait in. Plain data, for the wire.
struct Notice {
  enum Kind : std::uint32_t { kLeft, kFailed };
  std::uint32_t kind = kLeft;
  char id[40] = {};         // kFailed: the id of the group's first error
  char message[2000] = {};  // kFailed: its lines (error_lines.h)
};

class Links {
 public:
  // Called on a thread of the links, one notice at a time.
  using NoticeHandler = std::function<void(int from, const Notice& notice)>;

  virtual ~Links() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `bytes` must not be empty. Call from one thread at a time.
  virtual std::unique_ptr<Transit> Send(int to, Channel channel, std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<Transit> Receive(int from, Channel channel, std::span<std::byte> bytes) = 0;

  // From now on, `handler` receives notices. Call once, before any other call except rank() and size().
  virtual void Listen(NoticeHandler handler) = 0;
  // Does not wait. From any thread.
  virtual void Tell(int to, const Notice& notice) = 0;
  // Ends all waits, also those that start later. From any thread.
  virtual void Interrupt() = 0;
  // Waits until a notice has made `heard` true, at most a few hundred milliseconds.
  virtual void Linger(const std::function<bool()>& heard) = 0;
  // Sends remaining notices, for at most a second, and ends all connections. No notice arrives afterwards.
  virtual void Close() = 0;
};

}  // namespace penstock::collective
