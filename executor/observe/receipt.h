// What a process's counters come to, in three forms: a line for its log, JSON for a file, and Prometheus's
// text. All from one Counts.
//
//   Log(LogSeverity::kInfo, ReceiptLine(observer.Now()));
//   WriteFile(StrCat(folder, "/receipt.trainer.0.json"), ReceiptJson("trainer 0", observer.Now()));
#pragma once

#include <string>
#include <string_view>

#include "executor/observe/observer.h"

namespace penstock::observe {

// "receipt: 50 steps in 12.3 s, 1.2 GB sent, 1.2 GB received, 3.10 s exposed; waited 1.90 s for pserver
// a:1", then what was sent again, what compressed gradients took and would take as float32, and how stale
// gradients were, each where there is any.
std::string ReceiptLine(const Counts& counts);

// One object; times in seconds, sizes in bytes. "staleness" is a list of counts by updates, the last for all
// beyond; empty where nothing is stale.
std::string ReceiptJson(std::string_view role, const Counts& counts);

// The text exposition format, version 0.0.4: families named penstock_*, each with HELP and TYPE, all samples
// with the label role.
std::string Exposition(std::string_view role, const Counts& counts);

}  // namespace penstock::observe
