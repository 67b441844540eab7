// The diagnostics of this process, whatever its role: flight recorder and counters, /metrics while it runs,
// and its receipt at the end.
//
//   Diagnosis& diagnosis = Diagnosis::OfThisProcess();
//   options.observer = &diagnosis.observer();
//   diagnosis.Begin("trainer 0");                    // once the process knows its role
//   diagnosis.End();                                 // logs the receipt, and writes it to PENSTOCK_LOG_DIR
//
// Environment: PENSTOCK_FLIGHT_FD (flight_memory.h), PENSTOCK_METRICS (the port of /metrics on loopback, 0
// for any free one; unset: no /metrics), PENSTOCK_LOG_DIR (the folder in which receipt.<role>.json and, with
// /metrics, the address in metrics.<role> are written). A file or port that cannot be used causes a log line,
// not an error.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "executor/observe/metrics_server.h"
#include "executor/observe/observer.h"

namespace penstock::process {

// Thread-safe.
class Diagnosis {
 public:
  // The instance of this process. A forked child has its own.
  static Diagnosis& OfThisProcess();

  observe::Observer& observer() { return observer_; }
  void Begin(const std::string& role);  // calling it again with the same role has no effect
  void End();                           // no effect without Begin, or a second time

 private:
  Diagnosis();
  void StartMetrics();
  void Write(const std::string& name,
             const std::string& text) const;  // to the log folder, if there is one

  observe::Recorder recorder_;
  observe::Observer observer_;
  std::mutex mutex_;  // guards the members below
  std::string role_;
  bool ended_ = false;
  std::unique_ptr<observe::MetricsServer> metrics_;
};

}  // namespace penstock::process
