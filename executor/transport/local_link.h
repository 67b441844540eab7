// A connection between two processes of one host: records over a unix socket (unix_socket.h), large bodies
// by shared memory (framework/tensor/shared_heap.h, lent_memory.h).
//
//   auto link = std::make_shared<LocalLink>(std::move(socket), handler, LocalEnd::kServer);
//   link->Run();     // a thread of its own: reads until the end, whose last act is OnClosed
//
// A body that lies in this process's shared heap is lent: the other side reads it where it is. It stays as
// it is, by its owner, until the other side's last owner is gone. Any other large body is copied there
// first, by a thread of the link; of those at most 4 MB or two are not yet taken by the other side's
// handler. Where there is no room, or the other side keeps 256 MB of copies, a body travels through the
// socket.
//
// Messages of little to write are written by the caller of Send where the socket has room, and never wait
// behind copies.
//
// The end of a process is seen at once; one that is stopped answers no ping, and counts as gone after 14 s.
//
// Only admitted connections share memory: the server shows its memory when it admits the client, and the
// client its own when it gets that. Memory is lent once the other side has mapped it; to a side that
// cannot (ulimit -v) bodies go through the socket. Before it admits the client, the server reads at most
// 64 KB.
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

inline constexpr std::size_t kCopiesMax = std::size_t{256} << 20;  // of what the other side keeps

enum class LocalEnd { kClient, kServer };

class LocalLink : public Connection, public std::enable_shared_from_this<LocalLink> {
 public:
  // The socket is past the gate. `on_admit` is called by the first Admit of a server's end.
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
    std::optional<std::uint64_t> lent;  // where its body lies in the shared heap
  };
  // An incoming body that comes in parts.
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

  void Write();  // the second thread, until nothing may or can be sent any more
  using Lock = std::unique_lock<std::mutex>;
  // With the lock held. What is sent goes to `sent`, to be destroyed without the lock: an owner may be a
  // payload of this connection.
  bool Flush(std::vector<Message>& sent);  // all but copies; false: the socket is full
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

  // The link whose record this thread handles: what its handler sends and frees meanwhile goes out
  // together.
  static inline thread_local const LocalLink* reading_ = nullptr;

  // The reading thread's.
  std::size_t stranger_bytes_ = 0;
  Descriptor hold_;
  std::optional<BorrowedMemory> incoming_;
  std::optional<Coming> coming_;
  bool heard_end_ = false;

  std::atomic<Nanoseconds> heard_;  // when the last record came

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> small_;  // and what is lent
  std::deque<Message> large_;   // to be copied
  std::vector<std::uint64_t> notes_;
  SharedHeap* const heap_ = SharedHeap::OfThisProcess();
  std::optional<Loans> loans_;
  bool offer_ = false;       // the memory is to be announced
  bool mapped_ = false;      // the other side has it
  std::size_t untaken_ = 0;  // bytes of copies whose messages the other side's handler has not had
  bool full_ = false;        // the socket was; the writing thread waits for room
  bool pong_ = false;        // is to be sent
  std::optional<Nanoseconds> pinged_;
  bool closing_ = false;
  bool said_end_ = false;
  bool ended_ = false;
  std::optional<Status> why_;  // what ended it from this side
};

}  // namespace penstock::transport
