// A connection between two processes of one host: records over a unix socket (unix_socket.h), large bodies
// through shared memory (framework/tensor/shared_heap.h, lent_memory.h).
//
//   auto link = std::make_shared<LocalLink>(std::move(socket), handler, LocalEnd::kServer);
//   link->Run();     // on a thread of its own: reads until the end, then calls OnClosed
//
// A body in this process's shared heap is lent: the other side reads it in place, and it must not change
// until that side's last owner is gone. Any other large body is first copied into the heap by a thread of the
// link; at most 4 MB or two of such copies wait for the other side's handler. If there is no room, or the
// other side keeps 256 MB of copies, a body travels through the socket.
//
// The caller of Send writes small messages itself if the socket has room; they never wait behind copies.
//
// The end of a process is noticed at once. A stopped process answers no ping, and counts as gone after 14 s.
//
// Only admitted connections share memory: the server passes its memory when it admits the client, and the
// client passes its own on receipt. Memory is lent once the other side has mapped it; if it cannot (ulimit
// -v), bodies go through the socket. Before it admits the client, the server reads at most 64 KB.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/transport/descriptor.h"
#include "executor/transport/lent_memory.h"
#include "executor/transport/unix_socket.h"
#include "framework/base/status.h"
#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"
#include "framework/tensor/shared_heap.h"

namespace penstock::transport {

inline constexpr std::size_t kCopiesMax = std::size_t{256} << 20;  // copies that the other side may keep

enum class LocalEnd { kClient, kServer };

class LocalLink : public Connection, public std::enable_shared_from_this<LocalLink> {
 public:
  // `socket` must have passed the gate. The first Admit on a server's end calls `on_admit`.
  LocalLink(Descriptor socket, ConnectionHandler& handler, LocalEnd end, std::function<void()> on_admit = {});

  void Run();

  void Send(Message message) override;
  void Close() override;
  void Abort() override;
  void Admit() override;
  bool local() const override { return true; }

 private:
  struct Outgoing {
    Message message;
    std::optional<std::uint64_t> lent;  // offset of its body in the shared heap
  };
  // An incoming body in parts.
  struct Coming {
    Message message;
    std::shared_ptr<std::byte[]> body;
    std::size_t size = 0, have = 0;
  };

  Status Read();  // until the other side ends
  Status OnRecord(std::string_view record, Descriptor passed);
  Status OnMessages(std::string_view frame);
  Status OnShared(std::string_view record, bool copied);
  Status OnBegin(std::string_view record);
  Status OnPart(std::string_view part);
  Status OnNotes(std::string_view notes);
  Status OnMemory(const Descriptor& passed);
  void OnPing();
  void Deliver(Message message) { handler_.OnMessage(shared_from_this(), std::move(message)); }

  void Write();  // the second thread, until nothing more can be sent
  using Lock = std::unique_lock<std::mutex>;
  // Call with the lock held. Sent messages go to `sent`, to be destroyed without the lock: an owner may be a
  // payload of this connection.
  bool Flush(std::vector<Message>& sent);  // everything except copies; false: the socket is full
  bool FlushOffer();
  bool FlushNotes();
  bool FlushSmall(std::vector<Message>& sent);
  bool TryLend(Outgoing& outgoing);
  bool TryRecord(std::string_view record, int pass = -1);  // false: the socket is full
  bool LargeMayGo() const;
  bool EndMayGo() const;
  void LookForSilence();
  void EndNow(const Status& why);
  // These release the lock while they copy or wait.
  void SendLarge(Lock& lock, std::vector<Message>& sent);
  void SendInParts(Lock& lock, const Message& message);
  void SendSurely(Lock& lock, std::string_view record);

  void OfferMemory();
  void Note(std::uint64_t note);

  const Descriptor socket_;
  ConnectionHandler& handler_;
  const LocalEnd end_;
  const std::function<void()> on_admit_;
  std::atomic<bool> admitted_;

  // The link whose record this thread is handling. Messages that the handler sends or frees meanwhile go out
  // together.
  static inline thread_local const LocalLink* reading_ = nullptr;

  // Used by the reading thread.
  std::size_t stranger_bytes_ = 0;
  Descriptor hold_;
  std::optional<BorrowedMemory> incoming_;
  std::optional<Coming> coming_;
  bool heard_end_ = false;

  std::atomic<Nanoseconds> heard_;  // when the last record arrived

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> small_;  // small and lent messages
  std::deque<Message> large_;   // to be copied
  std::vector<std::uint64_t> notes_;
  SharedHeap* const heap_ = SharedHeap::OfThisProcess();
  std::optional<Loans> loans_;
  bool offer_ = false;       // the memory must be announced
  bool mapped_ = false;      // the other side has mapped it
  std::size_t untaken_ = 0;  // bytes of copies in messages that the other side has not handled yet
  bool full_ = false;        // the socket was full; the writing thread waits for room
  bool pong_ = false;        // a pong must be sent
  std::optional<Nanoseconds> pinged_;
  bool closing_ = false;
  bool said_end_ = false;
  bool ended_ = false;
  std::optional<Status> why_;  // why this side ended it
};

}  // namespace penstock::transport
