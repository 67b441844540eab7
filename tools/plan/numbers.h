// Formats numbers and tables for reading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::tools {

std::string Grouped(std::int64_t count);        // "1,234,567"
std::string Fixed(double value, int decimals);  // "0.070"
std::string Plain(double value);                // "10000000000", "0.5": all digits, no exponent
std::string Size(std::int64_t bytes);           // "44.8 KB"; 1 KB is 1,000 bytes
std::string Count(std::int64_t count, std::string_view noun);  // "1 pserver", "2 pservers"

// A table with aligned columns: the first `left` columns are left-aligned, the others right-aligned.
class TextTable {
 public:
  TextTable(std::vector<std::string> head, std::size_t left);
  void Add(std::vector<std::string> row);
  std::string ToString() const;  // each line indented by two

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_;
};

}  // namespace penstock::tools
