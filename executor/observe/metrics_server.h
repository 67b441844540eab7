// GET /metrics over HTTP/1.1 on 127.0.0.1, for Prometheus and `penstock top`.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto server, MetricsServer::Start(0, [&] { return Exposition(...); }));
//   server->port()                                                     // the port in use
//
// One thread and at most eight connections at a time, each closed after one answer or two seconds; a request
// has at most 4 KB, and its body is ignored. Clients can neither block the server nor fill its memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/status.h"

namespace penstock::observe {

class MetricsServer {
 public:
  // Port 0: any free port. The server's thread calls `text`.
  // kUnavailable E-metrics-bind: the port is in use.
  static Result<std::unique_ptr<MetricsServer>> Start(std::uint16_t port, std::function<std::string()> text);
  ~MetricsServer();

  std::uint16_t port() const { return port_; }

 private:
  struct Visitor;
  MetricsServer(int listener, int wake, std::uint16_t port, std::function<std::string()> text);
  void Serve();
  bool Accept(std::vector<Visitor>& visitors) const;  // false: the system gives no descriptor
  bool Move(Visitor& visitor) const;                  // false: finished
  std::string AnswerTo(const std::string& request) const;

  const int listener_;
  const int wake_;  // an eventfd: tells the thread to end
  const std::uint16_t port_;
  const std::function<std::string()> text_;
  std::thread thread_;
};

}  // namespace penstock::observe
