// What this process tells of itself, whichever role it has: its flight recorder and counters, /metrics while
// it runs, its receipt in the end.
//
//   Diagnosis& diagnosis = Diagnosis::OfThisProcess();
//   options.observer = &diagnosis.observer();
//   diagnosis.Begin("trainer 0");                    // once the process knows what it is
//   diagnosis.End();                                 // logs the receipt, and writes it into PENSTOCK_LOG_DIR
//
// From the environment: PENSTOCK_FLIGHT_FD (flight_memory.h), PENSTOCK_METRICS (the port of /metrics on
// loopback, 0 for any; not set: there is none), PENSTOCK_LOG_DIR (gets receipt.<role>.json and, with
// /metrics, metrics.<role>, its address). What cannot be written or bound is a line of the log, no failure.
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
  // A child of fork has one of its own.
  static Diagnosis& OfThisProcess();

  observe::Observer& observer() { return observer_; }
  void Begin(const std::string& role);  // again with the same role: does nothing
  void End();                           // without Begin, or again: does nothing

 private:
  Diagnosis();
  void StartMetrics();
  void Write(const std::string& name,
             const std::string& text) const;  // into the log's folder, if there is one

  observe::Recorder recorder_;
  observe::Observer observer_;
  std::mutex mutex_;  // of what follows
  std::string role_;
  bool ended_ = false;
  std::unique_ptr<observe::MetricsServer> metrics_;
};

}  // namespace penstock::process
