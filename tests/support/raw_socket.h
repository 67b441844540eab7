// A plain TCP connection for tests that attack a server. Every call has a time limit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace penstock::test {

class RawSocket {
 public:
  // Connects to "127.0.0.1:port"; connected() is false if no process accepts. Calls `before_connect` after
  // the socket is created.
  explicit RawSocket(
      const std::string& address, const std::function<void()>& before_connect = [] {});
  ~RawSocket() { Close(); }
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  bool connected() const { return fd_ >= 0; }
  void Send(const std::string& bytes) const;  // drops bytes that do not fit into the socket's buffer
  // Reads until `size` bytes have arrived, the peer has closed, or the time limit has passed.
  std::string Read(std::size_t size, std::chrono::milliseconds limit = std::chrono::seconds(20)) const;
  // Whether the peer closes within the limit; discards bytes that arrive before.
  bool IsClosed(std::chrono::milliseconds limit = std::chrono::seconds(20)) const;
  // The bytes that are available or arrive within the limit, possibly none; nullopt if the peer has closed.
  std::optional<std::string> ReadSome(std::chrono::milliseconds limit) const;
  void SendAll(const std::string& bytes) const;  // waits, at most 20 s
  void Close();

 private:
  friend class RawListener;
  RawSocket() = default;
  int fd_ = -1;
};

// Listens on a port of 127.0.0.1 that the system chooses.
class RawListener {
 public:
  RawListener();
  ~RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;
  const std::string& address() const { return address_; }
  // Accepts the next connection. Returns an unconnected socket if `stop` becomes true first.
  RawSocket Accept(const std::atomic<bool>& stop) const;

 private:
  int fd_ = -1;
  std::string address_;
};

// Raises this process's limit of file descriptors to `count`; false if that is not permitted.
bool AllowDescriptors(std::size_t count);

}  // namespace penstock::test
