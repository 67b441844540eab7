#include "executor/kvstore/table_spec.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "framework/base/hash.h"
#include "framework/base/strings.h"

namespace penstock::kvstore {
namespace {

constexpr const char* kStartKinds[] = {"constant", "uniform", "normal"};

std::uint64_t Mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
class TableRows : public RowStart {
 public:
  TableRows(const TableStart& start, std::uint64_t key) : start_(start), key_(key) {}

  void Make(std::int64_t row, std::int64_t width, std::byte* out) const override {
    T* const to = reinterpret_cast<T*>(out);
    const std::uint64_t of_row = Mixed(key_ ^ Mixed(static_cast<std::uint64_t>(row) + kOdd));
    for (std::int64_t i = 0; i < width; ++i)
      to[i] = static_cast<T>(At(of_row + kOdd * static_cast<std::uint64_t>(2 * i + 1)));
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;

  // In (0, 1).
  static double Uniform(std::uint64_t place) {
    return (static_cast<double>(Mixed(place) >> 11) + 0.5) * 0x1p-53;
  }
  // A normal number, by Box and Muller's method, takes two places.
  double At(std::uint64_t place) const {
    switch (start_.kind) {
      case TableStart::Kind::kUniform:
        return start_.first + (start_.second - start_.first) * Uniform(place);
      case TableStart::Kind::kNormal:
        return start_.first + start_.second * std::sqrt(-2 * std::log(Uniform(place))) *
                                  std::cos(2 * std::numbers::pi * Uniform(place + kOdd));
      default:
        return start_.first;
    }
  }

  const TableStart start_;
  const std::uint64_t key_;
};

Status BadStart(std::string_view text) {
  return InvalidArgument("E-text-syntax", "table: ", Quote(text),
                         " is not 'constant|uniform|normal NUMBER NUMBER seed NUMBER'");
}

template <typename T>
bool NumberIn(std::string_view text, T& number) {
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

// Without separators; the last piece is the rest.
std::vector<std::string_view> Pieces(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; pieces.size() + 1 < most;) {
    at = text.find(separator);
    if (at == std::string_view::npos) break;
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  pieces.push_back(text);
  return pieces;
}

Result<TableStart> ParseStart(std::string_view text) {
  const std::vector<std::string_view> words = Pieces(text, ' ', 5);
  double first = 0, second = 0;
  std::uint64_t seed = 0;
  if (words.size() != 5 || words[3] != "seed" || !NumberIn(words[1], first) || !NumberIn(words[2], second) ||
      !NumberIn(words[4], seed))
    return BadStart(text);
  return MakeTableStart(words[0], first, second, seed);
}

}  // namespace

std::shared_ptr<const RowStart> TableStart::RowsOf(std::string_view table, DType dtype) const {
  if (kind == Kind::kConstant && first == 0) return nullptr;
  const std::uint64_t key = Fnv1a64(table, kFnvOffset ^ Mixed(seed + 1));
  if (dtype == DType::kFp64) return std::make_shared<TableRows<double>>(*this, key);
  return std::make_shared<TableRows<float>>(*this, key);
}

Result<TableStart> MakeTableStart(std::string_view kind, double first, double second, std::uint64_t seed) {
  TableStart start{.kind = TableStart::Kind::kConstant, .first = first, .second = second, .seed = seed};
  bool known = false;
  for (int i = 0; i < 3; ++i) {
    if (kind != kStartKinds[i]) continue;
    start.kind = static_cast<TableStart::Kind>(i);
    known = true;
  }
  if (!known) {
    return InvalidArgument("E-kv-table-start", "table: there are no initial values of kind ", Quote(kind),
                           "; use constant, uniform or normal");
  }
  const bool ordered = start.kind == TableStart::Kind::kUniform  ? first <= second
                       : start.kind == TableStart::Kind::kNormal ? second >= 0
                                                                 : true;
  if (!std::isfinite(first) || !std::isfinite(second) || !ordered) {
    return InvalidArgument("E-kv-table-start", "table: initial values are ", kind, " of ", first, " and ",
                           second, "; they must be finite, bounds in order, a deviation not below 0");
  }
  return start;
}

std::string TableSpec::ToString() const {
  return StrCat(kStartKinds[static_cast<int>(start.kind)], " ", start.first, " ", start.second, " seed ",
                start.seed, "\n", policy.ToString(), "\n", optimizer.ToString());
}

Result<TableSpec> ParseTableSpec(std::string_view text) {
  const std::vector<std::string_view> lines = Pieces(text, '\n', 3);
  if (lines.size() != 3) return BadStart(text);
  TableSpec spec;
  PENSTOCK_ASSIGN_OR_RETURN(spec.start, ParseStart(lines[0]));
  if (!lines[1].empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(spec.policy, ParseRowPolicy(lines[1]));
  }
  PENSTOCK_ASSIGN_OR_RETURN(spec.optimizer, ParseOptimizer(lines[2]));
  return spec;
}

}  // namespace penstock::kvstore
