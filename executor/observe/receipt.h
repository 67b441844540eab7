// Formats a process's counters in three ways: a line for its log, JSON for a file, and Prometheus's text
// format.
//
//   Log(LogSeverity::kInfo, ReceiptLine(observer.Now()));
//   WriteFile(StrCat(folder, "/receipt.trainer.0.json"), ReceiptJson("trainer 0", observer.Now()));
#pragma once

#include <string>
#include <string_view>

#include "executor/observe/observer.h"

namespace penstock::observe {

// "receipt: 50 steps in 12.3 s, 1.2 GB sent, 1.2 GB received, 3.10 s exposed; waited 1.90 s for pserver
// a:1", followed, where they apply, by resent messages, the compressed and uncompressed size of gradients,
// the staleness of gradients, rows of tables that entered or were evicted by a policy, and lookups that were
// asked ahead.
std::string ReceiptLine(const Counts& counts);

// One JSON object; times in seconds, sizes in bytes. "staleness" lists the counts of StalenessHistogram; it
// is empty if no gradient is stale.
std::string ReceiptJson(std::string_view role, const Counts& counts);

// Prometheus's text format, version 0.0.4: families named penstock_*, each with HELP and TYPE, all samples
// with the label role.
std::string Exposition(std::string_view role, const Counts& counts);

}  // namespace penstock::observe
