#include "framework/text/compression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "framework/base/strings.h"
#include "framework/text/cursor.h"

namespace penstock {
namespace {

using Kind = Compression::Kind;

struct KindWord {
  Kind kind;
  std::string_view word;
  float Compression::*parameter = nullptr;  // null: the kind has none
};
constexpr KindWord kWords[] = {{Kind::kNone, "none"},
                               {Kind::kFp16, "fp16"},
                               {Kind::kBf16, "bf16"},
                               {Kind::kTwoBit, "two_bit", &Compression::threshold},
                               {Kind::kTopK, "top_k", &Compression::ratio}};

const KindWord& WordOf(Kind kind) { return kWords[static_cast<std::size_t>(kind)]; }

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text, "compression") {}

  Result<CompressionRules> Parse() {
    while (!in_.AtEnd()) {
      PENSTOCK_RETURN_IF_ERROR(ParseRule());
      if (!in_.TakeIf(",") && !in_.AtEnd()) return in_.Error(StrCat("expected \",\", ", in_.Found()));
    }
    return std::move(out_);
  }

 private:
  Status ParseRule() {
    const Token begin = in_.Peek();
    if (in_.AtName() && in_.PeekSecond().kind == TokenKind::kPunct && in_.PeekSecond().text == ":")
      return ParseNamed(begin);
    if (has_all_) return in_.ErrorAt(begin, "there are two rules without a name");
    has_all_ = true;
    PENSTOCK_ASSIGN_OR_RETURN(out_.all, ParseHow());
    if (!in_.TakeIf("from")) return OkStatus();
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    PENSTOCK_ASSIGN_OR_RETURN(out_.min_size, in_.Integer("a number of elements", 0, kMost));
    return OkStatus();
  }

  Status ParseNamed(const Token& begin) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string name, in_.Name("a name"));
    PENSTOCK_RETURN_IF_ERROR(in_.Expect(":"));
    PENSTOCK_ASSIGN_OR_RETURN(const Compression how, ParseHow());
    if (out_.by_name.emplace(std::move(name), how).second) return OkStatus();
    return in_.ErrorAt(begin, StrCat(SpellName(begin.text), " has two rules"));
  }

  Result<Compression> ParseHow() {
    const auto* const word =
        std::ranges::find_if(kWords, [&](const KindWord& one) { return in_.At(one.word); });
    if (word == std::end(kWords))
      return in_.Error(StrCat("expected none, fp16, bf16, two_bit or top_k, ", in_.Found()));
    in_.Take();
    Compression how{.kind = word->kind};
    const TokenKind next = in_.Peek().kind;
    if (word->parameter == nullptr || (next != TokenKind::kInt && next != TokenKind::kFloat)) return how;
    const Token number = in_.Take();
    how.*word->parameter = FloatOf(number);
    PENSTOCK_RETURN_IF_ERROR(ValidateCompression("compression", how));
    return how;
  }

  // The token is a valid number. A number that is too large becomes infinite, which ValidateCompression
  // rejects.
  static float FloatOf(const Token& token) {
    float value = std::numeric_limits<float>::infinity();
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    return value;
  }

  Cursor in_;
  CompressionRules out_;
  bool has_all_ = false;
};

}  // namespace

std::int64_t Compression::Bytes(std::int64_t elements) const {
  constexpr std::int64_t kWordBytes = 4, kElementsPerWord = 16;
  switch (kind) {
    case Kind::kNone:
      return 4 * elements;
    case Kind::kFp16:
    case Kind::kBf16:
      return 2 * elements;
    case Kind::kTwoBit:
      return (elements + kElementsPerWord - 1) / kElementsPerWord * kWordBytes;
    case Kind::kTopK:
      break;
  }
  return 2 * kWordBytes * Sent(elements);
}

std::int64_t Compression::Sent(std::int64_t elements) const {
  if (kind != Kind::kTopK) return elements;
  const double share = static_cast<double>(ratio) * static_cast<double>(elements);
  const double without_rounding = share * (1 - 0x1p-23);  // so that 0.1f of 10 elements is 1, not 2
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(without_rounding)),
                                  std::min<std::int64_t>(1, elements), elements);
}

std::string Compression::ToString() const {
  const KindWord& word = WordOf(kind);
  return word.parameter == nullptr ? std::string(word.word) : StrCat(word.word, " ", this->*word.parameter);
}

bool operator==(const Compression& a, const Compression& b) {
  const auto parameter = WordOf(a.kind).parameter;
  return a.kind == b.kind && (parameter == nullptr || a.*parameter == b.*parameter);
}

Status ValidateCompression(std::string_view what, const Compression& compression) {
  if (compression.kind == Kind::kTwoBit &&
      !(std::isfinite(compression.threshold) && compression.threshold > 0)) {
    return InvalidArgument("E-compression-value", what, ": the threshold of two_bit must be above 0, not ",
                           compression.threshold);
  }
  if (compression.kind == Kind::kTopK && !(compression.ratio > 0 && compression.ratio <= 1)) {
    return InvalidArgument("E-compression-value", what,
                           ": the ratio of top_k must be above 0 and at most 1, not ", compression.ratio);
  }
  return OkStatus();
}

Compression CompressionRules::Of(std::string_view name, std::int64_t elements) const {
  const auto own = by_name.find(name);
  if (own != by_name.end()) return own->second;
  return elements >= min_size ? all : Compression();
}

std::string CompressionRules::ToString() const {
  std::vector<std::string> rules;
  if (!all.none()) rules.push_back(min_size > 0 ? StrCat(all, " from ", min_size) : all.ToString());
  for (const auto& [name, how] : by_name) rules.push_back(StrCat(SpellName(name), ": ", how));
  return Join(rules, ", ");
}

Result<CompressionRules> ParseCompression(std::string_view text) { return Parser(text).Parse(); }

std::string ResidualName(std::string_view param) { return StrCat(param, "@RESIDUAL"); }

}  // namespace penstock
