// Reads the /metrics of a job's processes and formats them as a table, for `penstock top`.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const std::string text, FetchMetrics("127.0.0.1:43211", 2s));
//   PENSTOCK_ASSIGN_OR_RETURN(const Sample sample, ReadMetrics(text));
//   std::cout << TopTable({{"127.0.0.1:43211", sample}}, {});
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::tools {

// The metrics of one process at one time; executor/observe/receipt.h defines them.
struct Sample {
  std::string role;                                   // empty: the process did not answer
  std::map<std::string, double> values;               // by metric name, summed over peers
  std::map<std::string, double> waited_by_peer = {};  // seconds
  double silent_longest_s = 0;                        // the maximum over its peers
};

struct TopRow {
  std::string address;
  Sample sample;
};

// The body of GET /metrics. kUnavailable E-top-fetch: no answer within `limit`, or a status other than 200.
Result<std::string> FetchMetrics(const std::string& address, std::chrono::milliseconds limit);

// Parses `text`. kDataLoss E-top-format: a line is not a sample in Prometheus' text exposition format.
Result<Sample> ReadMetrics(std::string_view text);

// A line of column names and one line per row. Rates are averages since `before`, which has the same rows in
// the same order; if `before` is empty, since the processes started.
std::string TopTable(const std::vector<TopRow>& rows, const std::vector<TopRow>& before);

}  // namespace penstock::tools
