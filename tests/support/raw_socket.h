// A plain TCP connection for tests that attack a server: every call is bounded.
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
  // To "127.0.0.1:port". connected() is false if nobody takes it.
  // `before_connect` runs when its descriptor is there.
  explicit RawSocket(
      const std::string& address, const std::function<void()>& before_connect = [] {});
  ~RawSocket() { Close(); }
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  bool connected() const { return fd_ >= 0; }
  void Send(const std::string& bytes) const;  // what does not fit into the socket is left out
  // What comes until `size` bytes are there, the other side has closed, or the limit is over.
  std::string Read(std::size_t size, std::chrono::milliseconds limit = std::chrono::seconds(20)) const;
  // Whether the other side closes within the limit; reads what comes before.
  bool IsClosed(std::chrono::milliseconds limit = std::chrono::seconds(20)) const;
  // What is there, or comes within the limit, or nothing; no value if the other side has closed.
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
  // The first to come; not connected if `stop` is said before.
  RawSocket Accept(const std::atomic<bool>& stop) const;

 private:
  int fd_ = -1;
  std::string address_;
};

// Lets this process have so many descriptors; false if it may not.
bool AllowDescriptors(std::size_t count);

}  // namespace penstock::test
