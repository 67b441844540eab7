// What `penstock top` shows: the /metrics of a job's processes, read and made a table.
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

// One process's numbers at one time, as executor/observe/receipt.h gives them.
struct Sample {
  std::string role;                                   // empty: it did not answer
  std::map<std::string, double> values;               // by family; of peers the sum
  std::map<std::string, double> waited_by_peer = {};  // seconds
  double silent_longest_s = 0;                        // of its peers
};

struct TopRow {
  std::string address;
  Sample sample;
};

// The body of GET /metrics. kUnavailable E-top-fetch: nobody answers within the time, or not with 200.
Result<std::string> FetchMetrics(const std::string& address, std::chrono::milliseconds limit);

// kDataLoss E-top-format: a line is no sample of the text exposition format.
Result<Sample> ReadMetrics(std::string_view text);

// A line for the names of the columns and one for each row. Rates are those since `before` (same order;
// empty: since the processes began to count).
std::string TopTable(const std::vector<TopRow>& rows, const std::vector<TopRow>& before);

}  // namespace penstock::tools
